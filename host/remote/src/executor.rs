//! A server as an executor: each batch is one call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    BatchOutput, CacheError, DeviceFault, ExecuteError, Executor, GiveUp, Job, JobOutcome,
    LoadError, ReleaseAtOnce, ReportAbsence, Residency,
};
use switchyard_protocol::StageCall;
use switchyard_protocol::grpc::messages::inference::ModelInferResponse;

use crate::channel::CallError;
use crate::link::Link;
use crate::model::RemoteModel;
use crate::options::{ConnectError, RemoteOptions};
use crate::parked::ParkedRows;
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
    parked: ParkedRows,
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
        let link = Arc::clone(link);
        let model = self.options.models.get(job.variant.index());
        let model = model.ok_or_else(|| ExecuteError::Job {
            variant: format!("variant {}", job.variant.0),
            reason: "the worker has no such variant".to_owned(),
        })?;
        let Some(call) = self.shared.parked.call(job)? else {
            let answer = self.send(&link, model, None, job)?;
            return read(model, job, &answer);
        };
        if !link.runs_stages() {
            return Err(ExecuteError::Job {
                variant: model.name.clone(),
                reason: "its server runs from the first stage to an exit".to_owned(),
            });
        }
        let output = self
            .send(&link, model, Some(&call), job)
            .and_then(|answer| match call.gives_outputs() {
                true => read(model, job, &answer),
                false if answer.outputs.is_empty() => Ok(BatchOutput::Parked),
                // It would answer the next stages from nothing.
                false => Err(refused(
                    model,
                    "answered instead of parking".to_owned(),
                    true,
                )),
            });
        match &output {
            Ok(BatchOutput::Parked) => self.shared.parked.park(job, &call),
            Ok(_) => self.shared.parked.forget(job),
            // The batch may have run.
            Err(_) => {
                self.shared.parked.forget(job);
                let call = self.shared.parked.release(call.rows);
                link.tell(request::release(model, &call));
            }
        }
        output
    }

    /// Sends a batch, or some stages of it, within the time that its requests have.
    fn send(
        &self,
        link: &Link,
        model: &RemoteModel,
        stages: Option<&StageCall>,
        job: &mut Job,
    ) -> Result<ModelInferResponse, ExecuteError> {
        let version = match job.exit {
            Some(exit) => model.versions.get(exit.index()),
            None => model.versions.last(),
        };
        let version = version.ok_or_else(|| ExecuteError::Job {
            variant: model.name.clone(),
            reason: "the worker has no such exit".to_owned(),
        })?;
        let body = request::infer(model, version, stages, job)?;
        let left = |until: Instant| {
            until
                .saturating_duration_since(Instant::now())
                .max(LIMIT_MIN)
        };
        let answer = link.infer(body, job.until.map(left));
        answer.map_err(|error| match error {
            CallError::Refused { reason, repeatable } => refused(model, reason, repeatable),
            CallError::Late(reason) => refused(
                model,
                format!("{reason}, the deadline of its requests"),
                true,
            ),
            CallError::Lost(reason) | CallError::TimedOut(reason) => ExecuteError::Away { reason },
        })
    }
}

fn read(
    model: &RemoteModel,
    job: &Job,
    answer: &ModelInferResponse,
) -> Result<BatchOutput, ExecuteError> {
    let output = response::output(model, job.rows.len(), answer);
    output.map_err(|reason| refused(model, reason, true))
}

fn refused(model: &RemoteModel, reason: String, repeatable: bool) -> ExecuteError {
    ExecuteError::Remote {
        variant: model.name.clone(),
        reason,
        repeatable,
    }
}

// === impl Shared ===

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            reports: AtomicU64::new(0),
            ended: Mutex::new(Instant::now()),
            parked: ParkedRows::new(),
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
        if result.is_err() && job.from_stage > 0 {
            // After an error none of its requests is parked.
            job.rows.iter().for_each(|row| self.release(row.request));
        }
        self.shared.reports.fetch_add(1, Ordering::Relaxed);
        JobOutcome {
            result,
            // With the way there and back, as in the profile.
            compute: Micros::from(self.shared.took(start)),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, request: RequestId) {
        if let Some(release) = self.release_at_once() {
            release(request);
        }
    }

    fn release_at_once(&self) -> Option<ReleaseAtOnce> {
        let link = Arc::clone(self.link.as_ref().ok()?);
        // The session holds the rows of all models of the server.
        let model = self.options.models.first()?.clone();
        let shared = Arc::clone(&self.shared);
        Some(Box::new(move |request| {
            if let Some(row) = shared.parked.take(request) {
                let call = shared.parked.release(vec![row]);
                link.tell(request::release(&model, &call));
            }
        }))
    }

    fn runs_stages(&self) -> bool {
        self.link.as_ref().is_ok_and(|link| link.runs_stages())
    }

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
