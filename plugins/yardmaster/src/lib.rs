//! Yardmaster: the schedule with the highest expected utility, less the price of the workers' time.
//!
//! In data order:
//! - `settings`: the settings
//! - `menu`: the choices of each app (exits of variants); `classes`: workers that are alike
//! - `lanes`: requests of an app whose costs are alike
//! - `mix`: the class mix of each app's requests
//! - `job`: the pending requests and the utility of each answer
//! - `price`, `forecast`: the price of a worker's time, and the arrivals to expect
//! - `slot`, `yard`: the workers, and the schedule in the making
//! - `outlook`: the value of the requests that a batch leaves waiting
//! - `search`: the next batch
//! - `slices`: batches that stop between stages
//! - `commit`: the plan

#![forbid(unsafe_code)]

mod classes;
mod commit;
mod forecast;
mod job;
mod lanes;
mod menu;
mod mix;
mod outlook;
mod price;
mod search;
mod settings;
mod slices;
mod slot;
mod yard;

use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, Window, WindowFields, WorkerRef,
    export_policy,
};

use classes::Classes;
use commit::Lost;
use forecast::Forecast;
use job::Jobs;
use lanes::Lanes;
use menu::Menu;
use mix::ClassMix;
use settings::YardmasterSettings;
use slices::Parked;
use slot::Slot;
use yard::Yard;

/// The policy.
#[derive(Debug)]
pub struct Yardmaster {
    settings: YardmasterSettings,
    /// By lane.
    menus: Vec<Menu>,
    lanes: Lanes,
    mixes: Vec<ClassMix>,
    classes: Classes,
    jobs: Jobs,
    /// When the first window with requests was opened.
    began_us: u64,
}

impl Policy for Yardmaster {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        Description::new(
            "yardmaster",
            version,
            "expected utility less the price of worker time",
        )
        .on(Events::ARRIVAL | Events::WORKER_IDLE)
        .wants(WindowFields::EVIDENCE | WindowFields::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = YardmasterSettings::try_new(json)?;
        let (menus, classes) = classes::of_catalog(catalog)?;
        catalog.log_quality();
        Ok(Self {
            jobs: Jobs::new(settings.wait_cost, settings.punctuality),
            began_us: u64::MAX,
            settings,
            mixes: menus
                .iter()
                .map(|menu| ClassMix::new(&menu.prior))
                .collect(),
            lanes: Lanes::new(&menus),
            menus,
            classes,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let idle = window.idle_workers();
        let answers = self.menus.iter().any(|menu| menu.from_evidence.is_some());
        if window.is_empty() || (idle.is_empty() && !answers) {
            return Ok(());
        }
        let now_us = window.now_us();
        self.began_us = self.began_us.min(now_us);
        self.lanes.learn(window, &mut self.menus);
        mix::learn(&mut self.mixes, window, &mut self.menus, &self.lanes);
        self.jobs.fill(window, &self.menus, &self.lanes);
        let Forecast { price, arrivals } = self.forecast(window);
        let mut slots: Vec<Slot> = Vec::new();
        for worker in window.workers().filter(WorkerRef::is_up) {
            slots.push(Slot::new(
                worker,
                window,
                &self.classes,
                price,
                self.settings.margin,
            ));
        }
        let is_idle = |&at: &usize| idle.iter().any(|worker| worker.id() == slots[at].worker);
        let mut open: Vec<usize> = (0..slots.len()).filter(is_idle).collect();
        let mut yard = Yard::new(&self.menus, &self.jobs, slots, arrivals, &self.settings);
        commit::answer(&mut yard, plan, now_us);
        if window.any_parked() {
            // Only their worker has their activations.
            open.retain(
                |&slot| match Parked::first_on(window, &self.lanes, &yard, slot) {
                    Some(parked) => {
                        parked.go_on(&mut yard, window, price, plan);
                        false
                    }
                    None => true,
                },
            );
        }
        let mut free = open.clone();
        while let Some(batch) = yard.next(&mut open) {
            yard.take(&batch);
            slices::dispatch(&mut yard, window, &batch, price, plan);
            open.retain(|&slot| slot != batch.slot);
            free.retain(|&slot| slot != batch.slot);
        }
        if yard.nodes_left.get() == 0 {
            // Another window for the other workers.
            plan.wake_at(now_us + 1);
            return Ok(());
        }
        if let Some(next_us) = yard.next_arrival_us() {
            plan.wake_at(now_us + next_us as u64 + 1);
            // The worker that waits for the batch.
            open.truncate(open.len().saturating_sub(1));
        }
        if free.is_empty() {
            return Ok(());
        }
        let lost = Lost::of(&yard, now_us);
        match lost.until_us(&self.menus) {
            // A worker that waits for another batch does not wait for ever next to a lost request.
            Some(until_us) if until_us <= now_us => lost.serve(&yard, &free, plan),
            Some(until_us) => {
                lost.serve(&yard, &open, plan);
                plan.wake_at(until_us);
            }
            None => {}
        }
        Ok(())
    }
}

impl Yardmaster {
    fn forecast(&self, window: &Window) -> Forecast {
        let Self {
            settings,
            menus,
            lanes,
            classes,
            jobs,
            began_us,
            ..
        } = self;
        Forecast::new(window, menus, lanes, classes, jobs, settings, *began_us)
    }
}

export_policy!(Yardmaster);

#[cfg(test)]
mod tests;
