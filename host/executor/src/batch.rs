//! From the inputs of requests to the tensor of a batch.

use candle_core::{Device, Tensor, WithDType};

use crate::error::ExecuteError;
use crate::job::{InputTensor, InputType, Row};
use crate::source::InputSpec;

/// Builds `[rows, ..row_shape]` and takes the rows' inputs.
///
/// A single row's vector becomes the tensor's storage as it is. The values of several rows are
/// written once, into the buffer that becomes the storage.
pub(crate) fn assemble(
    rows: &mut [Row],
    spec: &InputSpec,
    device: &Device,
) -> Result<Tensor, ExecuteError> {
    match spec.input_type {
        InputType::F32 => stack(rows, spec, device, |input| match input {
            InputTensor::F32(values) => Ok(values),
            other => Err(other),
        }),
        InputType::I64 => stack(rows, spec, device, |input| match input {
            InputTensor::I64(values) => Ok(values),
            other => Err(other),
        }),
        InputType::Bytes => stack(rows, spec, device, |input| match input {
            InputTensor::Bytes(values) => Ok(values),
            other => Err(other),
        }),
    }
}

type Take<T> = fn(InputTensor) -> Result<Vec<T>, InputTensor>;

fn stack<T: WithDType>(
    rows: &mut [Row],
    spec: &InputSpec,
    device: &Device,
    take: Take<T>,
) -> Result<Tensor, ExecuteError> {
    let first = rows.first().map(|row| row.request).unwrap_or_default();
    let mut shape = Vec::with_capacity(spec.row_shape.len() + 1);
    shape.push(rows.len());
    shape.extend_from_slice(&spec.row_shape);
    let values = if let [row] = rows {
        take_values(row, spec, take)?
    } else {
        let mut values = Vec::with_capacity(rows.len() * spec.row_len());
        for row in rows {
            values.extend_from_slice(&take_values(row, spec, take)?);
        }
        values
    };
    Tensor::from_vec(values, shape, device)
        .map_err(|error| ExecuteError::input(first, &spec.name, error.to_string()))
}

fn take_values<T>(row: &mut Row, spec: &InputSpec, take: Take<T>) -> Result<Vec<T>, ExecuteError> {
    let refuse = |reason: String| ExecuteError::input(row.request, &spec.name, reason);
    let Some(mut inputs) = row.input.take() else {
        return Err(refuse("missing".to_owned()));
    };
    let (1, Some(input)) = (inputs.len(), inputs.pop()) else {
        return Err(refuse(format!(
            "{} tensors, the model takes 1",
            inputs.len()
        )));
    };
    let values = take(input).map_err(|other| {
        refuse(format!(
            "type {:?}, the model takes {:?}",
            other.input_type(),
            spec.input_type
        ))
    })?;
    if values.len() != spec.row_len() {
        return Err(refuse(format!(
            "{} values, the model takes {}",
            values.len(),
            spec.row_len()
        )));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::{CpuStorage, Storage};
    use switchyard_core::ids::RequestId;

    use super::*;

    fn spec(row_shape: &[usize]) -> InputSpec {
        InputSpec {
            name: "beat".to_owned(),
            input_type: InputType::F32,
            row_shape: row_shape.to_vec(),
        }
    }

    fn row(request: u64, values: Vec<f32>) -> Row {
        Row {
            request: RequestId(request),
            input: Some(vec![InputTensor::F32(values)]),
        }
    }

    #[test]
    fn a_single_row_is_moved_not_copied() {
        let values = vec![1.0, 2.0, 3.0];
        let address = values.as_ptr();
        let tensor = assemble(&mut [row(1, values)], &spec(&[3]), &Device::Cpu).unwrap();
        let (storage, _) = tensor.storage_and_layout();
        let Storage::Cpu(CpuStorage::F32(stored)) = &*storage else {
            panic!("not on the CPU");
        };
        assert_eq!(stored.as_ptr(), address);
    }

    #[test]
    fn several_rows_keep_their_order() {
        let mut rows = [row(1, vec![1.0, 2.0]), row(2, vec![3.0, 4.0])];
        let tensor = assemble(&mut rows, &spec(&[1, 2]), &Device::Cpu).unwrap();
        assert_eq!(tensor.dims(), [2, 1, 2]);
        assert_eq!(
            tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
            [1.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn other_types_are_assembled_alike() {
        let spec = InputSpec {
            input_type: InputType::I64,
            ..spec(&[2])
        };
        let mut rows = [0, 1].map(|request| Row {
            request: RequestId(request),
            input: Some(vec![InputTensor::I64(vec![7, request as i64])]),
        });
        let tensor = assemble(&mut rows, &spec, &Device::Cpu).unwrap();
        assert_eq!(tensor.to_vec2::<i64>().unwrap(), [[7, 0], [7, 1]]);
    }

    #[test]
    fn a_wrong_input_names_the_request_and_the_input() {
        let refused = |rows: &mut [Row]| {
            assemble(rows, &spec(&[2]), &Device::Cpu)
                .unwrap_err()
                .to_string()
        };
        let short = refused(&mut [row(1, vec![0.0; 2]), row(7, vec![0.0; 3])]);
        assert_eq!(
            short,
            "request 7: input `beat`: 3 values, the model takes 2"
        );
        let typed = refused(&mut [Row {
            request: RequestId(3),
            input: Some(vec![InputTensor::I64(vec![1, 2])]),
        }]);
        assert_eq!(
            typed,
            "request 3: input `beat`: type I64, the model takes F32"
        );
        let missing = refused(&mut [Row {
            request: RequestId(4),
            input: None,
        }]);
        assert_eq!(missing, "request 4: input `beat`: missing");
    }
}
