//! The backend of `switchyard worker`: a call is a batch of one variant, without a scheduler.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustc_hash::FxBuildHasher;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_executor::{
    BatchOutput, Executor, Finished, Job, JobRow, Refused, Worker, WorkerEvent, WorkerOptions,
};
use switchyard_models::card::{self, Task};
use tokio::sync::{oneshot, watch};

use super::{OutputsError, end, inputs, outputs, public, raw, raw_type, spec};
use crate::assembly::{AppTensors, version};
use crate::driver::RowAnswer;
use crate::ingress::{
    AppIndex, AppInfo, Backend, BytesContent, Control, InferAnswer, InferCall, InferError,
    TensorSpec, VariantIndex, VariantStats,
};

/// Name of the policy in its answers.
const NO_POLICY: &str = "worker";

/// Commands that wait for the worker: a scheduler sends a batch or two at a time.
const COMMANDS_MAX: usize = 256;

/// Apps whose variants run as they are asked for.
pub struct DirectBackend {
    infos: Vec<AppInfo>,
    apps: Vec<DirectApp>,
    worker: Worker,
    shared: Arc<Shared>,
    next_batch: AtomicU64,
    next_request: AtomicU64,
}

struct DirectApp {
    name: String,
    versions: Vec<DirectVersion>,
    raw: Vec<Option<card::Datatype>>,
    outputs: outputs::Layout,
}

/// A variant up to one of its exits.
struct DirectVersion {
    app: AppId,
    variant: VariantId,
    exit: ExitId,
    to_stage: u32,
    variant_name: Arc<str>,
    exit_name: Arc<str>,
}

/// The state that the worker's threads report into.
struct Shared {
    waiting: Mutex<HashMap<BatchId, oneshot::Sender<Finished>, FxBuildHasher>>,
    /// Loads of the start that have not ended.
    loading: AtomicUsize,
    failed: Mutex<HashMap<VariantId, String, FxBuildHasher>>,
    /// Why the worker is lost; empty while it is not.
    lost: watch::Sender<String>,
}

// === impl DirectBackend ===

