//! The live driver of the scheduling core: one per pool, which owns the scheduler and
//! everything that waits for it, and is reached by typed messages only.
//!
//! ```text
//! calls ---Submit--->  inbox  <---Worker--- worker threads
//!                        |    <---Evidence- evidence thread
//!                        v    <---Install-- policy thread
//!         handle every message, poll until empty, wait for the next
//! ```
//!
//! While its thread sleeps, whoever brings news may drive for a moment in its `seat`.

mod answers;
mod drift;
mod handle;
mod inbox;
mod message;
mod models;
mod pace;
mod policies;
mod seat;
mod stats;
mod status;
mod thread;
mod waiters;
mod weights;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::VariantId;
use switchyard_core::profile::Profile;
use switchyard_core::{Scheduler, SchedulerConfig};
use switchyard_executor::{Executor, Worker, WorkerOptions};
use switchyard_policy::recording::RecordingError;
use thiserror::Error;

pub use handle::{Full, PoolHandle};
pub use message::{Call, CallEnd, CallError, Message, RowAnswer, RowInput, Ticket, Watch};
pub use models::{AppState, LoadEnd, ModelStates};
pub use stats::VariantCounters;
pub use status::{PoolStatus, ResidentStatus, WorkerStatus};
pub use weights::PoolWeights;

use self::drift::Drift;
pub(crate) use self::inbox::Sender;
use self::inbox::inbox;
use self::seat::Seat;
use crate::clock::Clock;
use crate::evidence::{EvidenceModels, EvidenceQueue};
use crate::readiness::{Awaited, Readiness};
use crate::recorder::{RecordOptions, Recorder};
use crate::telemetry::{PoolMeters, Registry, names};

/// Room in the inbox beyond what calls may fill, so that what ends requests gets through.
const INBOX_RESERVE: usize = 1_024;

/// Commands to a worker beyond one release for each parked request.
const WORKER_COMMANDS: usize = 64;

/// What a worker runs, and on what.
pub struct PoolExecutor {
    /// What computes.
    pub executor: Box<dyn Executor>,
    /// The threads it computes with.
    pub threads: usize,
    /// The cores they run on, one each; none: any.
    pub cores: Vec<usize>,
}

/// What a pool is made of.
pub struct PoolParts {
    /// Name in logs, metrics and threads.
    pub name: String,
    /// What there is to choose from.
    pub catalog: Arc<Catalog>,
    /// Bounds and seed of the scheduler.
    pub scheduler: SchedulerConfig,
    /// One per worker of the catalog.
    pub executors: Vec<PoolExecutor>,
    /// Variants that each worker never evicts.
    pub pinned: Vec<Vec<VariantId>>,
    /// The weights that the executors share.
    pub weights: PoolWeights,
    /// What batches usually take, for comparison with what they do take.
    pub medians: Profile,
    /// How far the two may be apart, as a ratio either way.
    pub drift_ratio: f64,
    /// How neighbours are counted, by app.
    pub evidence: EvidenceModels,
    /// Calls that may wait to be taken in.
    pub inbox_max: usize,
    /// Where windows and plans are recorded, if they are.
    pub record: Option<RecordOptions>,
}

/// Why a pool could not be started.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The catalog does not hold together.
    #[error("pool {pool}: {error}")]
    Catalog {
        /// The pool.
        pool: String,
        /// What is wrong.
        error: switchyard_core::catalog::CatalogError,
    },
    /// Its windows cannot be recorded.
    #[error("pool {pool}: record: {error}")]
    Record {
        /// The pool.
        pool: String,
        /// What is wrong.
        error: RecordingError,
    },
    /// The system gives no thread.
    #[error("pool {pool}: no thread: {error}")]
    Thread {
        /// The pool.
        pool: String,
        /// What the system said.
        error: io::Error,
    },
}

/// A running pool. Dropping it ends what is left inside and joins its threads.
pub struct Pool {
    handle: Arc<PoolHandle>,
    thread: Option<JoinHandle<()>>,
}

/// Takes a pool off the load balancer when its driver panics: requests inside end with an error
/// as the thread unwinds, and none should follow.
struct Alarm {
    pool: String,
    readiness: Arc<Readiness>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "its scheduler failed; restart the server";
            self.readiness
                .wait_for(&self.pool, Awaited::Restart, reason);
        }
    }
}

// === impl Pool ===

