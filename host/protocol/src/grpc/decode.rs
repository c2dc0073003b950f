//! From a message to a call that matches the app's inputs.

use std::borrow::Cow;

use bytes::Bytes;

use super::contents;
use super::messages::inference::model_infer_request::{
    InferInputTensor, InferRequestedOutputTensor,
};
use super::messages::inference::{InferTensorContents, ModelInferRequest};
use super::{parameters, stages};
use crate::app::{AppIndex, AppInfo, TensorSpec, VariantIndex};
use crate::binary;
use crate::call::{DecodedRequest, InferCall, WantedOutputs};
use crate::decode::outputs::wanted_outputs;
use crate::decode::slots::InputSlots;
use crate::decode::spec::{check_datatype, check_shape};
use crate::decode::{check_accuracy, check_timeout, elements, finite};
use crate::error::ProtocolError;
use crate::excerpt::excerpt;
use crate::json::parameters::{InputParameters, OutputParameters, RequestParameters};
use crate::json::request::{JsonOutput, JsonText, NAME_BYTES_MAX};
use crate::stages::StageCall;
use crate::tensor::{Shape, Tensor};

/// Decodes and checks an inference. Large raw inputs stay in their message.
///
/// # Errors
/// The field at fault, with its expected and its found value.
pub fn decode_infer(
    (app_index, app): (AppIndex, &AppInfo),
    variant: Option<VariantIndex>,
    mut request: ModelInferRequest,
) -> Result<DecodedRequest, ProtocolError> {
    if request.id.len() > NAME_BYTES_MAX {
        let reason = format!(
            "has {} bytes, the limit is {NAME_BYTES_MAX}",
            request.id.len()
        );
        return Err(ProtocolError::malformed("id", reason));
    }
    let stages = stages::take_stages(&mut request.parameters)?;
    let parameters: RequestParameters =
        parameters::read(request.parameters, || "parameters".to_owned())?;
    check_timeout(app, parameters.timeout)?;
    check_accuracy(app, variant, parameters.min_accuracy)?;
    let wanted = match &stages {
        Some(stages) if !stages.gives_outputs() => WantedOutputs::new(),
        _ => wanted(app, request.outputs)?,
    };
    let (rows, inputs) = match &stages {
        Some(stages) if !stages.takes_inputs() => {
            without_inputs(&request.inputs)?;
            (stages.rows.len(), Vec::new())
        }
        _ => inputs(app, request.inputs, request.raw_input_contents)?,
    };
    if let Some(stages) = &stages {
        check_rows(app, stages, rows)?;
    }
    Ok(DecodedRequest {
        call: InferCall {
            app: app_index,
            variant,
            rows,
            inputs,
            timeout_us: parameters.timeout,
            waited_us: 0,
            parent: None,
            priority: parameters.priority,
            min_accuracy: parameters.min_accuracy,
            stages,
        },
        id: Some(request.id).filter(|id| !id.is_empty()),
        wanted,
    })
}

/// The worker has the activations of these rows.
fn without_inputs(inputs: &[InferInputTensor]) -> Result<(), ProtocolError> {
    match inputs.first() {
        None => Ok(()),
        Some(input) => {
            let found = excerpt(&input.name);
            let reason =
                format!("{found:?}: a range from a later stage on, or a release, has none");
            Err(ProtocolError::malformed("inputs", reason))
        }
    }
}

fn check_rows(app: &AppInfo, stages: &StageCall, rows: usize) -> Result<(), ProtocolError> {
    let (named, most) = (stages.rows.len(), app.max_batch_rows);
    if named == rows && (1..=most).contains(&rows) {
        return Ok(());
    }
    let reason = format!("{named} numbers for {rows} rows, must be one each, 1 to {most} rows");
    Err(ProtocolError::malformed(
        "parameters.switchyard_rows",
        reason,
    ))
}

