//! Artifacts made while a pool serves: when an app's load exceeds every load prepared for, a
//! configured command makes more (RAMSIS section 3: until then the highest table serves a load
//! beyond all tables).
//!
//! The server knows nothing of the artifacts. The command writes into the folder of the policy's
//! artifacts; the policy watcher takes the change in like any other, with a trial before the swap.

mod command;
mod pauses;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use switchyard_core::ids::AppId;
use switchyard_threads::ServiceThread;
use thiserror::Error;

use self::command::{Ended, Template};
use self::pauses::Pauses;
use crate::config::PrepareConfig;
use crate::driver::{Message, PoolHandle};
use crate::telemetry::{Counter, Registry, names};

/// Interval between two looks at the loads.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest wait for the driver's answer.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// Ratio of the load prepared for to the load seen: a load that grows slowly does not start a run
/// every second.
const HEADROOM: f64 = 1.1;

/// Everything that a preparer is started with.
pub struct PreparerParts {
    /// The pool whose loads count.
    pub pool: Arc<PoolHandle>,
    /// Command and condition.
    pub config: PrepareConfig,
    /// The folder of the policy's artifacts.
    pub artifacts: PathBuf,
    /// The profile in use.
    pub profile: PathBuf,
    /// The zoo of each app, by app.
    pub zoos: Vec<PathBuf>,
    /// Where runs are counted.
    pub registry: Registry,
}

/// Runs the command until dropped; a run under way is killed then.
pub struct Preparer {
    // Dropped in this order: the channel closes, which ends the run and the thread, and the thread
    // is joined.
    _stop: Sender<()>,
    _thread: ServiceThread,
}

/// Why a preparer could not be started.
#[derive(Debug, Error)]
pub enum PreparerError {
    /// The path of this program, which the command names, is unknown.
    #[error("command: {{switchyard}}: the path of this program is unknown: {0}")]
    OwnPath(#[source] io::Error),
    /// The system refused a thread.
    #[error("no thread for the command: {0}")]
    Thread(#[source] io::Error),
}

struct Preparing {
    pool: Arc<PoolHandle>,
    template: Template,
    /// By app.
    zoos: Vec<PathBuf>,
    timeout: Duration,
    /// Highest load prepared for, by app.
    prepared_rps: Vec<f64>,
    /// Of the apps whose last run failed.
    pauses: Pauses,
    succeeded: Counter,
    failed: Counter,
}

// === impl Preparer ===

impl Preparer {
    /// Starts the thread that looks at the loads.
    ///
    /// # Errors
    /// The path of this program is unknown, or the system refuses a thread.
    pub fn start(parts: PreparerParts) -> Result<Self, PreparerError> {
        let PreparerParts {
            pool,
            config,
            artifacts,
            profile,
            zoos,
            registry,
        } = parts;
        let counter = |result| {
            let labels = [("pool", pool.name()), ("result", result)];
            registry.counter(names::PREPARE_RUNS, labels)
        };
        let apps = pool.catalog().apps.len();
        let preparing = Preparing {
            succeeded: counter("succeeded"),
            failed: counter("failed"),
            template: Template::try_new(config.command, &artifacts, &profile)
                .map_err(PreparerError::OwnPath)?,
            timeout: Duration::from_secs(config.timeout_s),
            prepared_rps: vec![config.above_rps; apps],
            pauses: Pauses::default(),
            zoos,
            pool: Arc::clone(&pool),
        };
        let (stop, stopped) = bounded(0);
        let name = format!("{}-prepare", pool.name());
        let thread = ServiceThread::spawn(name, move || preparing.run(&stopped))
            .map_err(PreparerError::Thread)?;
        Ok(Self {
            _stop: stop,
            _thread: thread,
        })
    }
}

// === impl Preparing ===

impl Preparing {
    fn run(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            for (app, load_rps) in self.loads_to_prepare_for(Instant::now()) {
                if self.prepare(app, load_rps, stopped).is_break() {
                    return;
                }
            }
        }
    }

    /// Apps whose load exceeds every load prepared for, with the load to prepare for.
    fn loads_to_prepare_for(&self, now: Instant) -> Vec<(AppId, f64)> {
        let rates = self.arrival_rates().unwrap_or_default();
        let apps = (0..).map(AppId).zip(rates).zip(&self.prepared_rps);
        apps.filter(|((app, rate), prepared)| rate > *prepared && !self.pauses.is_paused(*app, now))
            .map(|((app, rate), _)| (app, rounded_up(rate * HEADROOM)))
            .collect()
    }

    /// Requests per second of each app in the latest window.
    fn arrival_rates(&self) -> Option<Vec<f64>> {
        let (reply, windows) = bounded(1);
        self.pool.send(Message::Windows(1, reply));
        let windows = windows.recv_timeout(DRIVER_PATIENCE).ok()?;
        Some(windows.into_iter().next_back()?.arrival_rate)
    }

    fn prepare(
        &mut self,
        app: AppId,
        load_rps: f64,
        stopped: &Receiver<()>,
    ) -> std::ops::ControlFlow<()> {
        let catalog = self.pool.catalog();
        let name = catalog.app(app).map_or("", |app| app.name.as_str());
        let pool = self.pool.name();
        let began = Instant::now();
        let zoo = self
            .zoos
            .get(app.index())
            .map_or(Path::new(""), PathBuf::as_path);
        let command = self.template.command(name, zoo, load_rps);
        match command::run(command, self.timeout, stopped) {
            Ended::Stopped => return std::ops::ControlFlow::Break(()),
            Ended::Succeeded => {
                self.succeeded.increment(1);
                self.prepared_rps[app.index()] = load_rps;
                self.pauses.succeeded(app);
                let seconds = began.elapsed().as_secs_f64();
                tracing::info!(pool, app = name, load_rps, seconds, "artifacts prepared");
            }
            Ended::Failed(reason) => {
                self.failed.increment(1);
                let failure = self
                    .pauses
                    .failed(app, &reason, Instant::now(), began.elapsed());
                let retry_s = failure.pause.as_secs();
                if failure.is_new {
                    tracing::error!(
                        pool,
                        app = name,
                        load_rps,
                        retry_s,
                        reason,
                        "prepare failed; it is tried again, less and less often"
                    );
                } else {
                    tracing::debug!(pool, app = name, retry_s, reason, "prepare failed again");
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    }
}

/// Rounds up to two digits, so that the loads of tables are easy to tell apart.
fn rounded_up(load_rps: f64) -> f64 {
    let step = 10f64.powf(load_rps.log10().floor() - 1.0);
    (load_rps / step).ceil() * step
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
