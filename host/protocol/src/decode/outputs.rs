//! The outputs that a client wants, and in which form.

use super::spec::TensorList;
use crate::app::{AppInfo, OutputIndex};
use crate::call::{WantedOutput, WantedOutputs};
use crate::error::ProtocolError;
use crate::json::request::JsonOutput;

/// The outputs that the client wants; an absent or empty list means all of them.
pub(super) fn wanted_outputs(
    app: &AppInfo,
    outputs: &[JsonOutput<'_>],
    binary_by_default: bool,
) -> Result<WantedOutputs, ProtocolError> {
    let mut wanted = WantedOutputs::new();
    if outputs.is_empty() {
        let binary = binary_by_default;
        let all = (0..app.outputs.len()).map(OutputIndex);
        wanted.extend(all.map(|output| WantedOutput { output, binary }));
    }
    for (index, requested) in outputs.iter().enumerate() {
        let name = &requested.name.0;
        let output = OutputIndex(TensorList::Outputs.find(app, index, name)?);
        if wanted.iter().any(|earlier| earlier.output == output) {
            return Err(TensorList::Outputs.repeated(index, name));
        }
        let binary = is_binary(index, requested)?.unwrap_or(binary_by_default);
        wanted.push(WantedOutput { output, binary });
    }
    for WantedOutput { output, binary } in &wanted {
        let spec = &app.outputs[output.0];
        if !binary && !spec.datatype.has_json_form() {
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
    let unsupported = [
        ("classification", parameters.classification.is_some()),
        (
            "shared_memory_region",
            parameters.shared_memory_region.is_some(),
        ),
    ];
    if let Some((name, _)) = unsupported.iter().find(|(_, set)| *set) {
        return Err(ProtocolError::malformed(
            format!("outputs[{index}].parameters.{name}"),
            "is not supported",
        ));
    }
    Ok(parameters.binary_data)
}
