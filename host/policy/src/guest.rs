//! A component behind the core's `Policy` trait. One instance is kept from call to call. A fault
//! ends the instance, and the next call gets a fresh one, configured as before.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault};
use switchyard_core::window::Window;
use wasmtime::Store;

use crate::artifacts::Artifacts;
use crate::contract::{Contract, NoPlan, SentParts};
use crate::engine::PolicyEngine;
use crate::fault;
use crate::host_state::HostState;
use crate::limits::Limits;
use crate::plan_bounds::CatalogBounds;
use crate::truncate::one_line;
use crate::usage::PolicyUsage;

/// Longest name and version, in bytes; they are labels of metrics.
const LABEL_BYTES: usize = 64;
/// Longest summary, in bytes.
const SUMMARY_BYTES: usize = 500;

/// Everything that a policy gets next to its component.
pub(crate) struct GuestParts {
    pub(crate) engine: PolicyEngine,
    pub(crate) limits: Limits,
    pub(crate) artifacts: Artifacts,
    /// JSON.
    pub(crate) settings: String,
    /// Of its random stream.
    pub(crate) seed: u64,
    /// Its windows show every worker, whatever it asks for.
    pub(crate) shows_all_workers: bool,
    /// The component's file name without extension: the label in logs until the policy has
    /// described itself.
    pub(crate) file: String,
}

/// A policy whose instance can be replaced by a fresh one after the trial.
pub(crate) trait Recyclable: Policy {
    /// Drops the instance and its state, and configures a fresh one. Its random stream starts
    /// again from the seed.
    fn recycle(&mut self) -> Result<(), PolicyFault>;

    /// The resources that the policy has used so far.
    fn usage(&self) -> &Arc<PolicyUsage>;

    /// The policy as the core's trait object.
    fn into_policy(self: Box<Self>) -> Box<dyn Policy>;
}

/// A policy as a component of contract `C`.
pub(crate) struct WasmPolicy<C: Contract> {
    contract: C,
    engine: PolicyEngine,
    limits: Limits,
    settings: String,
    description: Description,
    usage: Arc<PolicyUsage>,
    shows_all_workers: bool,
    /// The last catalog. A fresh instance is configured with it.
    catalog: Option<Catalog>,
    bounds: CatalogBounds,
    instance: Instance<C>,
}

enum Instance<C: Contract> {
    Live(Box<LiveInstance<C>>),
    /// The last call ended in a fault, so the instance cannot be called again. Its host state is
    /// kept for the next one.
    Dead(Box<HostState>),
    /// Only while one instance replaces another.
    Replacing,
}

struct LiveInstance<C: Contract> {
    store: Store<HostState>,
    exports: C::Exports,
}

// === impl WasmPolicy ===

impl<C: Contract> WasmPolicy<C> {
    /// Makes the first instance and asks it to describe itself.
    pub(crate) fn new(contract: C, parts: GuestParts) -> Result<Self, PolicyFault> {
        let GuestParts {
            engine,
            limits,
            artifacts,
            settings,
            seed,
            shows_all_workers,
            file,
        } = parts;
        let state = HostState::new(file, artifacts, seed, &limits);
        let mut policy = Self {
            contract,
            engine,
            settings,
            description: Description::default(),
            usage: Arc::clone(state.usage()),
            shows_all_workers,
            catalog: None,
            bounds: CatalogBounds::default(),
            instance: Instance::Dead(Box::new(state)),
            limits,
        };
        let budget = policy.limits.configure_budget;
        policy.instantiate(budget)?;
        policy.description = policy.call("describe", budget, |contract, live| {
            let description = contract.describe(&live.exports, &mut live.store)?;
            Ok(check(description))
        })?;
        let label = policy.description.label();
        if let Instance::Live(live) = &mut policy.instance {
            live.store.data_mut().label = label;
        }
        Ok(policy)
    }

