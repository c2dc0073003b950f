//! Which outputs a client wants, and in which form.

use super::{Wanted, WantedOutputs, find, unknown_tensor};
use crate::ingress::backend::AppInfo;
use crate::ingress::error::ProtocolError;
use crate::ingress::request::RequestOutput;

/// What the client wants back; an absent or empty list means everything.
pub(super) fn wanted_outputs(
    app: &AppInfo,
    outputs: &[RequestOutput<'_>],
    binary_by_default: bool,
) -> Result<WantedOutputs, ProtocolError> {
    let mut wanted = WantedOutputs::new();
    if outputs.is_empty() {
        let binary = binary_by_default;
        wanted.extend((0..app.outputs.len()).map(|spec| Wanted { spec, binary }));
    }
    for (index, output) in outputs.iter().enumerate() {
        let spec = find(&app.outputs, &output.name.0)
            .ok_or_else(|| unknown_tensor("output", index, &output.name.0, app))?;
        if wanted.iter().any(|earlier| earlier.spec == spec) {
            let reason = format!("{:?} is there twice", output.name.0);
            return Err(ProtocolError::malformed(
                format!("outputs[{index}].name"),
                reason,
            ));
        }
        let binary = output_is_binary(index, output)?.unwrap_or(binary_by_default);
        wanted.push(Wanted { spec, binary });
    }
    for output in &wanted {
        let spec = &app.outputs[output.spec];
        if !output.binary && !spec.datatype.has_json_form() {
            let reason = format!(
                "{:?} is {}, which has no JSON form; ask for it with parameters.binary_data",
                spec.name,
                spec.datatype.name()
            );
            return Err(ProtocolError::malformed("outputs", reason));
        }
    }
    Ok(wanted)
}

fn output_is_binary(
    index: usize,
    output: &RequestOutput<'_>,
) -> Result<Option<bool>, ProtocolError> {
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
    if let Some((name, _)) = unsupported.iter().find(|(_, asked)| *asked) {
        return Err(ProtocolError::malformed(
            format!("outputs[{index}].parameters.{name}"),
            "is not supported",
        ));
    }
    Ok(parameters.binary_data)
}
