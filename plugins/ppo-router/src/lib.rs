//! The PPO router: at the start of each slot a trained network observes the instances and decides
//! their shares of the slot's arrivals. The host draws an instance per arrival, without a window.
//!
//! In data order:
//! - `settings`: the settings
//! - `instances`: the instances of the weights, in this catalog (section 3.1.3)
//! - `observe`: the state of a slot (sections 3.2 and 5.1.4)
//! - [`ppo_router_net`]: the network, shared with its trainer

#![forbid(unsafe_code)]

mod instances;
mod observe;
mod settings;

use ppo_router_net::{Decision, Network, Observer, Scratch};
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::instances::{Instance, instances_of, place_pending};
use switchyard_sdk::slots::Slots;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, Lane, PlanBuilder, Policy, Window, WindowFields,
    export_policy,
};

use instances::RoutedInstances;
use observe::SlotObserver;
use settings::PpoRouterSettings;

/// The host opens a window at least this often, in case a fault loses a wake-up.
const PERIOD_US: u64 = 1_000_000;

/// The PPO router.
#[derive(Debug)]
pub struct PpoRouter {
    network: Network,
    routed: RoutedInstances,
    slots: Slots,
    slot_observer: SlotObserver,
    observer: Observer,
    scratch: Scratch,
    decision: Decision,
    /// Per instance, whether it was up when the current route was made.
    up: Vec<bool>,
    /// Apps without weights.
    others: Vec<(AppId, Vec<Instance>)>,
}

impl Policy for PpoRouter {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "learned shares of the arrivals for each instance, from slot to slot";
        Description::new("ppo-router", version, summary)
            .every_us(PERIOD_US)
            .when_empty()
            .on(Events::ARRIVAL | Events::WORKER_IDLE)
            .wants(WindowFields::PLACED | WindowFields::COMPLETIONS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = PpoRouterSettings::try_new(json)?;
        let network = read(&settings.weights)?;
        let routed = RoutedInstances::of(catalog, network.meta(), &settings)?;
        if network.needs_phase() && settings.rates.len() != network.meta().layout.phases {
            let (phases, file) = (network.meta().layout.phases, &settings.weights);
            let reason = format!("must be {phases} numbers for {file}");
            return Err(format!("settings: rates: {reason}"));
        }
        let others = catalog.apps().filter(|app| app.id != routed.app);
        let others = others.map(|app| {
            let shared = instances_of(catalog, app.id, &settings.instances)?;
            Ok((app.id, shared))
        });
        Ok(Self {
            others: others.collect::<Result<_, String>>()?,
            slots: Slots::new(network.meta().slot_us),
            slot_observer: SlotObserver::new(&settings, routed.instances.len()),
            observer: Observer::new(network.meta().layout.clone()),
            scratch: Scratch::default(),
            decision: Decision::default(),
            up: Vec::new(),
            routed,
            network,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        // Parked requests first: only this worker has their activations.
        for worker in window.idle_workers() {
            plan.resume_parked(worker.id());
        }
        self.slot_observer.count(window, self.routed.app);
        let begins = self.slots.begin(window.now_us(), plan);
        if begins {
            let slot = self.slot_observer.observe(window, &self.routed);
            let observation = self.observer.observe(&slot.state());
            self.network
                .decide(observation, &mut self.scratch, &mut self.decision);
        }
        let instances = self.routed.instances.iter();
        let up: Vec<bool> = instances
            .map(|instance| window.worker(instance.worker).is_up())
            .collect();
        if begins || up != self.up {
            self.up = up;
            plan.route(self.routed.app, &self.lanes(window.catalog()));
        }
        place_pending(window, plan, self.routed.app, &self.routed.instances);
        for (app, instances) in &self.others {
            place_pending(window, plan, *app, instances);
        }
        Ok(())
    }
}

impl PpoRouter {
    /// The decision as lanes of the instances that are up; equal shares if none of them has a
    /// share.
    fn lanes(&self, catalog: &Catalog) -> Vec<Lane> {
        let shares = self.up.iter().zip(&self.decision.shares);
        let is_fed = shares.filter(|(up, _)| **up).any(|(_, share)| *share > 0.0);
        let up = (0..self.up.len()).filter(|&at| self.up[at]);
        let lane = |at: usize| {
            let share = if is_fed {
                self.decision.shares[at]
            } else {
                1.0
            };
            let model = self.network.meta().models[at] as usize;
            let batch = self.decision.batches.get(model).copied();
            let batch = batch.unwrap_or(self.routed.bounds[model]);
            self.routed.lane(catalog, at, share, batch)
        };
        up.map(lane).collect()
    }
}

fn read(name: &str) -> Result<Network, String> {
    let bytes = host::read_artifact(name).map_err(|error| {
        let reason = match error {
            ArtifactError::NotFound => {
                "no such file in the policy's folder; `switchyard prepare ppo-router` writes it"
                    .to_owned()
            }
            ArtifactError::Forbidden => "must be in the policy's folder".to_owned(),
            ArtifactError::TooLarge(bytes) => {
                format!("{bytes} bytes are too large for an artifact")
            }
            ArtifactError::Unreadable(reason) => reason,
        };
        format!("settings: weights: {name}: {reason}")
    })?;
    Network::parse(&bytes).map_err(|error| format!("{name}: {error}"))
}

export_policy!(PpoRouter);

#[cfg(test)]
mod tests;
