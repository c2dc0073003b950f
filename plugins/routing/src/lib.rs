//! What the PPO router's paper compares it with (section 5.1.7): six ways of spreading an app's
//! requests over instances of a heavy and a light model.
//!
//! In data order:
//! - `settings`: which of them, and how
//! - `fleet`: the instances of an app, heavy and light ones
//! - `shares`: what of the arrivals goes where (LW, HW, SA, INFaaS); `md1`, `stationary` and
//!   `overload` say how much
//! - `expel`, `single`: those that decide for each request (HW-E, SQ)

mod expel;
mod fleet;
mod md1;
mod overload;
mod settings;
mod shares;
mod single;
mod stationary;

use switchyard_sdk::instances::place_pending;
use switchyard_sdk::slots::Slots;
use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, Sights, Window, export_policy,
};

use fleet::Fleet;
use settings::{Algorithm, Settings};
use shares::Shares;

/// The period at which a host asks anyway, should a wish to be woken be lost with a fault.
const PERIOD_US: u64 = 1_000_000;

/// The baselines.
#[derive(Debug)]
pub struct Routing {
    settings: Settings,
    slots: Slots,
    apps: Vec<Routed>,
}

/// An app, its instances, and how its arrivals are shared among them.
#[derive(Debug)]
struct Routed {
    fleet: Fleet,
    shares: Shares,
    /// Which instances were up when the route in force was made.
    up: Vec<bool>,
}

impl Policy for Routing {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "heavy and light instances: LW, HW, HW-E, SQ, SA, INFaaS";
        Description::new("routing", version, summary)
            .every_us(PERIOD_US)
            .when_empty()
            .on(Events::ARRIVAL | Events::WORKER_IDLE)
            .wants(Sights::PLACED)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let routed = |app| {
            let fleet = Fleet::of(catalog, app, &settings)?;
            Ok(Routed {
                shares: Shares::new(&settings, catalog, &fleet),
                up: Vec::new(),
                fleet,
            })
        };
        let apps = catalog.apps().map(|app| routed(app.id));
        Ok(Self {
            apps: apps.collect::<Result<_, String>>()?,
            slots: Slots::new(settings.slot_us()),
            settings,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        // What an earlier policy left half-run goes first: only this worker can end it.
        for worker in window.idle_workers() {
            plan.resume_parked(worker.id());
        }
        match self.settings.algorithm {
            Algorithm::HwE => {
                for app in &self.apps {
                    expel::schedule(&app.fleet, &self.settings, window, plan);
                }
            }
            Algorithm::Sq => {
                for app in &self.apps {
                    single::schedule(&app.fleet, self.settings.prefer, window, plan);
                }
            }
            Algorithm::Lw | Algorithm::Hw | Algorithm::Sa | Algorithm::Infaas => {
                let begins = self.slots.begin(window.now_us(), plan);
                for app in &mut self.apps {
                    app.route(begins, &self.settings, window, plan);
                }
            }
        }
        Ok(())
    }
}

impl Routed {
    fn route(
        &mut self,
        slot_begins: bool,
        settings: &Settings,
        window: &Window<'_>,
        plan: &mut PlanBuilder<'_>,
    ) {
        let instances = self.fleet.instances();
        let up: Vec<bool> = instances
            .iter()
            .map(|instance| window.worker(instance.worker).is_up())
            .collect();
        if slot_begins || up != self.up {
            self.up.clone_from(&up);
            let shares = self.shares.at(window, &self.fleet);
            let lanes = instances.iter().zip(shares).zip(&up);
            let lanes = lanes.filter(|(_, is_up)| **is_up);
            let lanes: Vec<_> = lanes
                .map(|((instance, share), _)| {
                    instance.lane(window.catalog(), share, settings.waiting_max())
                })
                .collect();
            // Where all that is left has no share, arrivals wait for the next slot.
            let is_fed = lanes.iter().any(|lane| lane.weight > 0.0);
            plan.route(self.fleet.app, if is_fed { &lanes } else { &[] });
        }
        place_pending(window, plan, self.fleet.app, instances);
    }
}

export_policy!(Routing);

#[cfg(test)]
mod tests;
