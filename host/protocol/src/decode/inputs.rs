//! The inputs of a request, checked and in the app's order.

use std::mem::take;

use super::blobs::Blobs;
use super::elements;
use super::finite;
use super::slots::InputSlots;
use super::spec::{check_datatype, check_shape};
use crate::app::{AppInfo, TensorSpec};
use crate::binary;
use crate::datatype::Datatype;
use crate::error::ProtocolError;
use crate::json::data::{DataSeed, decode_raw};
use crate::json::request::{JsonData, JsonInput};
use crate::tensor::{Tensor, TensorData};

/// Decodes all inputs into the app's order; returns the number of rows, the same in all of them.
pub(super) fn decode_inputs(
    app: &AppInfo,
    inputs: &mut [JsonInput<'_>],
    mut blobs: Blobs<'_>,
) -> Result<(usize, Vec<Tensor>), ProtocolError> {
    let mut slots = InputSlots::new(app);
    for (index, input) in inputs.iter_mut().enumerate() {
        let name = take(&mut input.name.0);
        slots.fill(index, &name, |spec| {
            decode_input(app, spec, index, input, &mut blobs)
        })?;
    }
    blobs.finish()?;
    slots.finish()
}

fn decode_input(
    app: &AppInfo,
    spec: &TensorSpec,
    index: usize,
    input: &mut JsonInput<'_>,
    blobs: &mut Blobs<'_>,
) -> Result<Tensor, ProtocolError> {
    let malformed = |field: &str, reason: String| {
        ProtocolError::malformed(format!("inputs[{index}].{field}"), reason)
    };
    check_datatype(spec, &input.datatype.0).map_err(|reason| malformed("datatype", reason))?;
    let count =
        check_shape(app, spec, &input.shape).map_err(|reason| malformed("shape", reason))?;
    if input.parameters.shared_memory_region.is_some() {
        let field = "parameters.shared_memory_region";
        let reason = "is not supported; send the tensor in the body";
        return Err(malformed(field, reason.to_owned()));
    }
    let data = match (take(&mut input.data), input.parameters.binary_data_size) {
        (JsonData::Absent, Some(size)) => {
            let blob = blobs.take(index, size)?;
            let data = binary::take(spec.datatype, blobs.body, blob, count)
                .map_err(|reason| malformed("parameters.binary_data_size", reason))?;
            let named = |reason| malformed("data", format!("{:?}: {reason}", spec.name));
            finite::check(app, &data).map_err(named)?;
            data
        }
        (JsonData::Absent, None) => {
            let reason = "is missing, and so is parameters.binary_data_size";
            return Err(malformed("data", reason.to_owned()));
        }
        (_, Some(_)) => {
            let reason = "is set together with parameters.binary_data_size; send only one of them";
            return Err(malformed("data", reason.to_owned()));
        }
        (data, None) => json_data(data, spec.datatype, count)
            .and_then(|data| elements::of_json(spec, data))
            .map_err(|reason| malformed("data", reason))?,
    };
    elements::check(spec, &data).map_err(|reason| malformed("data", reason))?;
    Ok(Tensor {
        shape: take(&mut input.shape),
        data,
    })
}

/// The elements of `data`, whose datatype and count are certain by now.
fn json_data(data: JsonData<'_>, datatype: Datatype, count: usize) -> Result<TensorData, String> {
    let decoded = match data {
        JsonData::Decoded(decoded) => decoded,
        JsonData::Raw(raw) => {
            let expected = count;
            decode_raw(raw, DataSeed { datatype, expected })?
        }
        JsonData::Absent => return Err("is missing".to_owned()),
    };
    if decoded.found == count {
        Ok(decoded.data)
    } else {
        Err(format!("expected {count} elements, got {}", decoded.found))
    }
}
