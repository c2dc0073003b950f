//! From the bytes of a body to a call that the backend can trust.
//!
//! Every check is made here, once: the inputs of a decoded call match those of the app in name,
//! datatype, shape and length.

mod blobs;
pub(crate) mod elements;
pub(crate) mod finite;
mod inputs;
pub(crate) mod outputs;
mod raw;
pub(crate) mod slots;
pub(crate) mod spec;
mod target;

use bytes::Bytes;

use self::blobs::Blobs;
use self::inputs::decode_inputs;
use self::outputs::wanted_outputs;
use self::raw::decode_raw_request;
pub use self::target::DecodeTarget;
use crate::app::{AppIndex, AppInfo, VariantIndex};
use crate::call::{DecodedRequest, InferCall};
use crate::error::ProtocolError;
use crate::framing::{BodyFraming, JSON_LENGTH_FIELD};
use crate::json;

/// Reads and checks the body of one inference for the first app of a server; `json_bytes` is the
/// value of the header [`JSON_LENGTH`](crate::JSON_LENGTH), if the request has it. For measuring
/// and for fuzzing.
///
/// # Errors
/// The field at fault, with its expected and its found value.
pub fn parse(
    app: &AppInfo,
    json_bytes: Option<usize>,
    body: &Bytes,
) -> Result<InferCall, ProtocolError> {
    let target = DecodeTarget {
        app_index: AppIndex(0),
        app,
        variant: None,
        framing: BodyFraming::of_length(json_bytes),
    };
    decode(target, body).map(|request| request.call)
}

/// Decodes and checks the body of an inference. Large binary inputs stay in `body`.
///
/// # Errors
/// The field at fault, with its expected and its found value.
pub fn decode(target: DecodeTarget<'_>, body: &Bytes) -> Result<DecodedRequest, ProtocolError> {
    let (json, blobs) = match target.framing {
        BodyFraming::Raw => return decode_raw_request(target, body),
        BodyFraming::Json => (&body[..], None),
        BodyFraming::JsonThenBlobs(length) => {
            let (json, blobs) = body.split_at_checked(length).ok_or_else(|| {
                let reason = format!("is {length}, the body has {} bytes", body.len());
                ProtocolError::malformed(JSON_LENGTH_FIELD, reason)
            })?;
            (json, Some(blobs))
        }
    };
    let mut request = json::parse(json, target.app.image_json_bytes_max())?;
    let parameters = request.parameters.unwrap_or_default();
    check_timeout(target.app, parameters.timeout)?;
    check_accuracy(target.app, target.variant, parameters.min_accuracy)?;
    let outputs = request.outputs.as_ref();
    let outputs = outputs.map_or(&[][..], |outputs| &outputs.0);
    let wanted = wanted_outputs(target.app, outputs, parameters.binary_data_output)?;
    let (rows, inputs) = decode_inputs(target.app, &mut request.inputs.0, Blobs::new(body, blobs))?;
    Ok(DecodedRequest {
        call: InferCall {
            app: target.app_index,
            variant: target.variant,
            rows,
            inputs,
            timeout_us: parameters.timeout,
            waited_us: 0,
            parent: None,
            priority: parameters.priority,
            min_accuracy: parameters.min_accuracy,
            stages: None,
        },
        id: request.id.map(|id| id.0.into_owned()),
        wanted,
    })
}

/// A deadline far away holds a place in the scheduler's queues, and the largest numbers overflow
/// its times.
pub(crate) fn check_timeout(app: &AppInfo, timeout_us: Option<u64>) -> Result<(), ProtocolError> {
    let max = app.max_timeout_us;
    match timeout_us {
        Some(timeout) if timeout > max => Err(ProtocolError::malformed(
            "parameters.timeout",
            format!(
                "{timeout} us, must be 1 to {max} us, or 0 for the app's deadline (server.timeout_max_ms)"
            ),
        )),
        _ => Ok(()),
    }
}

/// An accuracy that no answer can have is refused: an answer below it would break the client's word.
pub(crate) fn check_accuracy(
    app: &AppInfo,
    variant: Option<VariantIndex>,
    min_accuracy: Option<f32>,
) -> Result<(), ProtocolError> {
    let Some(wanted) = min_accuracy.filter(|&wanted| wanted > 0.0) else {
        return Ok(());
    };
    let mut known = app.variants.iter().zip(&app.accuracies);
    let pinned = variant.and_then(|variant| known.clone().nth(variant.0));
    let unknown = match pinned {
        Some((name, accuracy)) => accuracy.is_none().then_some(name),
        None => known.find_map(|(name, accuracy)| accuracy.is_none().then_some(name)),
    };
    if let Some(name) = unknown {
        let reason = format!(
            "{wanted}, but the quality of `{name}` is unknown: leave it out, or state the quality \
             in the card of the variant"
        );
        return Err(ProtocolError::malformed("parameters.min_accuracy", reason));
    }
    let (max, of) = match pinned {
        Some((name, Some(accuracy))) => (*accuracy, name),
        _ => (app.accuracy_max, &app.name),
    };
    if wanted > max {
        return Err(ProtocolError::malformed(
            "parameters.min_accuracy",
            format!("{wanted}, the highest accuracy of `{of}` is {max}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