impl Pool {
    /// Starts the driver thread and the worker threads. The native fallback schedules until a
    /// policy is installed; every variant that fits is made resident meanwhile.
    ///
    /// # Errors
    /// The catalog is refused, or the system gives no thread.
    pub fn start(
        parts: PoolParts,
        clock: Clock,
        readiness: &Arc<Readiness>,
        registry: &Registry,
    ) -> Result<Self, PoolError> {
        readiness.wait_for(&parts.name, Awaited::Models, "its models are being loaded");
        let (sender, receiver) = inbox(parts.inbox_max + INBOX_RESERVE);
        let pool = parts.name.clone();
        let no_thread = |error| PoolError::Thread {
            pool: pool.clone(),
            error,
        };
        let seat = Arc::<Seat>::default();
        let handle = PoolHandle::new(&parts, sender.clone(), Arc::clone(&seat), clock, registry);
        let handle = Arc::new(handle);
        let driver = build(parts, clock, readiness, registry, (sender, &seat), &handle)?;

        let alarm = Alarm {
            pool: pool.clone(),
            readiness: Arc::clone(readiness),
        };
        let thread = std::thread::Builder::new()
            .name(format!("{pool}-driver"))
            .spawn(move || {
                let _alarm = alarm;
                seat.drive(driver, receiver);
            })
            .map_err(no_thread)?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }

    /// The way in.
    pub fn handle(&self) -> &Arc<PoolHandle> {
        &self.handle
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.handle.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(pool = self.handle.name(), "the driver thread panicked");
        }
    }
}

fn build(
    parts: PoolParts,
    clock: Clock,
    readiness: &Arc<Readiness>,
    registry: &Registry,
    (sender, seat): (Sender<Message>, &Arc<Seat>),
    handle: &PoolHandle,
) -> Result<thread::Driver, PoolError> {
    let PoolParts {
        name,
        catalog,
        mut scheduler,
        executors,
        pinned,
        weights,
        medians,
        drift_ratio,
        evidence,
        record,
        ..
    } = parts;
    let no_thread = |error| PoolError::Thread {
        pool: name.clone(),
        error,
    };
    scheduler.tells_decisions = record.is_some();
    let scheduler = Scheduler::try_new(Arc::clone(&catalog), scheduler).map_err(|error| {
        PoolError::Catalog {
            pool: name.clone(),
            error,
        }
    })?;
    let recorder = record.map(|options| Recorder::start(options, registry));
    let recorder = recorder.transpose().map_err(|error| PoolError::Record {
        pool: name.clone(),
        error,
    })?;
    let workers = spawn_workers(&catalog, executors, &sender, seat).map_err(no_thread)?;
    let evidence = if evidence.iter().any(Option::is_some) {
        let skipped = registry.counter(names::EVIDENCE_SKIPPED, [("pool", name.as_str())]);
        Some(EvidenceQueue::spawn(&name, evidence, sender, skipped).map_err(no_thread)?)
    } else {
        None
    };
    let meters = PoolMeters::new(registry, &name, &catalog);
    let drift = Drift::new(Arc::clone(&catalog), medians, drift_ratio, registry.clone());
    let counters = Arc::clone(handle.counters());
    let wants_evidence: Arc<AtomicBool> = Arc::clone(handle.wants_evidence_flag());
    Ok(thread::Driver::new(
        name,
        clock,
        scheduler,
        workers,
        evidence,
        meters,
        drift,
        counters,
        wants_evidence,
        Arc::clone(readiness),
        recorder,
        thread::Models {
            pinned,
            weights,
            states: Arc::clone(handle.models()),
        },
    ))
}

fn spawn_workers(
    catalog: &Catalog,
    executors: Vec<PoolExecutor>,
    driver: &Sender<Message>,
    seat: &Arc<Seat>,
) -> io::Result<Vec<Worker>> {
    let specs = (0..)
        .map(switchyard_core::ids::WorkerId)
        .zip(&catalog.workers);
    specs
        .zip(executors)
        .map(|((id, spec), part)| {
            let options = WorkerOptions {
                id,
                name: spec.name.clone(),
                threads: part.threads,
                cores: part.cores,
                // A replacement and an unload of every variant may wait beside the rest.
                commands_max: spec.parked_max as usize
                    + 2 * catalog.variants.len()
                    + WORKER_COMMANDS,
            };
            let (driver, seat) = (driver.clone(), Arc::clone(seat));
            Worker::spawn(options, part.executor, move |event| {
                seat.report(&driver, Message::Worker(event));
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_panics_is_not_ready() {
        let readiness = Arc::new(Readiness::default());
        let alarm = |readiness: &Arc<Readiness>| Alarm {
            pool: "main".to_owned(),
            readiness: Arc::clone(readiness),
        };
        drop(alarm(&readiness));
        assert_eq!(readiness.pool("main"), Ok(()));
        let held = alarm(&readiness);
        let thread = std::thread::spawn(move || {
            let _held = held;
            panic!("as a bug would");
        });
        assert!(thread.join().is_err());
        let error = readiness.pool("main").unwrap_err();
        assert!(error.contains("restart"), "{error}");
    }
}
