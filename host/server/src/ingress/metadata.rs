//! What clients ask before and beside inference: metadata, configuration,
//! statistics, the repository's index.

use serde::Serialize;
use serde_json::{Value, json};

use super::backend::{AppInfo, Backend, BatchStats, TensorSpec, Timing, VariantStats};

/// Extensions announced by the server: those that work, by Triton's names.
const EXTENSIONS: [&str; 6] = [
    "binary_tensor_data",
    "model_configuration",
    "model_repository",
    "parameters",
    "schedule_policy",
    "statistics",
];

/// Body of `GET /v2`.
#[derive(Serialize)]
pub(super) struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    extensions: [&'static str; 6],
}

/// Name, version and extensions of this server.
pub(super) const fn server() -> ServerMetadata {
    ServerMetadata {
        name: "switchyard",
        version: env!("CARGO_PKG_VERSION"),
        extensions: EXTENSIONS,
    }
}

/// Body of `GET /v2/models/{app}`.
#[derive(Serialize)]
pub(super) struct AppMetadata<'a> {
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

/// Metadata of an app, or of one variant of it.
pub(super) fn app(app: &AppInfo, variant: Option<usize>) -> AppMetadata<'_> {
    AppMetadata {
        name: &app.name,
        versions: match variant {
            Some(variant) => std::slice::from_ref(&app.variants[variant]),
            None => &app.variants,
        },
        platform: &app.platform,
        inputs: app.inputs.iter().map(tensor).collect(),
        outputs: app.outputs.iter().map(tensor).collect(),
    }
}

fn tensor(spec: &TensorSpec) -> TensorMetadata<'_> {
    TensorMetadata {
        name: &spec.name,
        datatype: spec.datatype.name(),
        shape: std::iter::once(-1)
            .chain(spec.shape.iter().copied())
            .collect(),
    }
}

/// A Triton model configuration, as far as clients and perf_analyzer read it.
pub(super) fn config(app: &AppInfo) -> Value {
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
        "backend": "switchyard",
        // Every variant is served; the policy chooses unless the URL pins one.
        "version_policy": { "specific": { "versions": app.variants } },
        "max_batch_size": app.max_batch_rows,
        "input": tensors(&app.inputs),
        "output": tensors(&app.outputs),
        // Its presence tells clients that the server batches.
        "dynamic_batching": {},
        "model_transaction_policy": { "decoupled": false },
        "parameters": {},
    })
}

/// Triton's statistics of an app's variants, or of the one pinned.
pub(super) fn stats<B: Backend>(backend: &B, app: usize, variant: Option<usize>) -> Vec<Value> {
    let info = &backend.apps()[app];
    let variants = match variant {
        Some(variant) => variant..variant + 1,
        None => 0..info.variants.len(),
    };
    variants
        .map(|variant| {
            let stats = backend.stats(app, variant);
            variant_stats(&info.name, &info.variants[variant], &stats)
        })
        .collect()
}

/// Body of a statistics answer.
pub(super) fn stats_body(model_stats: &[Value]) -> Value {
    json!({ "model_stats": model_stats })
}

fn variant_stats(app: &str, variant: &str, stats: &VariantStats) -> Value {
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
            // There is no response cache; clients require the fields.
            "cache_hit": timing(Timing::default()),
            "cache_miss": timing(Timing::default()),
        },
        "batch_stats": stats.batches.iter().map(batch_stats).collect::<Vec<_>>(),
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

/// Body of `POST /v2/repository/index`: every variant and its state.
pub(super) fn repository_index<B: Backend>(backend: &B, ready_only: bool) -> Vec<Value> {
    let mut entries = Vec::new();
    for (app_index, app) in backend.apps().iter().enumerate() {
        for (variant_index, variant) in app.variants.iter().enumerate() {
            let (state, reason) = backend.app_state(app_index, variant_index);
            if state == "READY" || !ready_only {
                entries.push(json!({
                    "name": app.name,
                    "version": variant,
                    "state": state,
                    "reason": reason,
                }));
            }
        }
    }
    entries
}
