//! The backend of the HTTP port: calls become rows of a pool, their answers become tensors.

mod additions;
mod direct;
mod end;
mod images;
mod inputs;
mod lengths;
mod outputs;
mod public;
mod raw;
mod served;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use switchyard_core::ids::AppId;
use switchyard_core::time::Micros;
use switchyard_models::ImageCard;
use switchyard_models::card::{self, Task};
use switchyard_remote::{Fence, NotActive};
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use self::additions::{AddApp, Additions, NotAdded};
pub use self::direct::{DirectBackend, DirectError};
use self::lengths::LengthMeter;
pub use self::outputs::OutputsError;
use self::served::ServedApp;
use crate::assembly::AppTensors;
use crate::config::ServerConfig;
use crate::driver::{AppState, Message, NotServed, PoolCall, PoolHandle, RowInput};
use crate::ingress::{
    AppIndex, AppInfo, Backend, BytesContent, Control, Datatype, InferAnswer, InferCall,
    InferError, ProtocolError, TensorSpec, VariantIndex, VariantStats,
};
use crate::telemetry::{Refusals, Registry};

/// Every app of every pool, as the ingress sees them.
pub struct PoolBackend {
    infos: Vec<AppInfo>,
    /// Clients look names up and add none: they cannot make them collide.
    index: HashMap<String, AppIndex, FxBuildHasher>,
    apps: Vec<ServedApp>,
    refusals: Refusals,
    /// Requests are traced.
    traces: bool,
    additions: Additions,
    /// Longest wait of a client for a load.
    load_timeout: Duration,
    /// None: no other scheduler may be active.
    fence: Option<Arc<Fence>>,
}

// === impl PoolBackend ===

impl PoolBackend {
    /// Joins the apps of these pools.
    ///
    /// # Errors
    /// A card names outputs that the server does not make.
    pub fn try_new(
        pools: &[(Arc<PoolHandle>, Vec<AppTensors>)],
        limits: &ServerConfig,
        registry: &Registry,
        additions: Additions,
    ) -> Result<Self, OutputsError> {
        let (mut infos, mut apps) = (Vec::new(), Vec::new());
        for (pool, tensors) in pools {
            let catalog = pool.catalog();
            for ((a, app), tensors) in (0..).zip(&catalog.apps).zip(tensors) {
                let variants = catalog.variants_of(AppId(a));
                let (ids, names): (Vec<_>, Vec<_>) = variants
                    .map(|(id, variant)| (id, variant.name.clone()))
                    .unzip();
                let known = catalog.variants_of(AppId(a)).zip(&tensors.known_quality);
                let accuracies: Vec<Option<f32>> = known
                    .map(|((_, variant), is_known)| {
                        let accuracies = variant.exits.iter().map(|exit| exit.accuracy);
                        is_known.then(|| best(accuracies))
                    })
                    .collect();
                let evidence = app.sneakpeek.iter().map(|model| model.accuracy as f32);
                infos.push(AppInfo {
                    name: app.name.clone(),
                    variants: names,
                    platform: "candle".to_owned(),
                    inputs: tensors.inputs.iter().map(spec).collect(),
                    outputs: tensors.outputs.iter().map(spec).collect(),
                    max_batch_rows: limits.rows_max,
                    // A client may always name the deadline that it has without a timeout.
                    max_timeout_us: limits.timeout_max_us().max(app.slo.0),
                    accuracy_max: accuracies
                        .iter()
                        .flatten()
                        .copied()
                        .chain(evidence)
                        .fold(0.0, f32::max),
                    accuracies,
                    classes: match tensors.task {
                        Task::Classify => app.classes.clone(),
                        _ => Vec::new(),
                    },
                    non_finite: tensors.non_finite,
                });
                apps.push(ServedApp {
                    pool: Arc::clone(pool),
                    app: AppId(a),
                    variants: ids,
                    slo: app.slo,
                    lengths: LengthMeter::of(catalog, AppId(a), &tensors.folders),
                    raw: tensors.inputs.iter().map(raw_type).collect(),
                    images: tensors
                        .inputs
                        .iter()
                        .map(|input| input.image.clone())
                        .collect(),
                    outputs: outputs::Layout::try_new(&app.name, tensors.task, &tensors.outputs)?,
                });
            }
        }
        let named = infos.iter().enumerate();
        Ok(Self {
            index: named
                .map(|(i, info)| (info.name.clone(), AppIndex(i)))
                .collect(),
            refusals: Refusals::new(registry, infos.iter().map(|info| &*info.name)),
            traces: pools.iter().any(|(pool, _)| pool.traces()),
            infos,
            apps,
            additions,
            load_timeout: Duration::from_millis(limits.load_timeout_ms),
            fence: None,
        })
    }

