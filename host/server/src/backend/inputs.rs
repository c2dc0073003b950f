//! One tensor of many rows becomes many rows of one.

use switchyard_core::cost::Cost;
use switchyard_executor::{InputTensor, Number, RowTensors, Values};
use switchyard_models::{RawTensor, card};

use super::raw;
use crate::driver::RowInput;
use crate::ingress::{Datatype, Tensor, TensorData, WireElements};

/// Splits the inputs of a call; those with a type in `raw` keep their shape. The values of a single row are moved, and values in the body stay
/// there; the values of several rows are copied once.
///
/// # Errors
/// An input of a type that no model takes.
pub(super) fn rows(
    inputs: Vec<Tensor>,
    rows: usize,
    peek: bool,
    raw: &[Option<card::Datatype>],
) -> Result<Vec<RowInput>, String> {
    let mut split: Vec<RowTensors> = (0..rows)
        .map(|_| RowTensors::with_capacity(inputs.len()))
        .collect();
    for (at, input) in inputs.into_iter().enumerate() {
        if let Some(datatype) = raw.get(at).copied().flatten() {
            deal_raw(raw::from_wire(input, datatype)?, &mut split);
            continue;
        }
        match input.data {
            TensorData::F32(values) => deal(values, &mut split, InputTensor::F32),
            TensorData::I64(values) => deal(values, &mut split, InputTensor::I64),
            TensorData::U8(values) => deal(values, &mut split, InputTensor::Bytes),
            TensorData::Bytes(texts) => deal_texts(texts, &mut split)?,
            TensorData::Wire(wire) => deal_wire(&wire, &mut split)?,
            other => return Err(unknown(other.datatype())),
        }
    }
    let rows = split.into_iter().map(|tensors| RowInput {
        peek: peek.then(|| all_floats(&tensors)).flatten(),
        tensors,
        cost: Cost::ONE,
    });
    Ok(rows.collect())
}

fn unknown(datatype: Datatype) -> String {
    format!("no model takes {}", datatype.name())
}

fn deal<T: Clone>(
    values: Vec<T>,
    rows: &mut [RowTensors],
    wrap: impl Fn(Values<T>) -> InputTensor,
) {
    if let [row] = rows {
        row.push(wrap(values.into()));
        return;
    }
    // The ingress has checked that the rows are of one length.
    let length = values.len() / rows.len().max(1);
    for (i, row) in rows.iter_mut().enumerate() {
        row.push(wrap(values[i * length..(i + 1) * length].to_vec().into()));
    }
}

fn deal_raw(tensor: RawTensor, rows: &mut [RowTensors]) {
    if let [row] = rows {
        row.push(InputTensor::Raw(tensor));
        return;
    }
    for (row, part) in rows.iter_mut().zip(tensor.split_rows()) {
        row.push(InputTensor::Raw(part));
    }
}

fn deal_wire(wire: &WireElements, rows: &mut [RowTensors]) -> Result<(), String> {
    match wire.datatype {
        Datatype::F32 => deal_parts(wire, rows, InputTensor::F32),
        Datatype::I64 => deal_parts(wire, rows, InputTensor::I64),
        Datatype::U8 => deal_parts(wire, rows, InputTensor::Bytes),
        other => Err(unknown(other)),
    }
}

/// Each row has a part of the same bytes.
fn deal_parts<T: Number>(
    wire: &WireElements,
    rows: &mut [RowTensors],
    wrap: impl Fn(Values<T>) -> InputTensor,
) -> Result<(), String> {
    let length = wire.bytes.len() / rows.len().max(1);
    for (i, row) in rows.iter_mut().enumerate() {
        let part = wire.bytes.slice(i * length..(i + 1) * length);
        let part = Values::wire(part).ok_or("a row ends within a number")?;
        row.push(wrap(part));
    }
    Ok(())
}

