//! The outputs that a client wants, and in which form.

use super::spec::TensorList;
use crate::app::{AppInfo, OutputIndex, TensorSpec};
use crate::call::{WantedOutput, WantedOutputs};
use crate::datatype::Datatype;
use crate::error::ProtocolError;
use crate::json::request::JsonOutput;

/// The outputs that the client wants; an absent or empty list means all of them.
pub(crate) fn wanted_outputs(
    app: &AppInfo,
    outputs: &[JsonOutput<'_>],
    binary_by_default: bool,
) -> Result<WantedOutputs, ProtocolError> {
    let mut wanted = WantedOutputs::new();
    if outputs.is_empty() {
        let binary = binary_by_default;
        let all = (0..app.outputs.len()).map(OutputIndex);
        wanted.extend(all.map(|output| WantedOutput {
            output,
            binary,
            classes: 0,
        }));
    }
    for (index, requested) in outputs.iter().enumerate() {
        let name = &requested.name.0;
        let output = OutputIndex(TensorList::Outputs.find(app, index, name)?);
        if wanted.iter().any(|earlier| earlier.output == output) {
            return Err(TensorList::Outputs.repeated(index, name));
        }
        let binary = is_binary(index, requested)?.unwrap_or(binary_by_default);
        let classes = classes(index, requested, &app.outputs[output.0])?;
        wanted.push(WantedOutput {
            output,
            binary,
            classes,
        });
    }
    for wanted in &wanted {
        let spec = &app.outputs[wanted.output.0];
        if !wanted.binary && !spec.datatype.has_json_form() {
            let reason = format!(
                "{:?} is {}, which has no JSON form; set its parameters.binary_data to true",
                spec.name,
                spec.datatype.name()
            );
            return Err(ProtocolError::malformed("outputs", reason));
        }
    }
    Ok(wanted)
}

fn is_binary(index: usize, output: &JsonOutput<'_>) -> Result<Option<bool>, ProtocolError> {
    let Some(parameters) = &output.parameters else {
        return Ok(None);
    };
    if parameters.shared_memory_region.is_some() {
        return Err(ProtocolError::malformed(
            format!("outputs[{index}].parameters.shared_memory_region"),
            "is not supported",
        ));
    }
    Ok(parameters.binary_data)
}

/// The classes that the client wants of each row; 0: its values.
fn classes(
    index: usize,
    output: &JsonOutput<'_>,
    spec: &TensorSpec,
) -> Result<usize, ProtocolError> {
    let parameters = output.parameters.as_ref();
    let Some(wanted) = parameters.and_then(|parameters| parameters.classification) else {
        return Ok(0);
    };
    let sizes = spec.shape.iter().map(|&size| usize::try_from(size).ok());
    let values = sizes.product::<Option<usize>>().unwrap_or(usize::MAX);
    let name = &spec.name;
    let reason = if spec.datatype != Datatype::F32 {
        let datatype = spec.datatype.name();
        format!("{name:?} is {datatype}, classes are ranked by FP32")
    } else if wanted == 0 || wanted > values {
        format!("{wanted}, must be 1 to {values}, the values of a row of {name:?}")
    } else {
        return Ok(wanted);
    };
    let field = format!("outputs[{index}].parameters.classification");
    Err(ProtocolError::malformed(field, reason))
}
