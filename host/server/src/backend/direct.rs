//! The backend of `switchyard worker`: a call is a batch of one variant, without a scheduler.

mod answer;
mod app;
mod parking;
mod stages;
#[cfg(test)]
mod tests;

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

use self::answer::answer;
use self::app::{DirectApp, DirectVersion};
use self::parking::{Parking, ParkingBatch};
use super::{OutputsError, end, inputs, outputs, public, raw, raw_type, spec};
use crate::assembly::{AppTensors, version};
use crate::driver::RowInput;
use crate::ingress::{
    AppIndex, AppInfo, Backend, BytesContent, ConnectionLife, Control, InferAnswer, InferCall,
    InferError, TensorSpec, VariantIndex, VariantStats,
};
use crate::telemetry::{Counter, Gauge, Registry, names};

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
    registry: Registry,
    parked: Gauge,
    parked_ever: Counter,
    parked_lost: Counter,
}

/// A batch before it is sent.
struct Batch {
    from_stage: u32,
    to_stage: u32,
    /// None: the activations are kept.
    exit: Option<ExitId>,
    rows: Vec<JobRow>,
    /// The rows, if they are kept.
    parks: Option<ParkingBatch>,
}

/// A batch that the worker has.
struct WaitingBatch {
    done: oneshot::Sender<Finished>,
    parks: Option<ParkingBatch>,
}

/// The state that the worker's threads report into.
struct Shared {
    waiting: Mutex<HashMap<BatchId, WaitingBatch, FxBuildHasher>>,
    parking: Mutex<Parking>,
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
        (rows_max, parked_max): (usize, usize),
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
            parking: Mutex::new(Parking::new(parked_max)),
            loading: AtomicUsize::new(0),
            failed: Mutex::default(),
            lost: watch::Sender::new(String::new()),
        });
        let (registry, name) = (Registry::new(), options.name.clone());
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
            parked: registry.gauge(names::PARKED_ROWS, [("worker", &*name)]),
            parked_ever: registry.counter(names::PARKED, [("worker", &*name)]),
            parked_lost: registry.counter(names::PARKED_LOST, [("worker", &*name)]),
            registry,
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
        let began = Instant::now();
        let (app, version) = self.asked(&call)?;
        let rows = inputs::rows(call.inputs, call.rows, false, &app.raw);
        let rows = rows.map_err(|reason| end::failed(&app.name, &reason))?;
        let count = rows.len();
        let batch = Batch {
            from_stage: 0,
            to_stage: version.to_stage,
            exit: Some(version.exit),
            rows: self.numbered(rows),
            parks: None,
        };
        let finished = self.finish(&app.name, version, batch).await?;
        answer(app, version, &finished, count, began)
    }

    /// The app and the version that a call names.
    fn asked(&self, call: &InferCall) -> Result<(&DirectApp, &DirectVersion), InferError> {
        let unknown = || InferError::NotReady("no such app".to_owned());
        let app = self.apps.get(call.app.0).ok_or_else(unknown)?;
        let version = self.version(call.app, call.variant).ok_or_else(|| {
            let known = &self.infos[call.app.0].variants;
            let known = known.join(", ");
            InferError::Failed(format!(
                "model_version: a worker has no scheduler that chooses; name one of: {known}"
            ))
        })?;
        Ok((app, version))
    }

    /// Rows of a job, as new requests.
    fn numbered(&self, rows: Vec<RowInput>) -> Vec<JobRow> {
        let count = rows.len() as u64;
        let first = self.next_request.fetch_add(count, Ordering::Relaxed);
        let row = |(request, row): (u64, RowInput)| JobRow {
            request: RequestId(request),
            input: Some(row.tensors),
        };
        (first..).zip(rows).map(row).collect()
    }

    /// Runs a batch: its output, and the time that it took.
    async fn finish(
        &self,
        app: &str,
        version: &DirectVersion,
        batch: Batch,
    ) -> Result<(BatchOutput, Micros), InferError> {
        let id = BatchId(self.next_batch.fetch_add(1, Ordering::Relaxed));
        let job = Job {
            batch: id,
            app: version.app,
            variant: version.variant,
            from_stage: batch.from_stage,
            to_stage: batch.to_stage,
            exit: batch.exit,
            rows: batch.rows,
            soon: Soon::new(),
            until: None,
        };
        let (done, finished) = oneshot::channel();
        let parks = batch.parks;
        self.shared
            .waiting()
            .insert(id, WaitingBatch { done, parks });
        let claimed = self.worker.run_claimed(job);
        // Dropped with a cancelled call: the worker skips its batch.
        let _claim = claimed.map_err(|refused| {
            self.shared.waiting().remove(&id);
            let (job, error) = match refused {
                Refused::Full(job) => (job, end::queue_full("the worker's commands")),
                Refused::Down(job) => {
                    let reason = "the worker has ended".to_owned();
                    (job, InferError::NotReady(reason))
                }
            };
            // Their scheduler takes them for lost.
            let mut parking = self.shared.parking();
            job.rows
                .iter()
                .for_each(|row| parking.not_dropped(row.request));
            error
        })?;
        // A closed channel: the worker was lost with the batch.
        let lost = |_| InferError::NotReady("the worker has ended".to_owned());
        let finished = finished.await.map_err(lost)?;
        let output = finished.result.map_err(|error| match error.is_fatal() {
            true => InferError::NotReady(public::reason(&error.to_string())),
            false => end::failed(app, &error.to_string()),
        })?;
        Ok((output, finished.compute))
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

    fn runs_stages(&self) -> bool {
        true
    }

    fn infer_stages(
        &self,
        call: InferCall,
        connection: ConnectionLife,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send {
        self.run_stages(call, connection)
    }

    fn metrics(&self) -> Option<String> {
        let parking = self.shared.parking();
        self.parked.set(parking.len() as f64);
        self.parked_ever.raise_to(parking.parked);
        drop(parking);
        Some(self.registry.render())
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
                let waiting = self.waiting().remove(&finished.batch);
                if let Some(waiting) = waiting {
                    self.end(waiting, finished);
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

    /// Keeps the rows of a batch before its scheduler learns of it.
    fn end(&self, waiting: WaitingBatch, finished: Finished) {
        let is_parked = matches!(finished.result, Ok(BatchOutput::Parked));
        let parks = waiting.parks.filter(|_| is_parked);
        let keys: Vec<_> = parks
            .iter()
            .flat_map(|batch| batch.rows.iter().map(|(key, _)| *key))
            .collect();
        if let Some(batch) = parks {
            self.parking().park(Instant::now(), batch);
        }
        if waiting.done.send(finished).is_err() {
            // The call was cancelled: its scheduler does not come back to the rows.
            let mut parking = self.parking();
            keys.into_iter().for_each(|key| parking.release(key));
        }
    }

    fn parking(&self) -> MutexGuard<'_, Parking> {
        self.parking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<BatchId, WaitingBatch, FxBuildHasher>> {
        // Whole at every point where a panic could strike; so below.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<VariantId, String, FxBuildHasher>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