impl DirectBackend {
    /// Starts the worker, which loads its variants from then on.
    ///
    /// # Errors
    /// A card names outputs that the server does not make; the system refuses a thread.
    pub(crate) fn start(
        catalog: &Catalog,
        tensors: &[AppTensors],
        rows_max: usize,
        options: WorkerOptions,
        executor: Box<dyn Executor>,
    ) -> Result<Self, DirectError> {
        let (mut infos, mut apps) = (Vec::new(), Vec::new());
        for ((a, app), tensors) in (0..).map(AppId).zip(&catalog.apps).zip(tensors) {
            let versions: Vec<_> = catalog
                .variants_of(a)
                .flat_map(|(id, variant)| {
                    let exits = (0..).map(ExitId).zip(&variant.exits);
                    exits.map(move |(exit, spec)| (id, variant, exit, spec))
                })
                .collect();
            let accuracies = versions.iter().map(|(.., exit)| exit.accuracy as f32);
            infos.push(AppInfo {
                name: app.name.clone(),
                variants: versions
                    .iter()
                    .map(|(_, variant, _, exit)| version(variant, &exit.name))
                    .collect(),
                platform: "candle".to_owned(),
                inputs: tensors.inputs.iter().map(plain_spec).collect(),
                outputs: tensors.outputs.iter().map(spec).collect(),
                max_batch_rows: rows_max,
                max_timeout_us: u64::MAX,
                non_finite: tensors.non_finite,
                accuracy_max: accuracies.clone().fold(0.0, f32::max),
                accuracies: accuracies.map(Some).collect(),
                classes: match tensors.task {
                    Task::Classify => app.classes.clone(),
                    _ => Vec::new(),
                },
            });
            let versions = versions
                .iter()
                .map(|(id, variant, exit, spec)| DirectVersion {
                    app: a,
                    variant: *id,
                    exit: *exit,
                    to_stage: spec.after_stage,
                    variant_name: variant.name.as_str().into(),
                    exit_name: spec.name.as_str().into(),
                });
            apps.push(DirectApp {
                name: app.name.clone(),
                versions: versions.collect(),
                raw: tensors.inputs.iter().map(raw_type).collect(),
                outputs: outputs::Layout::try_new(&app.name, tensors.task, &tensors.outputs)?,
            });
        }
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            loading: AtomicUsize::new(0),
            failed: Mutex::default(),
            lost: watch::Sender::new(String::new()),
        });
        let worker = Worker::spawn(options, executor, {
            let shared = Arc::clone(&shared);
            move |event| shared.take(event)
        })?;
        for id in (0..catalog.variants.len() as u32).map(VariantId) {
            shared.loading.fetch_add(1, Ordering::Relaxed);
            if worker.preload(id).is_err() {
                // It is loaded by its first batch.
                shared.loading.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(Self {
            infos,
            apps,
            worker,
            shared,
            next_batch: AtomicU64::new(1),
            next_request: AtomicU64::new(1),
        })
    }

    /// Options of a worker that serves so.
    pub(crate) fn options(name: &str, threads: usize, cores: Vec<usize>) -> WorkerOptions {
        WorkerOptions {
            id: WorkerId(0),
            name: name.to_owned(),
            threads,
            cores,
            commands_max: COMMANDS_MAX,
            outstanding: 1,
        }
    }

    /// Waits until the worker is lost; the reason.
    pub(crate) async fn lost(self: Arc<Self>) -> String {
        let mut lost = self.shared.lost.subscribe();
        let reason = lost.wait_for(|reason| !reason.is_empty()).await;
        // An error means that the sender is gone, and with it the worker.
        reason.map(|reason| reason.clone()).unwrap_or_default()
    }

    fn version(&self, app: AppIndex, version: Option<VariantIndex>) -> Option<&DirectVersion> {
        self.apps.get(app.0)?.versions.get(version?.0)
    }

    async fn run(&self, call: InferCall) -> Result<InferAnswer, InferError> {
        let unknown = || InferError::NotReady("no such app".to_owned());
        let app = self.apps.get(call.app.0).ok_or_else(unknown)?;
        let version = self.version(call.app, call.variant).ok_or_else(|| {
            let known = &self.infos[call.app.0].variants;
            let known = known.join(", ");
            InferError::Failed(format!(
                "model_version: a worker has no scheduler that chooses; name one of: {known}"
            ))
        })?;
        let began = Instant::now();
        let failed = |reason: &str| end::failed(&app.name, reason);
        let rows = inputs::rows(call.inputs, call.rows, false, &app.raw);
        let rows = rows.map_err(|reason| failed(&reason))?;
        let count = rows.len() as u64;
        let first = self.next_request.fetch_add(count, Ordering::Relaxed);
        let batch = BatchId(self.next_batch.fetch_add(1, Ordering::Relaxed));
        let job = Job {
            batch,
            app: version.app,
            variant: version.variant,
            from_stage: 0,
            to_stage: version.to_stage,
            exit: Some(version.exit),
            rows: (first..)
                .zip(rows)
                .map(|(request, row)| JobRow {
                    request: RequestId(request),
                    input: Some(row.tensors),
                })
                .collect(),
            soon: Soon::new(),
            until: None,
        };
        let (done, finished) = oneshot::channel();
        self.shared.waiting().insert(batch, done);
        if let Err(refused) = self.worker.run(job) {
            self.shared.waiting().remove(&batch);
            return Err(match refused {
                Refused::Full(_) => end::queue_full("the worker's commands"),
                Refused::Down(_) => InferError::NotReady("the worker has ended".to_owned()),
            });
        }
        // A closed channel: the worker was lost with the batch.
        let lost = |_| InferError::NotReady("the worker has ended".to_owned());
        let finished = finished.await.map_err(lost)?;
        let compute = finished.compute;
        let output = finished.result.map_err(|error| match error.is_fatal() {
            true => InferError::NotReady(public::reason(&error.to_string())),
            false => failed(&error.to_string()),
        })?;
        let answers = answers(&output, count as usize, version, compute);
        let waited = Micros::from(began.elapsed());
        Ok(InferAnswer {
            outputs: app
                .outputs
                .tensors(&answers)
                .map_err(|reason| failed(&reason))?,
            variant: Arc::clone(&version.variant_name),
            exit: Arc::clone(&version.exit_name),
            policy: NO_POLICY.into(),
            batch_size: u32::try_from(count).unwrap_or(u32::MAX),
            queue_us: waited.0.saturating_sub(compute.0),
            compute_us: compute.0,
            deadline_met: true,
            short_circuit: false,
            window: 0,
        })
    }
}