    /// Serves only while this scheduler is the active one.
    #[must_use]
    pub fn behind(self, fence: Option<Arc<Fence>>) -> Self {
        Self { fence, ..self }
    }

    fn is_active(&self) -> Result<(), String> {
        let term = self
            .fence
            .as_ref()
            .map_or(Ok(None), |fence| fence.enter().map(Some));
        term.map(drop).map_err(|error| error.to_string())
    }

    /// The state of an app's models, or of one variant, and the reason if it is not ready.
    fn state(&self, app: AppIndex, variant: Option<VariantIndex>) -> (AppState, String) {
        let Some(app) = self.apps.get(app.0) else {
            return (AppState::Unloaded, "no such app".to_owned());
        };
        let models = app.pool.models();
        let state = models.app(app.app);
        if state != AppState::Ready {
            return (state, app.unavailable());
        }
        let variant = variant.and_then(|v| app.variants.get(v.0).copied());
        let failure = match variant {
            Some(variant) => models.failure(variant),
            None => app.failure(),
        };
        if let Some(reason) = failure {
            return (AppState::Unloaded, public::reason(&reason));
        }
        match app.pool.readiness().check() {
            Ok(()) => match self.is_active() {
                Ok(()) => (AppState::Ready, String::new()),
                Err(reason) => (AppState::Unloaded, reason),
            },
            Err(reason) => (AppState::Unloaded, public::reason(&reason)),
        }
    }

    async fn turn(&self, app: AppIndex, verb: Control) -> Result<(), InferError> {
        let unknown = || InferError::NotReady("no such app".to_owned());
        let served = self.apps.get(app.0).ok_or_else(unknown)?;
        let (pool, app) = (Arc::clone(&served.pool), served.app);
        let send = |message| {
            let pool = Arc::clone(&pool);
            tokio::task::spawn_blocking(move || pool.send(message))
        };
        // A closed reply: the driver has ended, and with it the pool.
        let ended = |_| InferError::Draining;
        match verb {
            Control::Load => {
                let (done, end) = oneshot::channel();
                send(Message::Load(app, done))
                    .await
                    .map_err(|_| InferError::Draining)?;
                let loaded = timeout(self.load_timeout, end).await.map_err(|_| {
                    let limit_ms = self.load_timeout.as_millis();
                    let reason = format!(
                        "the load has not ended after {limit_ms} ms (server.load_timeout_ms) and goes on"
                    );
                    InferError::Failed(reason)
                })?;
                let loaded = loaded.map_err(ended)?;
                loaded.map_err(|reason| end::failed(served.name(), &reason))
            }
            Control::Unload => {
                // Before the driver knows: after the reply no further request is answered.
                pool.models().begin_unload(app);
                let (known, taken) = oneshot::channel();
                send(Message::Unload(app, known))
                    .await
                    .map_err(|_| InferError::Draining)?;
                taken.await.map_err(ended)
            }
        }
    }

    async fn add_app(&self, name: &str) -> Result<bool, InferError> {
        match self.additions.add(name).await {
            Ok(()) => Ok(true),
            Err(NotAdded::Unknown) => Ok(false),
            Err(NotAdded::Refused(reason)) => Err(end::failed(name, &reason)),
        }
    }

    /// Serves a call in one term of this scheduler. A term that ends takes its calls along: another
    /// scheduler may answer their clients.
    async fn serve(&self, call: InferCall) -> Result<InferAnswer, InferError> {
        let Some(fence) = &self.fence else {
            return self.serve_active(call).await;
        };
        let not_active = |error: NotActive| InferError::NotReady(error.to_string());
        let term = fence.enter().map_err(not_active)?;
        let answer = tokio::select! {
            answer = self.serve_active(call) => answer,
            () = fence.ended(term) => Err(InferError::Draining),
        };
        // Also of an answer: the process may have been paused.
        fence.check(term).map_err(not_active)?;
        answer
    }

