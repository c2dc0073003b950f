//! One tensor of many rows becomes many rows of one.

use switchyard_executor::InputTensor;

use crate::driver::RowInput;
use crate::ingress::{Tensor, TensorData};

/// Splits the inputs of a call. The values of a single row are moved, those of several are
/// copied once.
///
/// # Errors
/// An input of a type that no model takes.
pub(super) fn rows(inputs: Vec<Tensor>, rows: usize, peek: bool) -> Result<Vec<RowInput>, String> {
    let mut split: Vec<Vec<InputTensor>> = (0..rows)
        .map(|_| Vec::with_capacity(inputs.len()))
        .collect();
    for input in inputs {
        match input.data {
            TensorData::F32(values) => deal(values, &mut split, InputTensor::F32),
            TensorData::I64(values) => deal(values, &mut split, InputTensor::I64),
            TensorData::U8(values) => deal(values, &mut split, InputTensor::Bytes),
            TensorData::Bytes(texts) => deal_texts(texts, &mut split)?,
            other => return Err(format!("no model takes {}", other.datatype().name())),
        }
    }
    let rows = split.into_iter().map(|tensors| RowInput {
        peek: peek.then(|| all_floats(&tensors)).flatten(),
        tensors,
    });
    Ok(rows.collect())
}

fn deal<T: Clone>(
    values: Vec<T>,
    rows: &mut [Vec<InputTensor>],
    wrap: impl Fn(Vec<T>) -> InputTensor,
) {
    if let [row] = rows {
        row.push(wrap(values));
        return;
    }
    // The ingress has checked that the rows are of one length.
    let length = values.len() / rows.len().max(1);
    for (i, row) in rows.iter_mut().enumerate() {
        row.push(wrap(values[i * length..(i + 1) * length].to_vec()));
    }
}

/// One text per row.
fn deal_texts(texts: Vec<Vec<u8>>, rows: &mut [Vec<InputTensor>]) -> Result<(), String> {
    if texts.len() != rows.len() {
        return Err(format!("{} texts for {} rows", texts.len(), rows.len()));
    }
    for (text, row) in texts.into_iter().zip(rows) {
        // The ingress has checked it.
        let text = String::from_utf8(text).map_err(|error| error.to_string())?;
        row.push(InputTensor::Text(text));
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
        all.extend_from_slice(values);
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
        let rows = rows(vec![tensor(&[1, 2], values)], 1, false).unwrap();
        let InputTensor::F32(moved) = &rows[0].tensors[0] else {
            panic!("not floats")
        };
        assert_eq!(moved.as_ptr(), address);
        assert_eq!(rows[0].peek, None);
    }

    #[test]
    fn rows_keep_their_order_and_carry_a_copy_where_wanted() {
        let rows = rows(vec![tensor(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])], 2, true).unwrap();
        assert_eq!(rows[0].tensors, [InputTensor::F32(vec![1.0, 2.0])]);
        assert_eq!(rows[1].tensors, [InputTensor::F32(vec![3.0, 4.0])]);
        assert_eq!(rows[1].peek, Some(vec![3.0, 4.0]));
    }

    #[test]
    fn the_copy_holds_all_inputs() {
        let inputs = vec![tensor(&[1, 1], vec![1.0]), tensor(&[1, 2], vec![2.0, 3.0])];
        let rows = rows(inputs, 1, true).unwrap();
        assert_eq!(rows[0].peek, Some(vec![1.0, 2.0, 3.0]));
    }

    #[test]
    fn each_row_has_its_text() {
        let texts = Tensor {
            shape: [2, 1].as_slice().into(),
            data: TensorData::Bytes(vec!["Zürich".into(), Vec::new()]),
        };
        let rows = rows(vec![texts], 2, true).unwrap();
        assert_eq!(rows[0].tensors, [InputTensor::Text("Zürich".to_owned())]);
        assert_eq!(rows[1].tensors, [InputTensor::Text(String::new())]);
        assert_eq!(rows[0].peek, None);
    }

    #[test]
    fn a_type_that_no_model_takes_is_named() {
        let input = Tensor {
            shape: [1, 1].as_slice().into(),
            data: TensorData::Bool(vec![true]),
        };
        assert_eq!(
            rows(vec![input], 1, false).unwrap_err(),
            "no model takes BOOL"
        );
    }
}
