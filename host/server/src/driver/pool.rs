//! A running pool: the driver with its timer thread, its workers and their queues.

use std::io;
use std::sync::Arc;

use switchyard_core::Scheduler;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::WorkerId;
use switchyard_executor::WorkerOptions;
use switchyard_threads::ServiceThread;
use thiserror::Error;

use super::combining::Combining;
use super::crew::{Crew, FirstStart};
use super::drift::Drift;
use super::handle::PoolHandle;
use super::message::Message;
use super::parts::{PoolExecutor, PoolParts};
use super::pulse::Pulse;
use super::restarts::{Restarter, WorkerStarter};
use super::traces::PoolTraces;
use super::turn::{Driver, DriverParts};
use crate::clock::Clock;
use crate::evidence::{EvidenceModels, EvidenceQueue};
use crate::readiness::{Awaited, Readiness};
use crate::telemetry::{PoolMeters, Registry, names};

/// Room in the queue beyond `inbox_max` calls, so that messages that end requests get through.
const QUEUE_RESERVE: usize = 1_024;

/// Commands to a worker beyond one release for each parked request.
const WORKER_COMMANDS: usize = 64;

/// Why a pool did not start.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The catalog contradicts itself.
    #[error("pool {pool}: {error}")]
    Catalog {
        /// The pool.
        pool: String,
        /// The contradiction.
        error: switchyard_core::catalog::CatalogError,
    },
    /// A worker does not start.
    #[error("pool {pool}: worker {worker}: {reason}")]
    Worker {
        /// The pool.
        pool: String,
        /// The worker.
        worker: String,
        /// The reason.
        reason: String,
    },
    /// The system refuses a thread.
    #[error("pool {pool}: no thread: {error}")]
    Thread {
        /// The pool.
        pool: String,
        /// The system's reason.
        error: io::Error,
    },
}

/// A running pool. Dropping it ends the requests inside and joins its threads.
pub struct Pool {
    handle: Arc<PoolHandle>,
    _timer: ServiceThread,
}

/// Takes a pool off the load balancer when its driver panics: the requests inside end with an
/// error as the thread unwinds, and none should follow.
struct Alarm {
    readiness: Arc<Readiness>,
    pulse: Arc<Pulse>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.pulse.fail();
            let reason = "its scheduler failed; restart the server";
            self.readiness.wait_for(Awaited::Restart, reason);
        }
    }
}

// === impl Pool ===

impl Pool {
    /// Starts the driver and the worker threads. The native fallback schedules until a policy is
    /// installed. Meanwhile the workers load every variant that fits.
    ///
    /// # Errors
    /// The catalog is refused, the recording cannot be written, or the system refuses a thread.
    pub fn start(parts: PoolParts, clock: Clock, registry: &Registry) -> Result<Self, PoolError> {
        let pool = parts.name.clone();
        let combining = Arc::new(Combining::new(parts.inbox_max + QUEUE_RESERVE));
        let handle = PoolHandle::new(&parts, Arc::clone(&combining), clock, registry);
        let readiness = handle.readiness();
        readiness.wait_for(Awaited::Models, "its models are being loaded");
        let mut driver = build(parts, clock, registry, &combining, &handle)?;

        let alarm = Alarm {
            readiness: Arc::clone(handle.readiness()),
            pulse: Arc::clone(handle.pulse()),
        };
        let timer = ServiceThread::spawn(format!("{pool}-driver"), {
            let combining = Arc::clone(&combining);
            move || {
                let _alarm = alarm;
                driver.begin();
                combining.run(driver);
            }
        });
        let timer = timer.map_err(|error| PoolError::Thread { pool, error })?;
        Ok(Self {
            handle: Arc::new(handle),
            _timer: timer.with_stop(move || combining.stop()),
        })
    }

    /// The way in.
    pub fn handle(&self) -> &Arc<PoolHandle> {
        &self.handle
    }
}

