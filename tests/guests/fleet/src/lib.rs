//! Gives each request to the better of two workers, in pools of many. Windows show all workers, or
//! only those that changed: the decisions are the same.

#![forbid(unsafe_code)]

use std::fmt::Write;

use serde::Deserialize;
use switchyard_sdk::{
    Catalog, Description, PlanBuilder, Policy, Window, WindowFields, WorkerId, WorkerRef, settings,
};

/// Priority of a request in whose window the policy fails.
pub const FAILS: u32 = 77;

/// Priority of a request in whose window the policy traps.
pub const TRAPS: u32 = 78;

/// The policy's JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FleetSettings {
    /// Keep the workers of each window as text, which is the state.
    shows: bool,
}

/// The policy. `CHANGED`: it asks for the workers that changed.
#[derive(Debug)]
pub struct Fleet<const CHANGED: bool> {
    shows: bool,
    /// A line with the workers that changed, or `all`; then a line per worker.
    shown: String,
}

impl<const CHANGED: bool> Policy for Fleet<CHANGED> {
    fn describe() -> Description {
        let (name, changed) = match CHANGED {
            true => ("fleet-changed", WindowFields::CHANGED_WORKERS),
            false => ("fleet-whole", WindowFields::empty()),
        };
        Description::new(name, "1.0.0", "the better of two workers")
            .wants(WindowFields::RESIDENTS | changed)
    }

    fn configure(_: &Catalog, json: &str) -> Result<Self, String> {
        let FleetSettings { shows } = settings::parse(json)?;
        Ok(Self {
            shows,
            shown: String::new(),
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        if self.shows {
            self.shown = text(window);
        }
        let has = |priority| window.requests().any(|r| r.priority() == priority);
        if has(FAILS) {
            return Err("asked to fail".to_owned());
        }
        assert!(!has(TRAPS), "asked to trap");
        let catalog = window.catalog();
        let workers = catalog.workers().len() as u64;
        for request in window.requests().filter(|r| r.progress().is_none()) {
            let Some(&variant) = catalog.app(request.app()).variants().first() else {
                continue;
            };
            let draw = request.id().0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let two = [draw >> 32, draw >> 8].map(|n| WorkerId((n % workers) as u32));
            let two = two.map(|worker| window.worker(worker)).into_iter();
            let fits = |worker: &WorkerRef<'_>| {
                worker.is_up()
                    && catalog.can_run(worker.id(), variant)
                    && plan.room(worker.id()) > 0
            };
            let better = two
                .filter(fits)
                .min_by_key(|w| (!w.holds(variant), w.free_at_us()));
            if let Some(worker) = better.or_else(|| window.workers().find(fits)) {
                plan.run(worker.id(), variant).requests([request]);
            }
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.shown.clone().into_bytes()
    }
}

fn text(window: &Window) -> String {
    let changed = window.changed_workers();
    let ids = |workers: Vec<WorkerRef<'_>>| {
        let ids = workers.iter().map(|worker| worker.id().0.to_string());
        ids.collect::<Vec<_>>().join(" ")
    };
    let mut text = changed.map_or("all".to_owned(), |changed| ids(changed.collect()));
    for worker in window.workers() {
        let variants = window.catalog().variants();
        let held: Vec<_> = variants.map(|variant| worker.holds(variant.id)).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{} {} {:?} {:?} {} {} {} {} {held:?}",
            worker.busy_until_us(),
            worker.free_at_us(),
            worker.running_since_us(),
            worker.running_variant(),
            worker.queued(),
            worker.parked(),
            worker.free_memory_bytes(),
            worker.incarnation(),
        );
    }
    text
}
