//! How policies are compiled and run: one wasmtime engine, and the limit on each call.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::{Config, Engine, Store, Strategy};

use crate::budget::{CallBudget, ThreadClocks};
use crate::compiler::Compiler;
use crate::host_state::HostState;
use crate::ticker::{RunningCall, Ticker};

/// Fuel per microsecond of budget. A unit is about one instruction. The rate is nominal, so that
/// the same code is cut at the same instruction on every machine.
const FUEL_PER_US: u64 = 1_000;

/// Settings for all policies of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Stack of one call, in bytes. The calling thread must have more.
    pub stack_bytes: usize,
    /// Threads that compile. They have a low priority.
    pub compile_threads: usize,
    /// Longest time to compile one component. A component that takes longer is refused.
    pub compile_time_max: Duration,
}

/// An engine, shared by all policies of a process. Clones are the same engine.
#[derive(Clone)]
pub struct PolicyEngine(Arc<EngineInner>);

struct EngineInner {
    engine: Engine,
    limit: CallLimit,
    compiler: Compiler,
    baseline: Option<Baseline>,
}

/// A second compiler, for code that is needed soon: takes about a sixth of the time, and its code runs
/// slower. It has a turn of its own, so that it does not wait for the first one.
pub(crate) struct Baseline {
    pub(crate) engine: Engine,
    pub(crate) compiler: Compiler,
}

/// How the code of a policy was compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeTier {
    /// Fast to compile, slow to run: until the other one is there.
    Baseline,
    /// With all optimisations.
    #[default]
    Optimized,
}

/// How the end of a call's budget is found.
enum CallLimit {
    /// By time, which a thread counts.
    Epochs(Ticker),
    /// By instructions: slower, and the same in every run.
    Fuel,
}

/// Why an engine cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration on this machine.
    #[error("wasm engine: {0:#}")]
    Config(wasmtime::Error),
    /// The system gives no thread for the ticker.
    #[error("wasm engine: epoch ticker: {0}")]
    Ticker(#[from] std::io::Error),
}

// === impl EngineOptions ===

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            stack_bytes: 512 << 10,
            compile_threads: all_cores_but_one(),
            // A Python component of the largest size takes about a minute on one slow core.
            compile_time_max: Duration::from_secs(120),
        }
    }
}

// === impl PolicyEngine ===

impl PolicyEngine {
    /// An engine that limits calls by time, for a live server. The sign of a NaN is the machine's there: making
    /// it the same takes a quarter of the time of a policy that computes much.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn live(options: &EngineOptions) -> Result<Self, EngineError> {
        let mut config = config(options);
        config.epoch_interruption(true);
        let engine = Engine::new(&config).map_err(EngineError::Config)?;
        // Winch does not exist for every machine: then all code is optimised.
        let baseline = Engine::new(config.strategy(Strategy::Winch)).ok();
        let ticker = Ticker::start({
            let engines = [Some(engine.clone()), baseline.clone()];
            move || engines.iter().flatten().for_each(Engine::increment_epoch)
        })?;
        let limit = CallLimit::Epochs(ticker);
        Ok(Self::new(engine, baseline, limit, options))
    }

    /// An engine that limits calls by instructions, 1,000 for each microsecond of budget. Tests
    /// and the simulator need it, because there the same call must be cut at the same instruction, with the
    /// same NaNs. The count costs about a third of the policy's own time.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn deterministic(options: &EngineOptions) -> Result<Self, EngineError> {
        let mut config = config(options);
        config.consume_fuel(true);
        config.cranelift_nan_canonicalization(true);
        let engine = Engine::new(&config).map_err(EngineError::Config)?;
        Ok(Self::new(engine, None, CallLimit::Fuel, options))
    }

    fn new(
        engine: Engine,
        baseline: Option<Engine>,
        limit: CallLimit,
        options: &EngineOptions,
    ) -> Self {
        let compiler = || Compiler::new(options.compile_threads, options.compile_time_max);
        Self(Arc::new(EngineInner {
            engine,
            limit,
            compiler: compiler(),
            baseline: baseline.map(|engine| Baseline {
                engine,
                compiler: compiler(),
            }),
        }))
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.0.compiler
    }

    /// For code of the first tier; none: this engine compiles only one.
    pub(crate) fn baseline(&self) -> Option<&Baseline> {
        self.0.baseline.as_ref()
    }

    pub(crate) fn wasmtime(&self) -> &Engine {
        &self.0.engine
    }

    /// A store for code of `engine`, one of this one's, whose calls are cut at the end of their budget.
    pub(crate) fn store(&self, engine: &Engine, state: HostState) -> Store<HostState> {
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.limiter);
        if let CallLimit::Epochs(_) = self.0.limit {
            store.epoch_deadline_callback(|mut store| {
                Ok(store.data_mut().budget.look(ThreadClocks::now()))
            });
        }
        store
    }

    /// Gives the store its budget for one call. The result must live as long as the call.
    pub(crate) fn begin_call(
        &self,
        store: &mut Store<HostState>,
        budget: Duration,
    ) -> wasmtime::Result<Option<RunningCall<'_>>> {
        match &self.0.limit {
            CallLimit::Epochs(ticker) => {
                let running = ticker.call_begins(budget);
                store.data_mut().budget = CallBudget::begin(budget);
                store.set_epoch_deadline(CallBudget::FIRST_LOOK);
                Ok(Some(running))
            }
            CallLimit::Fuel => {
                let us = u64::try_from(budget.as_micros()).unwrap_or(u64::MAX);
                store.set_fuel(us.saturating_mul(FUEL_PER_US))?;
                Ok(None)
            }
        }
    }
}

/// Compiling leaves a core to serving.
fn all_cores_but_one() -> usize {
    let cores = switchyard_threads::cores().map_or(1, |cores| cores.len());
    cores.saturating_sub(1).max(1)
}

/// The same for every engine, so that a policy computes the same on every machine: relaxed SIMD, whose
/// results differ between machines, is off. Features that policies do not use are off too.
///
/// Instances are allocated on demand: a policy keeps its instance, and a pool would reserve memory
/// that is used only after a fault.
fn config(options: &EngineOptions) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // On the threads of the `Compiler`.
        .parallel_compilation(true)
        .max_wasm_stack(options.stack_bytes);
    config
}