    /// Replaces the instance by a fresh one, whose random stream goes on.
    fn instantiate(&mut self, budget: Duration) -> Result<(), PolicyFault> {
        let state = match std::mem::replace(&mut self.instance, Instance::Replacing) {
            Instance::Live(live) => live.store.into_data(),
            Instance::Dead(state) => *state,
            Instance::Replacing => unreachable!("an instance is put back before a call returns"),
        };
        self.contract.forget();
        let mut store = self.engine.store(self.contract.engine(), state);
        store.set_hostcall_fuel(self.limits.crossing_bytes);
        store.data_mut().limiter.store_begins();
        store.data_mut().begin_call();
        let made = match self.engine.begin_call(&mut store, budget) {
            Ok(_running) => self.contract.instantiate(&mut store),
            Err(error) => Err(error),
        };
        match made {
            Ok(exports) => {
                self.instance = Instance::Live(Box::new(LiveInstance { store, exports }));
                Ok(())
            }
            Err(error) => {
                let refused = store.data_mut().limiter.take_refused();
                self.instance = Instance::Dead(Box::new(store.into_data()));
                let limits = &self.limits;
                Err(fault::of_error("start", &error, refused, budget, limits))
            }
        }
    }

    /// After a fault: makes a fresh instance and configures it like the last one.
    fn ensure_live(&mut self) -> Result<(), PolicyFault> {
        if matches!(self.instance, Instance::Live(_)) {
            return Ok(());
        }
        let budget = self.limits.restart_budget;
        self.instantiate(budget)?;
        match self.catalog.take() {
            Some(catalog) => {
                let configured = self.configure_live(&catalog, budget);
                self.catalog = Some(catalog);
                configured.inspect_err(|_| self.drop_instance())
            }
            None => Ok(()),
        }
    }

    fn configure_live(&mut self, catalog: &Catalog, budget: Duration) -> Result<(), PolicyFault> {
        self.contract.forget();
        let settings = std::mem::take(&mut self.settings);
        let configured = self.call("configure", budget, |contract, live| {
            live.store.data_mut().configuring = true;
            let answer = contract.configure(&live.exports, &mut live.store, catalog, &settings);
            live.store.data_mut().configuring = false;
            answer
        });
        self.settings = settings;
        configured
    }

    /// Calls the live instance, under a budget. Every fault but an error of the policy's own drops
    /// the instance.
    fn call<T>(
        &mut self,
        name: &str,
        budget: Duration,
        call: impl FnOnce(&mut C, &mut LiveInstance<C>) -> wasmtime::Result<Result<T, String>>,
    ) -> Result<T, PolicyFault> {
        let Instance::Live(live) = &mut self.instance else {
            return Err(PolicyFault::new(
                FaultKind::Trap,
                format!("{name}: no instance"),
            ));
        };
        live.store.data_mut().begin_call();
        let answer = match self.engine.begin_call(&mut live.store, budget) {
            Ok(_running) => call(&mut self.contract, live),
            Err(error) => Err(error),
        };
        live.store.data_mut().end_call();
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(reason)) => Err(fault::of_refusal(name, reason, &self.limits)),
            Err(error) => {
                let refused = live.store.data_mut().limiter.take_refused();
                self.drop_instance();
                let limits = &self.limits;
                Err(fault::of_error(name, &error, refused, budget, limits))
            }
        }
    }

    fn set_repeating(&mut self, repeating: bool) {
        match &mut self.instance {
            Instance::Live(live) => live.store.data_mut().repeating = repeating,
            Instance::Dead(state) => state.repeating = repeating,
            Instance::Replacing => {}
        }
    }

    fn drop_instance(&mut self) {
        self.instance = match std::mem::replace(&mut self.instance, Instance::Replacing) {
            Instance::Live(live) => {
                let mut state = live.store.into_data();
                state.configuring = false;
                Instance::Dead(Box::new(state))
            }
            other => other,
        };
    }
}

