//! A server as an executor: each batch is one call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    BatchOutput, CacheError, DeviceFault, ExecuteError, Executor, GiveUp, Job, JobOutcome,
    LoadError, ReportAbsence, Residency,
};

use crate::channel::CallError;
use crate::link::Link;
use crate::options::{ConnectError, RemoteOptions};
use crate::request;
use crate::response;

/// Shortest time of a batch: one that is late when it starts is not cancelled before it is sent.
const LIMIT_MIN: Duration = Duration::from_millis(1);

/// A server that runs batches. It keeps the models itself: all of them count as resident.
pub struct RemoteExecutor {
    options: RemoteOptions,
    /// Or why there is none.
    link: Result<Arc<Link>, String>,
    shared: Arc<Shared>,
}

/// Shared by the executors of one server.
#[derive(Debug)]
struct Shared {
    reports: AtomicU64,
    /// When the server ended its last batch.
    ended: Mutex<Instant>,
}

// === impl RemoteExecutor ===

impl RemoteExecutor {
    /// Connects to the server, and compares its models with the apps' cards.
    ///
    /// # Errors
    /// The server does not answer or is not ready, or a model does not fit.
    pub fn connect(options: RemoteOptions) -> Result<Self, ConnectError> {
        let link = Link::open(&options)?;
        Ok(Self::on(options, link))
    }

    pub(crate) fn on(options: RemoteOptions, link: Link) -> Self {
        Self {
            options,
            link: Ok(Arc::new(link)),
            shared: Shared::new(),
        }
    }

    /// A server that is away: the first command ends its worker, which is then started anew until the
    /// server answers.
    pub fn away(options: RemoteOptions, reason: String) -> Self {
        Self {
            options,
            link: Err(reason),
            shared: Shared::new(),
        }
    }

    fn answer(&mut self, job: &mut Job) -> Result<BatchOutput, ExecuteError> {
        let link = match &self.link {
            Ok(link) => link,
            Err(reason) => {
                let reason = reason.clone();
                return Err(ExecuteError::Away { reason });
            }
        };
        let model = self.options.models.get(job.variant.index());
        let model = model.ok_or_else(|| ExecuteError::Job {
            variant: format!("variant {}", job.variant.0),
            reason: "the worker has no such variant".to_owned(),
        })?;
        let version = job.exit.and_then(|exit| model.versions.get(exit.index()));
        let (Some(version), 0) = (version, job.from_stage) else {
            return Err(ExecuteError::Job {
                variant: model.name.clone(),
                reason: "a remote worker runs from the first stage to an exit".to_owned(),
            });
        };
        let rows = job.rows.len();
        let body = request::infer(model, version, job)?;
        let left = |until: Instant| {
            until
                .saturating_duration_since(Instant::now())
                .max(LIMIT_MIN)
        };
        let left = job
            .until
            .map(left)
            .filter(|left| *left < self.options.timeout);
        let answer = link.infer(body, left.unwrap_or(self.options.timeout));
        let refused = |reason, repeatable| ExecuteError::Remote {
            variant: model.name.clone(),
            reason,
            repeatable,
        };
        let answer = answer.map_err(|error| match error {
            CallError::Refused { reason, repeatable } => refused(reason, repeatable),
            // The requests ran out of time, the server did not.
            CallError::TimedOut(reason) if left.is_some() => {
                refused(format!("{reason}, the deadline of its requests"), true)
            }
            CallError::Lost(reason) | CallError::TimedOut(reason) => ExecuteError::Away { reason },
        })?;
        response::output(model, rows, &answer).map_err(|reason| ExecuteError::Remote {
            variant: model.name.clone(),
            reason,
            repeatable: true,
        })
    }
}

// === impl Shared ===

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            reports: AtomicU64::new(0),
            ended: Mutex::new(Instant::now()),
        })
    }

    /// The time of a batch that was sent then and ends now, without its wait for the batch before.
    fn took(&self, sent: Instant) -> Duration {
        let now = Instant::now();
        // Whole at every point where a panic could strike.
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *ended, now);
        now.saturating_duration_since(sent.max(before))
    }
}

impl Executor for RemoteExecutor {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let start = Instant::now();
        let result = self.answer(job);
        self.shared.reports.fetch_add(1, Ordering::Relaxed);
        JobOutcome {
            result,
            // With the way there and back, as in the profile.
            compute: Micros::from(self.shared.took(start)),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, _: RequestId) {}

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        let Err(reason) = &self.link else {
            return Ok(Micros::ZERO);
        };
        let model = self.options.models.get(variant.index());
        Err(CacheError::Load(LoadError {
            variant: model.map_or_else(String::new, |model| model.name.clone()),
            reason: reason.clone(),
            repeated: false,
            fault: Some(DeviceFault::Lost),
        }))
    }

    fn another(&self) -> Option<Box<dyn Executor>> {
        let link = self.link.as_ref().ok()?;
        Some(Box::new(Self {
            options: self.options.clone(),
            link: Ok(Arc::clone(link)),
            shared: Arc::clone(&self.shared),
        }))
    }

    fn watch(&mut self, report: ReportAbsence) -> Option<GiveUp> {
        let link = self.link.as_ref().ok()?;
        Some(link.watch(report))
    }

    fn residency(&self) -> Residency {
        let models = match &self.link {
            Ok(_) => self.options.models.len() as u32,
            Err(_) => 0,
        };
        Residency {
            resident: (0..models).map(VariantId).collect(),
            version: self.shared.reports.load(Ordering::Relaxed),
            ..Residency::default()
        }
    }
}