impl Backend for DirectBackend {
    fn apps(&self) -> &[AppInfo] {
        &self.infos
    }

    fn app_index(&self, name: &str) -> Option<AppIndex> {
        let at = self.infos.iter().position(|info| info.name == name);
        at.map(AppIndex)
    }

    fn live(&self) -> Result<(), String> {
        match &*self.shared.lost.borrow() {
            reason if reason.is_empty() => Ok(()),
            reason => Err(public::reason(reason)),
        }
    }

    fn server_ready(&self) -> Result<(), String> {
        self.live()?;
        match self.shared.loading.load(Ordering::Acquire) {
            0 => Ok(()),
            left => Err(format!("{left} models are being loaded")),
        }
    }

    fn app_ready(&self, app: AppIndex, variant: Option<VariantIndex>) -> Result<(), String> {
        self.server_ready()?;
        let Some(version) = self.version(app, variant) else {
            return Ok(());
        };
        match self.shared.failed().get(&version.variant) {
            Some(reason) => Err(public::reason(reason)),
            None => Ok(()),
        }
    }

    async fn control(&self, _: AppIndex, _: Control) -> Result<(), InferError> {
        Err(InferError::Failed(
            "a worker keeps its models; restart it with other apps in its configuration".to_owned(),
        ))
    }

    fn infer(
        &self,
        call: InferCall,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send {
        self.run(call)
    }

    fn stats(&self, _: AppIndex, _: VariantIndex) -> VariantStats {
        // The scheduler counts.
        VariantStats::default()
    }
}

// === impl Shared ===

impl Shared {
    fn take(&self, event: WorkerEvent) {
        match event {
            WorkerEvent::Finished(finished) => {
                let done = self.waiting().remove(&finished.batch);
                if let Some(done) = done {
                    // An error means that the client has gone.
                    let _ = done.send(finished);
                }
            }
            WorkerEvent::Preloaded(loaded) => {
                if let Err(error) = loaded.result {
                    let reason = error.to_string();
                    tracing::error!(reason, "not loaded");
                    self.failed().insert(loaded.variant, reason);
                }
                if loaded.asked {
                    self.loading.fetch_sub(1, Ordering::Release);
                }
            }
            // No device of this process leaves.
            WorkerEvent::Unloaded(_) | WorkerEvent::Leaving(_) => {}
            WorkerEvent::Down(down) => {
                self.lost.send_replace(down.reason);
                self.waiting().clear();
            }
        }
    }

    fn waiting(
        &self,
    ) -> MutexGuard<'_, HashMap<BatchId, oneshot::Sender<Finished>, FxBuildHasher>> {
        // Whole at every point where a panic could strike; so below.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<VariantId, String, FxBuildHasher>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answers(
    output: &BatchOutput,
    count: usize,
    version: &DirectVersion,
    compute: Micros,
) -> Vec<RowAnswer> {
    let mut probabilities = output.rows();
    let tensors = match output {
        BatchOutput::Tensors(rows) => rows.as_slice(),
        _ => &[],
    };
    let answer = |row: usize| RowAnswer {
        probabilities: probabilities.next().unwrap_or_default().to_vec(),
        tensors: tensors.get(row).cloned().unwrap_or_default(),
        ran: Some((version.variant, version.exit)),
        policy: NO_POLICY.into(),
        window: 0,
        batch_size: u32::try_from(count).unwrap_or(u32::MAX),
        queue: Micros::ZERO,
        compute,
        in_time: true,
    };
    (0..count).map(answer).collect()
}

/// An input as the model takes it: the scheduler has decoded images.
fn plain_spec(card: &card::TensorCard) -> TensorSpec {
    TensorSpec {
        name: card.name.clone(),
        datatype: raw::on_wire(card.datatype),
        shape: card.shape.clone(),
        largest: card.largest_shape(),
        content: BytesContent::Text,
    }
}

/// Why a worker does not start.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// A card names outputs that the server does not make.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// The system refuses a thread.
    #[error("no thread for the worker: {0}; raise the limit of threads")]
    Thread(#[from] std::io::Error),
}
