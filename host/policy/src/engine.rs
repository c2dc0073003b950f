//! How policies are compiled and run: one wasmtime engine and what cuts a runaway.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Config, Engine, Store};

use crate::budget::{Budget, Clocks};
use crate::host_state::HostState;
use crate::ticker::{Running, Ticker};

/// Fuel that stands for one microsecond: about one instruction per unit, a thousand per
/// microsecond. Nominal, so that the same code is cut at the same instruction anywhere.
const FUEL_PER_US: u64 = 1_000;

/// What holds for every policy of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Stack of one call, in bytes. The thread that calls must have more than this.
    pub stack_bytes: usize,
    /// Compile one component on all cores; otherwise on the calling thread alone.
    pub parallel_compilation: bool,
}

/// An engine, shared by all policies of a process. Clones are the same engine.
#[derive(Clone)]
pub struct PolicyEngine(Arc<Inner>);

struct Inner {
    engine: Engine,
    cut: Cut,
}

enum Cut {
    /// Time, counted by a thread.
    Epochs(Ticker),
    /// Instructions: slower, and the same cut in every run.
    Fuel,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration on this machine.
    #[error("wasm engine: {0:#}")]
    Config(wasmtime::Error),
    /// The ticker's thread could not be started.
    #[error("wasm engine: epoch ticker: {0}")]
    Ticker(#[from] std::io::Error),
}

// === impl EngineOptions ===

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            stack_bytes: 512 << 10,
            parallel_compilation: true,
        }
    }
}

// === impl PolicyEngine ===

impl PolicyEngine {
    /// An engine that cuts by time: what a live server needs.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn live(options: &EngineOptions) -> Result<Self, EngineError> {
        let mut config = config(options);
        config.epoch_interruption(true);
        let engine = Engine::new(&config).map_err(EngineError::Config)?;
        let ticker = Ticker::start({
            let engine = engine.clone();
            move || engine.increment_epoch()
        })?;
        let cut = Cut::Epochs(ticker);
        Ok(Self(Arc::new(Inner { engine, cut })))
    }

    /// An engine that cuts by instructions, 1,000 for each microsecond of budget: what tests
    /// and the simulator need, where the cut itself must repeat. Costs about a third of the
    /// policy's own time.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn deterministic(options: &EngineOptions) -> Result<Self, EngineError> {
        let mut config = config(options);
        config.consume_fuel(true);
        let engine = Engine::new(&config).map_err(EngineError::Config)?;
        let cut = Cut::Fuel;
        Ok(Self(Arc::new(Inner { engine, cut })))
    }

    pub(crate) fn wasmtime(&self) -> &Engine {
        &self.0.engine
    }

    /// A store whose calls are cut at the end of their budget.
    pub(crate) fn store(&self, state: HostState) -> Store<HostState> {
        let mut store = Store::new(&self.0.engine, state);
        store.limiter(|state| &mut state.limiter);
        if let Cut::Epochs(_) = self.0.cut {
            store.epoch_deadline_callback(|mut store| {
                Ok(store.data_mut().budget.look(Clocks::now()))
            });
        }
        store
    }

    /// Gives the store its budget for one call. What it returns must live as long as the
    /// call.
    pub(crate) fn begin_call(
        &self,
        store: &mut Store<HostState>,
        budget: Duration,
    ) -> wasmtime::Result<Option<Running<'_>>> {
        match &self.0.cut {
            Cut::Epochs(ticker) => {
                let running = ticker.call_begins(budget);
                store.data_mut().budget = Budget::begin(budget);
                store.set_epoch_deadline(Budget::FIRST_LOOK);
                Ok(Some(running))
            }
            Cut::Fuel => {
                let us = u64::try_from(budget.as_micros()).unwrap_or(u64::MAX);
                store.set_fuel(us.saturating_mul(FUEL_PER_US))?;
                Ok(None)
            }
        }
    }
}

/// The same for every engine, so that a policy computes the same everywhere: NaNs are
/// canonical, relaxed SIMD (whose results differ between machines) is off, and so is
/// everything a policy has no use for.
///
/// Instances are allocated on demand: a policy keeps its instance, and a pool would set
/// memory aside for what happens after a fault only.
fn config(options: &EngineOptions) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .parallel_compilation(options.parallel_compilation)
        .max_wasm_stack(options.stack_bytes);
    config
}
