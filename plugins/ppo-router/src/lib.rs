//! The PPO router's policy: at the start of each slot a network that was trained for the yard
//! looks at the instances and says what share of the slot's arrivals each of them gets. Every
//! arrival is then drawn by the host, without a window.
//!
//! In data order:
//! - `settings`: which weights, and which workers
//! - `yard`: the instances that the weights were trained for, in this catalog
//! - `sight`: what the network sees of a window
//! - [`ppo_router_net`]: the network, shared with its trainer

mod settings;
mod sight;
mod yard;

use ppo_router_net::{Decision, Network, Observer, Scratch};
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::instances::{Instance, instances_of, place_pending};
use switchyard_sdk::slots::Slots;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, Lane, PlanBuilder, Policy, Sights, Window, export_policy,
};

use settings::Settings;
use sight::Seen;
use yard::Yard;

/// The period at which a host asks anyway, should a wish to be woken be lost with a fault.
const PERIOD_US: u64 = 1_000_000;

/// The router.
#[derive(Debug)]
pub struct PpoRouter {
    network: Network,
    yard: Yard,
    slots: Slots,
    seen: Seen,
    observer: Observer,
    scratch: Scratch,
    decision: Decision,
    /// Which instances were up when the route in force was made.
    up: Vec<bool>,
    /// Apps that the weights are not for.
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
            .wants(Sights::PLACED | Sights::COMPLETIONS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let network = read(&settings.weights)?;
        let yard = Yard::of(catalog, network.meta(), &settings)?;
        if network.needs_phase() && settings.rates.len() != network.meta().layout.phases {
            let (phases, file) = (network.meta().layout.phases, &settings.weights);
            let reason = format!("{file} tells {phases} phases by theirs");
            return Err(format!("settings: rates: {reason}"));
        }
        let others = catalog.apps().filter(|app| app.id != yard.app);
        let others = others.map(|app| {
            let shared = instances_of(catalog, app.id, &settings.instances)?;
            Ok((app.id, shared))
        });
        Ok(Self {
            others: others.collect::<Result<_, String>>()?,
            slots: Slots::new(network.meta().slot_us),
            seen: Seen::new(&settings, yard.instances.len()),
            observer: Observer::new(network.meta().layout.clone()),
            scratch: Scratch::default(),
            decision: Decision::default(),
            up: Vec::new(),
            yard,
            network,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        // What an earlier policy left half-run goes first: only this worker can end it.
        for worker in window.idle_workers() {
            plan.resume_parked(worker.id());
        }
        self.seen.count(window, self.yard.app);
        let begins = self.slots.begin(window.now_us(), plan);
        if begins {
            let sight = self.seen.look(window, &self.yard);
            let observation = self.observer.observe(&sight.sight());
            self.network
                .decide(observation, &mut self.scratch, &mut self.decision);
        }
        let instances = self.yard.instances.iter();
        let up: Vec<bool> = instances
            .map(|instance| window.worker(instance.worker).is_up())
            .collect();
        if begins || up != self.up {
            self.up = up;
            plan.route(self.yard.app, &self.lanes(window.catalog()));
        }
        place_pending(window, plan, self.yard.app, &self.yard.instances);
        for (app, instances) in &self.others {
            place_pending(window, plan, *app, instances);
        }
        Ok(())
    }
}

impl PpoRouter {
    /// The decision as lanes to the instances that are up. Those that are left when all that
    /// had a share went away share alike.
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
            let batch = batch.unwrap_or(self.yard.bounds[model]);
            self.yard.lane(catalog, at, share, batch)
        };
        up.map(lane).collect()
    }
}

fn read(name: &str) -> Result<Network, String> {
    let bytes = host::read_artifact(name).map_err(|error| {
        let reason = match error {
            ArtifactError::NotFound => "the policy's folder has no such file".to_owned(),
            ArtifactError::Forbidden => "is not in the policy's folder".to_owned(),
            ArtifactError::TooLarge(bytes) => format!("{bytes} bytes are too many"),
            ArtifactError::Unreadable(reason) => reason,
        };
        format!("settings: weights: {name}: {reason}")
    })?;
    Network::parse(&bytes).map_err(|error| format!("{name}: {error}"))
}

export_policy!(PpoRouter);

#[cfg(test)]
mod tests;
