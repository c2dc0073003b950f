//! The baselines of the PPO router's paper (section 5.1.7): six ways to route an app's requests to
//! instances of a heavy and a light model.
//!
//! In data order:
//! - `settings`: the settings
//! - `fleet`: the instances of an app (section 3.1.3), heavy and light
//! - `shares`: the shares of the arrivals (LW, HW, SA, INFaaS), from `md1`, `stationary` (SA) and
//!   `overload` (INFaaS); the host draws lanes by them (section 3.1.4)
//! - `expel`, `single`: decisions per request (HW-E, SQ)

#![forbid(unsafe_code)]

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
    Catalog, Description, Events, PlanBuilder, Policy, Window, WindowFields, export_policy,
};

use fleet::Fleet;
use settings::{RoutingAlgorithm, RoutingSettings};
use shares::Shares;

/// The host opens a window at least this often, in case a fault loses a wake-up.
const PERIOD_US: u64 = 1_000_000;

/// The baselines of the PPO router.
#[derive(Debug)]
pub struct Routing {
    settings: RoutingSettings,
    slots: Slots,
    apps: Vec<RoutedApp>,
}

/// An app with its instances and their shares of the arrivals.
#[derive(Debug)]
struct RoutedApp {
    fleet: Fleet,
    shares: Shares,
    /// Per instance, whether it was up when the current route was made.
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
            .wants(WindowFields::PLACED)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = RoutingSettings::try_new(json)?;
        let routed = |app| {
            let fleet = Fleet::of(catalog, app, &settings)?;
            Ok(RoutedApp {
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
        // Parked requests first: only this worker has their activations.
        for worker in window.idle_workers() {
            plan.resume_parked(worker.id());
        }
        match self.settings.algorithm {
            RoutingAlgorithm::HwE => {
                let fleets = self.apps.iter().map(|app| &app.fleet);
                expel::schedule(fleets, &self.settings, window, plan);
            }
            RoutingAlgorithm::Sq => {
                for app in &self.apps {
                    single::schedule(&app.fleet, self.settings.prefer, window, plan);
                }
            }
            RoutingAlgorithm::Lw
            | RoutingAlgorithm::Hw
            | RoutingAlgorithm::Sa
            | RoutingAlgorithm::Infaas => {
                let begins = self.slots.begin(window.now_us(), plan);
                for app in &mut self.apps {
                    app.route(begins, &self.settings, window, plan);
                }
            }
        }
        Ok(())
    }
}

impl RoutedApp {
    fn route(
        &mut self,
        slot_begins: bool,
        settings: &RoutingSettings,
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
            // If no instance that is up has a share, arrivals wait for the next slot.
            let is_fed = lanes.iter().any(|lane| lane.weight > 0.0);
            plan.route(self.fleet.app, if is_fed { &lanes } else { &[] });
        }
        place_pending(window, plan, self.fleet.app, instances);
    }
}

export_policy!(Routing);

#[cfg(test)]
mod tests;