/// Answers have raw tensors only, as Triton's.
fn wanted(
    app: &AppInfo,
    outputs: Vec<InferRequestedOutputTensor>,
) -> Result<WantedOutputs, ProtocolError> {
    let mut named = Vec::with_capacity(outputs.len());
    for (index, output) in outputs.into_iter().enumerate() {
        let field = || format!("outputs[{index}].parameters");
        let parameters: OutputParameters = parameters::read(output.parameters, field)?;
        named.push(JsonOutput {
            name: JsonText(Cow::Owned(output.name)),
            parameters: Some(OutputParameters {
                binary_data: None,
                ..parameters
            }),
        });
    }
    wanted_outputs(app, &named, true)
}

fn inputs(
    app: &AppInfo,
    inputs: Vec<InferInputTensor>,
    raw: Vec<Bytes>,
) -> Result<(usize, Vec<Tensor>), ProtocolError> {
    let is_raw = !raw.is_empty();
    if is_raw && raw.len() != inputs.len() {
        let reason = format!(
            "has {} tensors for {} inputs; send all inputs raw, or none",
            raw.len(),
            inputs.len()
        );
        return Err(ProtocolError::malformed("raw_input_contents", reason));
    }
    let mut raw = raw.into_iter();
    let mut slots = InputSlots::new(app);
    for (index, input) in inputs.into_iter().enumerate() {
        let InferInputTensor {
            name,
            datatype,
            shape,
            parameters,
            contents,
        } = input;
        let field = || format!("inputs[{index}].parameters");
        let parameters: InputParameters = parameters::read(parameters, field)?;
        let content = match (raw.next(), contents) {
            (Some(_), Some(_)) => {
                let reason = "is set together with raw_input_contents; send only one of them";
                let field = format!("inputs[{index}].contents");
                return Err(ProtocolError::malformed(field, reason));
            }
            (Some(raw), None) => Content::Raw(raw),
            (None, contents) => Content::Typed(contents.unwrap_or_default()),
        };
        slots.fill(index, &name, |spec| {
            let header = Header {
                index,
                datatype: &datatype,
                shape: &shape,
                parameters,
            };
            decode_input(app, spec, header, content)
        })?;
    }
    slots.finish()
}

enum Content {
    Raw(Bytes),
    Typed(InferTensorContents),
}

/// The parts of an input that are not its elements.
struct Header<'a> {
    /// Position in the request.
    index: usize,
    datatype: &'a str,
    shape: &'a [i64],
    parameters: InputParameters,
}

fn decode_input(
    app: &AppInfo,
    spec: &TensorSpec,
    header: Header<'_>,
    content: Content,
) -> Result<Tensor, ProtocolError> {
    let index = header.index;
    let malformed = |field: &str, reason: String| {
        ProtocolError::malformed(format!("inputs[{index}].{field}"), reason)
    };
    check_datatype(spec, header.datatype).map_err(|reason| malformed("datatype", reason))?;
    let shape = dimensions(header.shape).map_err(|reason| malformed("shape", reason))?;
    let count = check_shape(app, spec, &shape).map_err(|reason| malformed("shape", reason))?;
    if header.parameters.shared_memory_region.is_some() {
        let reason = "is not supported; send the tensor in the message";
        return Err(malformed(
            "parameters.shared_memory_region",
            reason.to_owned(),
        ));
    }
    let data = match content {
        Content::Raw(raw) => binary::take(spec.datatype, &raw, &raw, count).map_err(|reason| {
            ProtocolError::malformed(format!("raw_input_contents[{index}]"), reason)
        })?,
        Content::Typed(typed) => contents::take(spec.datatype, typed, count)
            .map_err(|reason| malformed("contents", reason))?,
    };
    finite::check(app, &data)
        .map_err(|reason| malformed("data", format!("{:?}: {reason}", spec.name)))?;
    elements::check(spec, &data).map_err(|reason| malformed("data", reason))?;
    Ok(Tensor { shape, data })
}

fn dimensions(shape: &[i64]) -> Result<Shape, String> {
    let dimensions = shape.iter().map(|&dimension| {
        usize::try_from(dimension)
            .map_err(|_| format!("{dimension} in {shape:?}, expected dimensions of 0 or more"))
    });
    dimensions.collect()
}

#[cfg(test)]
mod tests;
