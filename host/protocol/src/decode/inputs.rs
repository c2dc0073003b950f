//! The inputs of a request, checked and in the app's order.

use smallvec::SmallVec;

use super::blobs::Blobs;
use super::elements;
use super::finite;
use super::spec::{TensorList, check_datatype, check_shape};
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
    inputs: Vec<JsonInput<'_>>,
    mut blobs: Blobs<'_>,
) -> Result<(usize, Vec<Tensor>), ProtocolError> {
    let mut slots: SmallVec<[Option<Tensor>; 4]> = app.inputs.iter().map(|_| None).collect();
    let mut rows = None;
    for (index, input) in inputs.into_iter().enumerate() {
        let spec = TensorList::Inputs.find(app, index, &input.name.0)?;
        if slots[spec].is_some() {
            return Err(TensorList::Inputs.repeated(index, &input.name.0));
        }
        let tensor = decode_input(app, &app.inputs[spec], index, input, &mut blobs)?;
        let own_rows = tensor.shape[0];
        if *rows.get_or_insert(own_rows) != own_rows {
            let reason = format!(
                "has {own_rows} rows, the inputs before it have {}",
                rows.unwrap_or_default()
            );
            return Err(ProtocolError::malformed(
                format!("inputs[{index}].shape"),
                reason,
            ));
        }
        slots[spec] = Some(tensor);
    }
    blobs.finish()?;
    let tensors = slots
        .into_iter()
        .zip(&app.inputs)
        .map(|(slot, spec)| {
            slot.ok_or_else(|| {
                ProtocolError::malformed("inputs", format!("{:?} is missing", spec.name))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rows = rows.ok_or_else(|| ProtocolError::malformed("inputs", "is empty"))?;
    Ok((rows, tensors))
}

fn decode_input(
    app: &AppInfo,
    spec: &TensorSpec,
    index: usize,
    input: JsonInput<'_>,
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
    let data = match (input.data, input.parameters.binary_data_size) {
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
        shape: input.shape,
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