    async fn serve_active(&self, call: InferCall) -> Result<InferAnswer, InferError> {
        let unknown = || InferError::NotReady("no such app".to_owned());
        let app = self.apps.get(call.app.0).ok_or_else(unknown)?;
        let pool = &*app.pool;
        if !pool.models().serves(app.app) {
            return Err(InferError::NotReady(app.unavailable()));
        }
        let peek = pool.wants_evidence(app.app);
        let rows = inputs::rows(call.inputs, call.rows, peek, &app.raw)
            .map_err(|reason| end::failed(app.name(), &reason))?;
        let rows = match &app.lengths {
            Some(meter) => meter.measure(rows).await?,
            None => rows,
        };
        let arrival = pool.clock().now() - Micros(call.waited_us);
        let timeout = call.timeout_us.map_or(app.slo, Micros);
        let pool_call = PoolCall {
            app: app.app,
            pinned: call.variant.and_then(|v| app.variants.get(v.0).copied()),
            arrival,
            deadline: arrival + timeout,
            priority: call.priority,
            trace: pool.draw_trace(call.parent),
            min_accuracy: call.min_accuracy.unwrap_or_default(),
            rows: SmallVec::<[RowInput; 1]>::from_vec(rows),
        };
        match pool.serve(pool_call).await {
            Ok(Ok(rows)) => end::answer(app, &rows),
            Ok(Err(error)) => Err(end::error(app.name(), &error)),
            Err(NotServed::Full { inbox_max }) => {
                Err(end::queue_full(format!("inbox of {inbox_max}")))
            }
            Err(NotServed::Ended) => Err(InferError::Draining),
        }
    }
}

impl Backend for PoolBackend {
    fn apps(&self) -> &[AppInfo] {
        &self.infos
    }

    fn app_index(&self, name: &str) -> Option<AppIndex> {
        self.index.get(name).copied()
    }

    fn live(&self) -> Result<(), String> {
        self.apps.iter().try_for_each(|app| app.pool.live())
    }

    /// A failed load makes the server unready only if no app is left: the others serve.
    fn server_ready(&self) -> Result<(), String> {
        for app in &self.apps {
            // The admin port and the log have the whole reason.
            let ready = app.pool.readiness().check();
            ready.map_err(|reason| public::reason(&reason))?;
        }
        let failures: Option<Vec<_>> = self.apps.iter().map(ServedApp::failure).collect();
        match failures.and_then(|failures| failures.into_iter().next()) {
            Some(reason) => {
                let reason = public::reason(&reason);
                Err(format!("no app has a model: {reason}"))
            }
            None => self.is_active(),
        }
    }

    fn app_ready(&self, app: AppIndex, variant: Option<VariantIndex>) -> Result<(), String> {
        match self.state(app, variant) {
            (AppState::Ready, _) => Ok(()),
            (_, reason) => Err(reason),
        }
    }

    fn app_state(&self, app: AppIndex, variant: VariantIndex) -> (&'static str, String) {
        let (state, reason) = self.state(app, Some(variant));
        (state.label(), reason)
    }

    fn control(
        &self,
        app: AppIndex,
        verb: Control,
    ) -> impl Future<Output = Result<(), InferError>> + Send {
        self.turn(app, verb)
    }

    fn add(&self, name: &str) -> impl Future<Output = Result<bool, InferError>> + Send {
        self.add_app(name)
    }

    fn decode_images(
        &self,
        call: &mut InferCall,
        grow: &mut dyn FnMut(usize) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let (Some(app), Some(info)) = (self.apps.get(call.app.0), self.infos.get(call.app.0))
        else {
            return Ok(());
        };
        let names: Vec<&str> = info.inputs.iter().map(|input| &*input.name).collect();
        images::decode(&app.images, &names, &mut call.inputs, grow)
    }

    fn infer(
        &self,
        call: InferCall,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send {
        self.serve(call)
    }

    fn stats(&self, app: AppIndex, variant: VariantIndex) -> VariantStats {
        self.apps
            .get(app.0)
            .and_then(|app| Some(app.pool.stats(*app.variants.get(variant.0)?)))
            .unwrap_or_default()
    }

    fn wants_parents(&self) -> bool {
        self.traces
    }

    fn on_refused(&self, app: Option<AppIndex>, status: u16) {
        let named = app.and_then(|app| Some((app.0, &*self.infos.get(app.0)?.name)));
        self.refusals.count(named, status);
    }
}

/// The highest accuracy, in the type of the clients' numbers.
fn best(accuracies: impl Iterator<Item = f64>) -> f32 {
    accuracies.fold(0.0, f64::max) as f32
}

/// The type of an input whose values alone do not say all.
fn raw_type(card: &card::TensorCard) -> Option<card::Datatype> {
    (!card.is_flat()).then_some(card.datatype)
}

fn spec(card: &card::TensorCard) -> TensorSpec {
    let of_image = |image: &ImageCard| TensorSpec {
        name: card.name.clone(),
        datatype: Datatype::Bytes,
        shape: vec![1],
        largest: vec![1],
        content: BytesContent::Image {
            bytes_max: image.encoded_bytes_max(),
        },
    };
    card.image.as_ref().map_or_else(
        || TensorSpec {
            name: card.name.clone(),
            datatype: raw::on_wire(card.datatype),
            shape: card.shape.clone(),
            largest: card.largest_shape(),
            content: BytesContent::Text,
        },
        of_image,
    )
}