fn build(
    parts: PoolParts,
    clock: Clock,
    registry: &Registry,
    combining: &Arc<Combining<Driver>>,
    handle: &PoolHandle,
) -> Result<Driver, PoolError> {
    let PoolParts {
        name,
        catalog,
        scheduler,
        executors,
        pinned,
        weights,
        medians,
        drift_ratio,
        evidence,
        traces,
        ..
    } = parts;
    let no_thread = |error| PoolError::Thread {
        pool: name.clone(),
        error,
    };
    let pending_max = scheduler.pending_max;
    let scheduler = Scheduler::try_new(Arc::clone(&catalog), scheduler).map_err(|error| {
        PoolError::Catalog {
            pool: name.clone(),
            error,
        }
    })?;
    let crew = spawn_crew(&name, &catalog, executors, combining)?;
    let evidence = spawn_evidence(&name, evidence, registry, combining).map_err(no_thread)?;
    let drift = Drift::new(
        &name,
        Arc::clone(&catalog),
        medians,
        drift_ratio,
        registry.clone(),
    );
    Ok(Driver::new(DriverParts {
        traces: traces.map(|tracer| PoolTraces::new(tracer, &name, &catalog)),
        meters: PoolMeters::new(registry, &name, &catalog, pending_max),
        name,
        clock,
        scheduler,
        crew,
        pulse: Arc::clone(handle.pulse()),
        pinned,
        weights,
        evidence,
        drift,
        counters: Arc::clone(handle.counters()),
        wants_evidence: Arc::clone(handle.wants_evidence_flag()),
        states: Arc::clone(handle.models()),
        readiness: Arc::clone(handle.readiness()),
    }))
}

fn spawn_crew(
    pool: &str,
    catalog: &Catalog,
    executors: Vec<PoolExecutor>,
    combining: &Arc<Combining<Driver>>,
) -> Result<Crew, PoolError> {
    let (mut starters, mut addresses) = (Vec::new(), Vec::new());
    for ((id, spec), part) in (0..).map(WorkerId).zip(&catalog.workers).zip(executors) {
        let combining = Arc::clone(combining);
        addresses.push(part.address);
        starters.push(WorkerStarter {
            options: WorkerOptions {
                id,
                name: spec.name.clone(),
                threads: part.threads,
                cores: part.cores,
                // A load, an unload and a replacement of every variant may wait next to the rest.
                commands_max: spec.parked_max as usize
                    + 3 * catalog.variants.len()
                    + WORKER_COMMANDS,
                outstanding: spec.outstanding as usize,
            },
            build: part.build,
            pause_max: part.pause_max,
            on_event: Arc::new(move |start, event| {
                // An error means that the driver has ended and has no use for the event.
                let _ = combining.send_inline(Message::Worker(start, event));
            }),
        });
    }
    let workers = starters.iter_mut().zip(addresses);
    let workers = workers.map(|(starter, address)| {
        let started = starter.start(0).map_err(|reason| PoolError::Worker {
            pool: pool.to_owned(),
            worker: starter.options.name.clone(),
            reason,
        });
        Ok(FirstStart {
            worker: started?,
            pause_max: starter.pause_max,
            address,
        })
    });
    let workers = workers.collect::<Result<_, PoolError>>()?;
    let combining = Arc::clone(combining);
    let restarter = Restarter::spawn(pool, starters, move |worker, start, restarted| {
        // As above.
        let _ = combining.send(Message::Restarted(worker, start, restarted));
    });
    let restarter = restarter.map_err(|error| PoolError::Thread {
        pool: pool.to_owned(),
        error,
    })?;
    Ok(Crew::new(workers, restarter))
}

/// None if no app has an evidence model.
fn spawn_evidence(
    pool: &str,
    models: EvidenceModels,
    registry: &Registry,
    combining: &Arc<Combining<Driver>>,
) -> io::Result<Option<EvidenceQueue>> {
    if models.iter().all(Option::is_none) {
        return Ok(None);
    }
    let skipped = registry.counter(names::EVIDENCE_SKIPPED, [("pool", pool)]);
    let combining = Arc::clone(combining);
    let queue = EvidenceQueue::spawn(pool, models, skipped, move |request, counts| {
        let message = Message::Evidence { request, counts };
        combining.send(message).is_ok()
    });
    queue.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_panics_is_not_ready() {
        let readiness = Arc::new(Readiness::new("main"));
        let pulse = Arc::new(Pulse::default());
        let alarm = |readiness: &Arc<Readiness>| Alarm {
            readiness: Arc::clone(readiness),
            pulse: Arc::clone(&pulse),
        };
        drop(alarm(&readiness));
        assert_eq!(readiness.check(), Ok(()));
        assert!(!pulse.has_failed());
        let held = alarm(&readiness);
        let thread = std::thread::spawn(move || {
            let _held = held;
            panic!("as a bug would");
        });
        assert!(thread.join().is_err());
        let error = readiness.check().unwrap_err();
        assert!(error.contains("restart"), "{error}");
        assert!(pulse.has_failed());
    }
}
