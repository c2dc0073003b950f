//! Messages about the server, its apps and their statistics.

use super::messages::inference as proto;
use crate::app::{AppInfo, TensorSpec, VariantIndex};
use crate::datatype::Datatype;
use crate::metadata::{SERVER_NAME, extensions};
use crate::stats::{BatchStats, Timing, VariantStats};

/// Name and extensions of this server, and its version.
pub fn server(version: &str, runs_stages: bool) -> proto::ServerMetadataResponse {
    proto::ServerMetadataResponse {
        name: SERVER_NAME.to_owned(),
        version: version.to_owned(),
        extensions: extensions(runs_stages).map(str::to_owned).collect(),
    }
}

/// Metadata of an app, or of one variant of it.
pub fn app(app: &AppInfo, variant: Option<VariantIndex>) -> proto::ModelMetadataResponse {
    let tensors = |specs: &[TensorSpec]| {
        let tensors = specs.iter().map(|spec| {
            let batch = std::iter::once(-1);
            proto::model_metadata_response::TensorMetadata {
                name: spec.name.clone(),
                datatype: spec.datatype.name().to_owned(),
                shape: batch.chain(spec.shape.iter().copied()).collect(),
            }
        });
        tensors.collect()
    };
    proto::ModelMetadataResponse {
        name: app.name.clone(),
        versions: match variant {
            Some(variant) => vec![app.variants[variant.0].clone()],
            None => app.variants.clone(),
        },
        platform: app.platform.clone(),
        inputs: tensors(&app.inputs),
        outputs: tensors(&app.outputs),
    }
}

/// The part of a Triton model configuration that clients read, as over HTTP but for the versions:
/// there they are names, the message has numbers.
pub fn config(app: &AppInfo) -> proto::ModelConfigResponse {
    let input = |spec: &TensorSpec| proto::ModelInput {
        name: spec.name.clone(),
        data_type: data_type(spec.datatype).into(),
        dims: spec.shape.clone(),
    };
    let output = |spec: &TensorSpec| proto::ModelOutput {
        name: spec.name.clone(),
        data_type: data_type(spec.datatype).into(),
        dims: spec.shape.clone(),
    };
    let classes = proto::ModelParameter {
        string_value: app.classes.join("\n"),
    };
    proto::ModelConfigResponse {
        config: Some(proto::ModelConfig {
            name: app.name.clone(),
            platform: app.platform.clone(),
            backend: SERVER_NAME.to_owned(),
            max_batch_size: i32::try_from(app.max_batch_rows).unwrap_or(i32::MAX),
            input: app.inputs.iter().map(input).collect(),
            output: app.outputs.iter().map(output).collect(),
            dynamic_batching: Some(proto::ModelDynamicBatching {}),
            parameters: [("classes".to_owned(), classes)].into(),
            model_transaction_policy: Some(proto::ModelTransactionPolicy { decoupled: false }),
        }),
    }
}

const fn data_type(datatype: Datatype) -> proto::DataType {
    match datatype {
        Datatype::Bool => proto::DataType::TypeBool,
        Datatype::U8 => proto::DataType::TypeUint8,
        Datatype::U16 => proto::DataType::TypeUint16,
        Datatype::U32 => proto::DataType::TypeUint32,
        Datatype::U64 => proto::DataType::TypeUint64,
        Datatype::I8 => proto::DataType::TypeInt8,
        Datatype::I16 => proto::DataType::TypeInt16,
        Datatype::I32 => proto::DataType::TypeInt32,
        Datatype::I64 => proto::DataType::TypeInt64,
        Datatype::F16 => proto::DataType::TypeFp16,
        Datatype::Bf16 => proto::DataType::TypeBf16,
        Datatype::F32 => proto::DataType::TypeFp32,
        Datatype::F64 => proto::DataType::TypeFp64,
        Datatype::Bytes => proto::DataType::TypeString,
    }
}

/// Triton's statistics of one variant of an app.
pub fn variant_stats(app: &str, variant: &str, stats: &VariantStats) -> proto::ModelStatistics {
    proto::ModelStatistics {
        name: app.to_owned(),
        version: variant.to_owned(),
        last_inference: stats.last_inference_ms,
        inference_count: stats.inference_count,
        execution_count: stats.execution_count,
        inference_stats: Some(proto::InferStatistics {
            success: Some(duration(stats.success)),
            fail: Some(duration(stats.fail)),
            queue: Some(duration(stats.queue)),
            compute_input: Some(duration(stats.compute_input)),
            compute_infer: Some(duration(stats.compute_infer)),
            compute_output: Some(duration(stats.compute_output)),
            // The server has no response cache, but clients require the fields.
            cache_hit: Some(duration(Timing::default())),
            cache_miss: Some(duration(Timing::default())),
        }),
        batch_stats: stats.batches.iter().map(batch_stats).collect(),
        memory_usage: Vec::new(),
        response_stats: Default::default(),
    }
}

fn batch_stats(batch: &BatchStats) -> proto::InferBatchStatistics {
    proto::InferBatchStatistics {
        batch_size: batch.batch_size,
        compute_input: Some(duration(batch.compute_input)),
        compute_infer: Some(duration(batch.compute_infer)),
        compute_output: Some(duration(batch.compute_output)),
    }
}

const fn duration(timing: Timing) -> proto::StatisticDuration {
    proto::StatisticDuration {
        count: timing.count,
        ns: timing.ns,
    }
}

/// One variant in the repository's index.
pub fn repository_entry(
    app: &str,
    variant: &str,
    state: &str,
    reason: &str,
) -> proto::repository_index_response::ModelIndex {
    proto::repository_index_response::ModelIndex {
        name: app.to_owned(),
        version: variant.to_owned(),
        state: state.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers in the configuration are those of the datatypes' names.
    #[test]
    fn a_datatype_has_its_name_in_a_configuration() {
        for datatype in Datatype::ALL {
            assert_eq!(data_type(datatype).as_str_name(), datatype.config_name());
        }
    }
}
