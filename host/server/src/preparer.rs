//! RAMSIS tables for loads that none is for yet: made beside the serving path, put where the policy
//! reads them, and taken in by it like any other change of its files (RAMSIS section 3: a load
//! beyond all tables is served by the highest until there is one for it).

mod sets;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use metrics::Counter;
use ramsis_prepare::tables::Set;
use ramsis_prepare::{Generator, Loads, PrepareError, Progress, Spec, prepare};
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;
use thiserror::Error;

use self::sets::{app_of, models_of, sets_in};
use crate::driver::{Message, PoolHandle};
use crate::telemetry::{Registry, names};

/// How often loads are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the driver may take to answer.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// A table is for so much more than the load that called for it, so that a load that grows does
/// not call for one every second.
const HEADROOM: f64 = 1.1;

/// What a preparer is started with.
pub struct PreparerParts {
    /// The pool whose loads count.
    pub pool: Arc<PoolHandle>,
    /// The policy's own folder, in which sets lie.
    pub folder: PathBuf,
    /// Where tables are counted.
    pub registry: Registry,
}

/// Makes tables until dropped.
pub struct Preparer {
    cancelled: Arc<AtomicBool>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why tables cannot be made.
#[derive(Debug, Error)]
pub enum PreparerError {
    /// The system gives no thread.
    #[error("no thread for tables: {0}")]
    Thread(#[from] io::Error),
    /// The system gives no thread to compute with.
    #[error("no thread for tables: {0}")]
    Pool(#[from] rayon::ThreadPoolBuildError),
}

struct Preparing {
    pool: Arc<PoolHandle>,
    catalog: Arc<Catalog>,
    folder: PathBuf,
    /// One thread: serving goes first.
    threads: rayon::ThreadPool,
    cancelled: Arc<AtomicBool>,
    made: Counter,
    /// What was complained about last, so that it is said once.
    complaint: Option<String>,
}

// === impl Preparer ===

impl Preparer {
    /// Starts looking.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(parts: PreparerParts) -> Result<Self, PreparerError> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let name = format!("{}-tables", parts.pool.name());
        let threads = rayon::ThreadPoolBuilder::new().num_threads(1);
        let labels = [("pool", parts.pool.name())];
        let preparing = Preparing {
            catalog: Arc::clone(parts.pool.catalog()),
            made: parts.registry.counter(names::TABLES_PREPARED, labels),
            pool: parts.pool,
            folder: parts.folder,
            threads: threads.thread_name(|_| "tables".to_owned()).build()?,
            cancelled: Arc::clone(&cancelled),
            complaint: None,
        };
        let (stop, stopped) = bounded(0);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || preparing.run(&stopped))?;
        Ok(Self {
            cancelled,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that makes tables panicked");
        }
    }
}

// === impl Preparing ===

impl Preparing {
    fn run(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let Some(rates) = self.rates() else { continue };
            for (folder, set) in sets_in(&self.folder) {
                let done = set.and_then(|set| self.extend(&folder, &set, &rates));
                match done {
                    Ok(()) => {}
                    Err(_) if self.cancelled.load(Ordering::Relaxed) => return,
                    Err(reason) => self.complain(format!("{}: {reason}", folder.display())),
                }
            }
        }
    }

    /// Requests per second of each app, as the policy saw them last.
    fn rates(&self) -> Option<Vec<f64>> {
        let (reply, windows) = bounded(1);
        self.pool.send(Message::Windows(1, reply));
        let windows = windows.recv_timeout(DRIVER_PATIENCE).ok()?;
        Some(windows.into_iter().next_back()?.arrival_rate)
    }

    /// Makes the table for the load of a set's app, if it is beyond the set.
    fn extend(&mut self, folder: &std::path::Path, set: &Set, rates: &[f64]) -> Result<(), String> {
        let app = app_of(&self.catalog, set)?;
        let load = rates.get(app.index()).copied().unwrap_or_default();
        let highest = set.tables.last().map_or(0.0, |table| table.load_rps);
        if load <= highest {
            return Ok(());
        }
        let generator = self.generator(set, app)?;
        let capacity = generator.capacity_rps();
        if highest >= capacity {
            return Ok(()); // More tables would not make the workers faster.
        }
        let wanted = rounded_up(load * HEADROOM).min(rounded_up(capacity));
        let before = set.tables.iter().map(|table| table.load_rps);
        let loads = Loads::Each(before.chain([wanted]).collect());
        let made = self.prepare(&generator, &loads, folder);
        let made = made.map_err(|error| error.to_string())?;
        let Some(entry) = made.tables.last() else {
            return Ok(());
        };
        self.made.increment(1);
        tracing::info!(
            pool = self.pool.name(),
            folder = %folder.display(),
            load,
            load_rps = entry.load_rps,
            expected_accuracy = entry.expected_accuracy,
            expected_violation_rate = entry.expected_violation_rate,
            seconds = entry.seconds,
            "table prepared for a load beyond all others",
        );
        Ok(())
    }

    fn generator(&self, set: &Set, app: AppId) -> Result<Generator, String> {
        let models = models_of(&self.catalog, set, app)?;
        Generator::new(Spec::of_set(set, models)).map_err(|error| error.to_string())
    }

    fn prepare(
        &self,
        generator: &Generator,
        loads: &Loads,
        folder: &std::path::Path,
    ) -> Result<Set, PrepareError> {
        let show = |_: Progress<'_>| {};
        self.threads
            .install(|| prepare(generator, loads, folder, &show, &self.cancelled))
    }

    fn complain(&mut self, complaint: String) {
        if self.complaint.as_ref() != Some(&complaint) {
            tracing::error!(
                pool = self.pool.name(),
                complaint,
                "no table can be prepared"
            );
            self.complaint = Some(complaint);
        }
    }
}

/// To two digits: tables for round loads are told apart at a glance.
fn rounded_up(load: f64) -> f64 {
    let step = 10f64.powf(load.log10().floor() - 1.0);
    (load / step).ceil() * step
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn loads_are_rounded_up_to_two_digits() {
        assert_eq!(rounded_up(3_901.0), 4_000.0);
        assert_eq!(rounded_up(4_000.0), 4_000.0);
        assert!((rounded_up(7.31) - 7.4).abs() < 1e-9);
    }
}
