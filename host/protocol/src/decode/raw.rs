//! Raw requests: no JSON, one tensor.

use bytes::Bytes;

use super::elements;
use super::finite;
use super::outputs::wanted_outputs;
use super::spec::check_shape;
use super::target::DecodeTarget;
use crate::app::TensorSpec;
use crate::binary;
use crate::call::{DecodedRequest, InferCall};
use crate::datatype::Datatype;
use crate::error::ProtocolError;
use crate::framing::JSON_LENGTH_FIELD;
use crate::tensor::{Shape, Tensor, TensorData};

/// Decodes a body that is the blob of the app's only input.
pub(super) fn decode_raw_request(
    target: DecodeTarget<'_>,
    body: &Bytes,
) -> Result<DecodedRequest, ProtocolError> {
    let [spec] = target.app.inputs.as_slice() else {
        let reason = format!(
            "0 sends one raw input, but app {:?} has {} inputs",
            target.app.name,
            target.app.inputs.len()
        );
        return Err(ProtocolError::malformed(JSON_LENGTH_FIELD, reason));
    };
    let malformed = |reason| ProtocolError::malformed("body", reason);
    let shape = raw_shape(spec, body.len()).map_err(malformed)?;
    let count = check_shape(target.app, spec, &shape).map_err(malformed)?;
    let data = if spec.datatype != Datatype::Bytes {
        binary::take(spec.datatype, body, body, count).map_err(malformed)?
    } else if count == 1 {
        TensorData::Bytes(vec![body.to_vec()])
    } else {
        let reason = format!("a raw BYTES body is one element, {shape:?} has {count}");
        return Err(malformed(reason));
    };
    elements::check(spec, &data).map_err(malformed)?;
    finite::check(target.app, &data)
        .map_err(|reason| malformed(format!("{:?}: {reason}", spec.name)))?;
    Ok(DecodedRequest {
        call: InferCall {
            app: target.app_index,
            variant: target.variant,
            rows: shape[0],
            inputs: vec![Tensor { shape, data }],
            timeout_us: None,
            waited_us: 0,
            parent: None,
            priority: 0,
            min_accuracy: None,
            stages: None,
        },
        id: None,
        wanted: wanted_outputs(target.app, &[], true)?,
    })
}

/// The shape of a raw input, from its size. With fixed dimensions the size gives the rows; with
/// one variable dimension the body is one row, and the size gives that dimension.
fn raw_shape(spec: &TensorSpec, bytes: usize) -> Result<Shape, String> {
    // A raw BYTES body is one element of any length.
    let elements = spec.datatype.size().map_or(1, |size| bytes / size);
    let fixed = spec
        .shape
        .iter()
        .filter_map(|&dim| usize::try_from(dim).ok());
    let fixed = fixed.product::<usize>().max(1);
    let variable = spec.shape.iter().filter(|&&dim| dim < 0).count();
    // At least 1, so that the error for a body that is too short names the expected length.
    let found = (elements / fixed).max(1);
    let mut shape = Shape::new();
    match variable {
        0 => shape.push(found),
        1 => shape.push(1),
        _ => {
            return Err(format!(
                "{:?} has {variable} variable dimensions; a raw request can have one",
                spec.name
            ));
        }
    }
    shape.extend(
        spec.shape
            .iter()
            .map(|&dim| usize::try_from(dim).unwrap_or(found)),
    );
    Ok(shape)
}