impl<C: Contract> Policy for WasmPolicy<C> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        // Kept even if this fails: the next instance is configured with it.
        self.catalog = Some(catalog.clone());
        self.bounds = CatalogBounds::of(catalog);
        let budget = self.limits.configure_budget;
        if !matches!(self.instance, Instance::Live(_)) {
            self.instantiate(budget)?;
        }
        self.configure_live(catalog, budget)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.ensure_live()?;
        let budget = self.limits.window_budget;
        let sent = SentParts {
            fields: self.description.wants,
            changed_workers: self.description.changed_workers && !self.shows_all_workers,
        };
        let crossing_bytes = self.limits.crossing_bytes;
        let bounds = self.bounds.in_window(window, crossing_bytes);
        let mut too_large = None;
        self.call("schedule", budget, |contract, live| {
            let (exports, store) = (&live.exports, &mut live.store);
            store.data_mut().now_us = window.now.0;
            store.set_hostcall_fuel(bounds.bytes);
            let answer = contract.schedule(exports, store, window, sent, &bounds, plan);
            store.set_hostcall_fuel(crossing_bytes);
            Ok(match answer? {
                Ok(()) => Ok(()),
                Err(NoPlan::Failed(reason)) => Err(reason),
                Err(NoPlan::TooLarge(reason)) => {
                    too_large = Some(reason);
                    Ok(())
                }
            })
        })?;
        match too_large {
            Some(reason) => Err(PolicyFault::new(FaultKind::Refused, reason)),
            None => Ok(()),
        }
    }

    /// Empty for a policy whose last call ended in a fault.
    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        if !matches!(self.instance, Instance::Live(_)) {
            return Ok(Vec::new());
        }
        let (budget, most) = (self.limits.window_budget, self.limits.state_bytes);
        self.call("save", budget, |contract, live| {
            let state = contract.save(&live.exports, &mut live.store)?;
            if state.len() > most {
                let reason = format!("state of {} bytes, the limit is {most}", state.len());
                return Ok(Err(reason));
            }
            Ok(Ok(state))
        })
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.ensure_live()?;
        self.contract.forget();
        let budget = self.limits.window_budget;
        self.call("restore", budget, |contract, live| {
            contract.restore(&live.exports, &mut live.store, state)
        })
    }
}

impl<C: Contract> Recyclable for WasmPolicy<C> {
    fn recycle(&mut self) -> Result<(), PolicyFault> {
        self.drop_instance();
        if let Instance::Dead(state) = &mut self.instance {
            state.reseed();
        }
        let budget = self.limits.configure_budget;
        self.instantiate(budget)?;
        let Some(catalog) = self.catalog.take() else {
            return Ok(());
        };
        // The same seed and the same inputs give the same lines as in the trial.
        self.set_repeating(true);
        let configured = self.configure(&catalog);
        self.set_repeating(false);
        configured
    }

    fn usage(&self) -> &Arc<PolicyUsage> {
        &self.usage
    }

    fn into_policy(self: Box<Self>) -> Box<dyn Policy> {
        self
    }
}

/// Checks a description: it becomes labels of metrics and lines of logs.
fn check(mut description: Description) -> Result<Description, String> {
    for (field, text) in [
        ("name", &description.name),
        ("version", &description.version),
    ] {
        let fits = (1..=LABEL_BYTES).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b));
        if !fits {
            return Err(format!(
                "description.{field}: needs 1 to {LABEL_BYTES} letters, digits or ._+-"
            ));
        }
    }
    if description.summary.len() > SUMMARY_BYTES {
        return Err(format!(
            "description.summary: more than {SUMMARY_BYTES} bytes"
        ));
    }
    one_line(&mut description.summary, SUMMARY_BYTES);
    if description.every.is_some_and(|every| every.0 == 0) {
        return Err("description.every: must be at least 1 us".to_owned());
    }
    Ok(description)
}
