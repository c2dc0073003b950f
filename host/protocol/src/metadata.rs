//! Bodies of the answers to everything but inference: metadata, configuration, statistics, the
//! repository's index, health.

use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{AppInfo, TensorSpec, VariantIndex};
use crate::stages::STAGE_RANGES;
use crate::stats::{BatchStats, Timing, VariantStats};

/// Extensions that the server announces, by Triton's names: only those that work.
const EXTENSIONS: [&str; 7] = [
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "model_repository",
    "parameters",
    "schedule_policy",
    "statistics",
];

/// The extensions of a server, which may run ranges of stages.
pub(crate) fn extensions(runs_stages: bool) -> impl Iterator<Item = &'static str> {
    let stages = runs_stages.then_some(STAGE_RANGES);
    EXTENSIONS.into_iter().chain(stages)
}

/// Name of this server.
pub(crate) const SERVER_NAME: &str = "switchyard";

/// Body of `GET /v2/health/live`, as kserve's client reads it.
pub const LIVE_BODY: &[u8] = br#"{"live":true}"#;

/// Body of `GET /v2/health/ready` when every app is ready.
pub const READY_BODY: &[u8] = br#"{"live":true,"ready":true}"#;

/// Body of `GET /v2`.
#[derive(Serialize)]
pub struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    extensions: Vec<&'static str>,
}

/// Body of `GET /v2/models/{app}`.
#[derive(Serialize)]
pub struct AppMetadata<'a> {
    name: &'a str,
    versions: &'a [String],
    platform: &'a str,
    inputs: Vec<TensorMetadata<'a>>,
    outputs: Vec<TensorMetadata<'a>>,
}

#[derive(Serialize)]
struct TensorMetadata<'a> {
    name: &'a str,
    datatype: &'static str,
    /// With the batch dimension, which is variable.
    shape: Vec<i64>,
}

/// Body of `GET /v2/models/{app}/ready` when the app is ready.
#[derive(Serialize)]
pub struct AppReady<'a> {
    name: &'a str,
    ready: bool,
}

// === impl ServerMetadata ===

impl ServerMetadata {
    /// Name and extensions of this server, and its version.
    pub fn new(version: &'static str, runs_stages: bool) -> Self {
        Self {
            name: SERVER_NAME,
            version,
            extensions: extensions(runs_stages).collect(),
        }
    }
}

// === impl AppMetadata ===

impl<'a> AppMetadata<'a> {
    /// Metadata of an app, or of one variant of it.
    pub fn new(app: &'a AppInfo, variant: Option<VariantIndex>) -> Self {
        Self {
            name: &app.name,
            versions: match variant {
                Some(variant) => std::slice::from_ref(&app.variants[variant.0]),
                None => &app.variants,
            },
            platform: &app.platform,
            inputs: app.inputs.iter().map(TensorMetadata::new).collect(),
            outputs: app.outputs.iter().map(TensorMetadata::new).collect(),
        }
    }
}

// === impl TensorMetadata ===

impl<'a> TensorMetadata<'a> {
    fn new(spec: &'a TensorSpec) -> Self {
        Self {
            name: &spec.name,
            datatype: spec.datatype.name(),
            shape: std::iter::once(-1)
                .chain(spec.shape.iter().copied())
                .collect(),
        }
    }
}

// === impl AppReady ===

impl<'a> AppReady<'a> {
    /// The app is ready.
    pub const fn new(name: &'a str) -> Self {
        Self { name, ready: true }
    }
}

/// The part of a Triton model configuration that clients and `perf_analyzer` read.
pub fn config(app: &AppInfo) -> Value {
    let tensors = |specs: &[TensorSpec]| -> Vec<Value> {
        specs
            .iter()
            .map(|spec| {
                json!({
                    "name": spec.name,
                    "data_type": spec.datatype.config_name(),
                    "dims": spec.shape,
                })
            })
            .collect()
    };
    json!({
        "name": app.name,
        "platform": app.platform,
        "backend": SERVER_NAME,
        // Every variant is served; the policy chooses unless the URL pins one.
        "version_policy": { "specific": { "versions": app.variants } },
        "max_batch_size": app.max_batch_rows,
        "input": tensors(&app.inputs),
        "output": tensors(&app.outputs),
        // Its presence tells clients that the server batches.
        "dynamic_batching": {},
        "model_transaction_policy": { "decoupled": false },
        "parameters": {
            "classes": { "string_value": app.classes.join("\n") },
        },
    })
}

/// Body of a statistics answer: one entry of [`variant_stats`] per variant.
pub fn stats(entries: &[Value]) -> Value {
    json!({ "model_stats": entries })
}

/// Triton's statistics of one variant of an app.
pub fn variant_stats(app: &str, variant: &str, stats: &VariantStats) -> Value {
    json!({
        "name": app,
        "version": variant,
        "last_inference": stats.last_inference_ms,
        "inference_count": stats.inference_count,
        "execution_count": stats.execution_count,
        "inference_stats": {
            "success": timing(stats.success),
            "fail": timing(stats.fail),
            "queue": timing(stats.queue),
            "compute_input": timing(stats.compute_input),
            "compute_infer": timing(stats.compute_infer),
            "compute_output": timing(stats.compute_output),
            // The server has no response cache, but clients require the fields.
            "cache_hit": timing(Timing::default()),
            "cache_miss": timing(Timing::default()),
        },
        "batch_stats": stats.batches.iter().map(batch_stats).collect::<Vec<_>>(),
        // Of models that answer a request several times; there are none.
        "response_stats": {},
        // A worker's memory is shared by its models: the metrics of the admin port have it.
        "memory_usage": [],
    })
}

fn batch_stats(batch: &BatchStats) -> Value {
    json!({
        "batch_size": batch.batch_size,
        "compute_input": timing(batch.compute_input),
        "compute_infer": timing(batch.compute_infer),
        "compute_output": timing(batch.compute_output),
    })
}

fn timing(timing: Timing) -> Value {
    json!({ "count": timing.count, "ns": timing.ns })
}

/// One variant in the body of `POST /v2/repository/index`; `state` is `READY`, `LOADING`,
/// `UNLOADING` or `UNAVAILABLE`,
/// `reason` is empty when ready.
pub fn repository_entry(app: &str, variant: &str, state: &str, reason: &str) -> Value {
    json!({
        "name": app,
        "version": variant,
        "state": state,
        "reason": reason,
    })
}