/// One text per row.
fn deal_texts(texts: Vec<Vec<u8>>, rows: &mut [RowTensors]) -> Result<(), String> {
    if texts.len() != rows.len() {
        return Err(format!("{} texts for {} rows", texts.len(), rows.len()));
    }
    for (text, row) in texts.into_iter().zip(rows) {
        // The ingress has checked it.
        let text = String::from_utf8(text).map_err(|error| error.to_string())?;
        row.push(InputTensor::Text(text.into()));
    }
    Ok(())
}

/// A copy of all inputs, one after another; none when some are no floats.
fn all_floats(tensors: &[InputTensor]) -> Option<Vec<f32>> {
    let mut all = Vec::with_capacity(tensors.iter().map(InputTensor::len).sum());
    for tensor in tensors {
        let InputTensor::F32(values) = tensor else {
            return None;
        };
        values.append_to(&mut all);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], values: Vec<f32>) -> Tensor {
        Tensor {
            shape: shape.into(),
            data: TensorData::F32(values),
        }
    }

    #[test]
    fn a_single_row_is_moved() {
        let values = vec![1.0, 2.0];
        let address = values.as_ptr();
        let mut rows = rows(vec![tensor(&[1, 2], values)], 1, false, &[]).unwrap();
        assert_eq!(rows[0].peek, None);
        let InputTensor::F32(moved) = rows[0].tensors.remove(0) else {
            panic!("not floats")
        };
        let moved = moved.into_vec();
        assert_eq!(moved.as_ptr(), address);
    }

    #[test]
    fn rows_keep_their_order_and_carry_a_copy_where_wanted() {
        let rows = rows(
            vec![tensor(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])],
            2,
            true,
            &[],
        )
        .unwrap();
        assert_eq!(
            rows[0].tensors[..],
            [InputTensor::F32(vec![1.0, 2.0].into())]
        );
        assert_eq!(
            rows[1].tensors[..],
            [InputTensor::F32(vec![3.0, 4.0].into())]
        );
        assert_eq!(rows[1].peek, Some(vec![3.0, 4.0]));
    }

    #[test]
    fn rows_share_the_body_that_brought_them() {
        let wire = |datatype| Tensor {
            shape: [2, 2].as_slice().into(),
            data: TensorData::Wire(WireElements {
                datatype,
                bytes: [1.0_f32, 2.0, 3.0, 4.0]
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
            }),
        };
        let dealt = rows(vec![wire(Datatype::F32)], 2, true, &[]).unwrap();
        assert_eq!(
            dealt[0].tensors[..],
            [InputTensor::F32(vec![1.0, 2.0].into())]
        );
        assert_eq!(
            dealt[1].tensors[..],
            [InputTensor::F32(vec![3.0, 4.0].into())]
        );
        assert_eq!(dealt[1].peek, Some(vec![3.0, 4.0]));
        assert_eq!(
            rows(vec![wire(Datatype::F64)], 2, false, &[]).unwrap_err(),
            "no model takes FP64"
        );
    }

    #[test]
    fn the_copy_holds_all_inputs() {
        let inputs = vec![tensor(&[1, 1], vec![1.0]), tensor(&[1, 2], vec![2.0, 3.0])];
        let rows = rows(inputs, 1, true, &[]).unwrap();
        assert_eq!(rows[0].peek, Some(vec![1.0, 2.0, 3.0]));
    }

    #[test]
    fn each_row_has_its_text() {
        let texts = Tensor {
            shape: [2, 1].as_slice().into(),
            data: TensorData::Bytes(vec!["Zürich".into(), Vec::new()]),
        };
        let rows = rows(vec![texts], 2, true, &[]).unwrap();
        assert_eq!(rows[0].tensors[..], [InputTensor::Text("Zürich".into())]);
        assert_eq!(rows[1].tensors[..], [InputTensor::Text("".into())]);
        assert_eq!(rows[0].peek, None);
    }

    #[test]
    fn a_type_that_no_model_takes_is_named() {
        let input = Tensor {
            shape: [1, 1].as_slice().into(),
            data: TensorData::Bool(vec![true]),
        };
        assert_eq!(
            rows(vec![input], 1, false, &[]).unwrap_err(),
            "no model takes BOOL"
        );
    }
}
