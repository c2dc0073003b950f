//! From the inputs of requests to the tensor of a batch.

use candle_core::{Device, Tensor};
use switchyard_models::tokens::{stack, stack_pairs};

use crate::cuda::{Staged, Staging};
use crate::error::ExecuteError;
use crate::job::{InputTensor, InputType, JobRow, RowTensors};
use crate::source::{InputSpec, LoadedModel};
use crate::text::TextInput;
use crate::values::{Number, Values};

/// The values of a batch that its model reads, on the host, `[rows, values]`.
pub(crate) enum BatchInputs {
    F32(InputPieces<f32>),
    I64(InputPieces<i64>),
    Bytes(InputPieces<u8>),
    /// Token ids, `[rows, tokens of the longest]`; of pairs with segments, `[rows, tokens, 2]`.
    Tokens(Tensor),
}

/// The numbers of a batch, as the requests brought them: pieces that follow one another.
pub(crate) struct InputPieces<T> {
    values: Vec<Values<T>>,
    /// Rows, and values per row.
    shape: (usize, usize),
}

/// Builds the tensor `[rows, values]` that the model reads, and takes the rows' inputs.
pub(crate) fn assemble(
    rows: &mut [JobRow],
    model: &LoadedModel,
    device: &Device,
) -> Result<Tensor, ExecuteError> {
    let inputs = gather(rows, model)?;
    if device.is_cpu() {
        return inputs.into_tensor(model);
    }
    inputs.upload(model, &mut Staging::default(), device)
}

/// Takes the inputs that the model reads out of the rows. Texts become token ids.
pub(crate) fn gather(
    rows: &mut [JobRow],
    model: &LoadedModel,
) -> Result<BatchInputs, ExecuteError> {
    let first = rows.first().map(|row| row.request).unwrap_or_default();
    let read: Vec<&InputSpec> = model
        .reads
        .iter()
        .filter_map(|&at| model.inputs.get(at))
        .collect();
    let Some(types) = read.first().map(|spec| spec.input_type) else {
        return Err(ExecuteError::job(&model.name, "it reads no input"));
    };
    if let Some(other) = read.iter().find(|spec| spec.input_type != types) {
        let reason = format!("type {:?} next to {types:?}", other.input_type);
        return Err(ExecuteError::input(first, &other.name, reason));
    }
    let width = read.iter().map(|spec| spec.row_len()).sum();
    let reader = RowReader { model, width };
    match types {
        InputType::F32 => reader
            .pieces(rows, |input| match input {
                InputTensor::F32(values) => Ok(values),
                other => Err(other),
            })
            .map(BatchInputs::F32),
        InputType::I64 => reader
            .pieces(rows, |input| match input {
                InputTensor::I64(values) => Ok(values),
                other => Err(other),
            })
            .map(BatchInputs::I64),
        InputType::Bytes => reader
            .pieces(rows, |input| match input {
                InputTensor::Bytes(values) => Ok(values),
                other => Err(other),
            })
            .map(BatchInputs::Bytes),
        InputType::Text => reader.tokens(rows).map(BatchInputs::Tokens),
        InputType::Raw(datatype) => {
            let reason = format!("{} of any shape: only a graph takes it", datatype.name());
            let name = read.first().map_or("", |spec| spec.name.as_str());
            Err(ExecuteError::input(first, name, reason))
        }
    }
}

/// Takes the values of an input of one type; returns an input of another type unchanged.
type TakeValues<V> = fn(InputTensor) -> Result<V, InputTensor>;

/// Reads the rows of a batch for a model.
struct RowReader<'a> {
    model: &'a LoadedModel,
    /// Values of one row.
    width: usize,
}

// === impl BatchInputs ===

impl BatchInputs {
    /// On the CPU. The vector of a single row's only input becomes the tensor's storage unless it is
    /// shared; otherwise values are written once, into the buffer that becomes the storage.
    pub(crate) fn into_tensor(self, model: &LoadedModel) -> Result<Tensor, ExecuteError> {
        let tensor = match self {
            Self::F32(pieces) => pieces.into_tensor(),
            Self::I64(pieces) => pieces.into_tensor(),
            Self::Bytes(pieces) => pieces.into_tensor(),
            Self::Tokens(ids) => Ok(ids),
        };
        tensor.map_err(|error| ExecuteError::compute(&model.name, "inputs", &error))
    }

    /// A copy on a device with memory of its own.
    pub(crate) fn upload(
        &self,
        model: &LoadedModel,
        staging: &mut Staging,
        device: &Device,
    ) -> Result<Tensor, ExecuteError> {
        let tensor = match self {
            Self::F32(pieces) => pieces.upload(staging, device),
            Self::I64(pieces) => pieces.upload(staging, device),
            Self::Bytes(pieces) => pieces.upload(staging, device),
            Self::Tokens(ids) => ids.to_device(device),
        };
        tensor.map_err(|error| ExecuteError::compute(&model.name, "inputs", &error))
    }
}

// === impl InputPieces ===

impl<T: Staged + Number> InputPieces<T> {
    fn into_tensor(mut self) -> candle_core::Result<Tensor> {
        let whole = match self.values.len() {
            1 => self.values.swap_remove(0).into_vec(),
            _ => Values::joined(&self.values),
        };
        Tensor::from_vec(whole, self.shape, &Device::Cpu)
    }

    fn upload(&self, staging: &mut Staging, device: &Device) -> candle_core::Result<Tensor> {
        staging.upload(&self.values, self.shape, device)
    }
}

// === impl RowReader ===

impl RowReader<'_> {
    fn pieces<T: Staged + Number>(
        &self,
        rows: &mut [JobRow],
        take: TakeValues<Values<T>>,
    ) -> Result<InputPieces<T>, ExecuteError> {
        let reads = self.model.reads.as_slice();
        let mut values = Vec::with_capacity(rows.len() * reads.len());
        let shape = (rows.len(), self.width);
        for row in rows {
            let inputs = self.inputs(row)?;
            for (at, input) in inputs.into_iter().enumerate() {
                if reads.contains(&at) {
                    values.push(self.values(row, at, input, take)?);
                }
            }
        }
        Ok(InputPieces { values, shape })
    }

    /// The token ids of the rows' texts, or of their pairs of texts.
    fn tokens(&self, rows: &mut [JobRow]) -> Result<Tensor, ExecuteError> {
        let first = rows.first().map(|row| row.request).unwrap_or_default();
        let refuse = |reason: &str| Err(ExecuteError::job(&self.model.name, reason));
        let Some(tokenizer) = self.model.model.tokenizer() else {
            return refuse("it takes no text");
        };
        let stacked = match (tokenizer.texts(), self.model.reads.as_slice()) {
            (1, &[at]) => {
                let texts = rows.iter_mut().map(|row| {
                    let [text] = self.texts(row, [at])?;
                    let refuse = |reason| self.refused(row, at, reason);
                    text.into_ids(tokenizer).map_err(refuse)
                });
                let texts = texts.collect::<Result<Vec<_>, _>>()?;
                stack(&texts, &Device::Cpu)
            }
            (2, &[at, then]) => {
                let pairs = rows.iter_mut().map(|row| {
                    let [text, second] = self.texts(row, [at, then])?;
                    let refuse = |reason| self.refused(row, at, reason);
                    text.into_pair(&second, tokenizer).map_err(refuse)
                });
                let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
                stack_pairs(&pairs, &Device::Cpu)
            }
            (texts, reads) => {
                let reads = reads.len();
                return refuse(&format!(
                    "it takes texts by {texts}, and reads {reads} inputs"
                ));
            }
        };
        stacked.map_err(|error| ExecuteError::input(first, &self.model.name, error.to_string()))
    }

    /// The texts of a row at these inputs of the app.
    fn texts<const N: usize>(
        &self,
        row: &mut JobRow,
        at: [usize; N],
    ) -> Result<[TextInput; N], ExecuteError> {
        let inputs = self.inputs(row)?;
        let mut texts: [Option<TextInput>; N] = [const { None }; N];
        for (input, position) in inputs.into_iter().zip(0..) {
            if let Some(slot) = at.iter().position(|&at| at == position) {
                texts[slot] = Some(self.values(row, position, input, |input| match input {
                    InputTensor::Text(text) => Ok(text),
                    other => Err(other),
                })?);
            }
        }
        // Each position is one that was checked to be there.
        let missing = |slot: usize| self.refused(row, at[slot], "missing".to_owned());
        let mut taken = Vec::with_capacity(N);
        for (slot, text) in texts.into_iter().enumerate() {
            taken.push(text.ok_or_else(|| missing(slot))?);
        }
        taken.try_into().map_err(|_| missing(0))
    }

    fn refused(&self, row: &JobRow, at: usize, reason: String) -> ExecuteError {
        ExecuteError::input(row.request, &self.model.inputs[at].name, reason)
    }

    /// The tensors of a row, one per input of the app.
    fn inputs(&self, row: &mut JobRow) -> Result<RowTensors, ExecuteError> {
        let inputs = row.input.take().unwrap_or_default();
        if let Some(missing) = self.model.inputs.get(inputs.len()) {
            return Err(ExecuteError::input(row.request, &missing.name, "missing"));
        }
        if inputs.len() > self.model.inputs.len() {
            let (found, known) = (inputs.len(), self.model.inputs.len());
            let reason = format!("{found} tensors, the app has {known}");
            return Err(ExecuteError::input(row.request, &self.model.name, reason));
        }
        Ok(inputs)
    }

    fn values<V>(
        &self,
        row: &JobRow,
        at: usize,
        input: InputTensor,
        take: TakeValues<V>,
    ) -> Result<V, ExecuteError> {
        let spec = &self.model.inputs[at];
        let refuse = |reason: String| ExecuteError::input(row.request, &spec.name, reason);
        let found = input.len();
        let values = take(input).map_err(|other| {
            refuse(format!(
                "type {:?}, the model takes {:?}",
                other.input_type(),
                spec.input_type
            ))
        })?;
        if found != spec.row_len() {
            let reason = format!("{found} values, the model takes {}", spec.row_len());
            return Err(refuse(reason));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use candle_core::{CpuStorage, Storage};
    use switchyard_core::ids::RequestId;
    use switchyard_models::card::Datatype;

    use super::*;
    use crate::toy::ToyModel;

    fn spec(name: &str, input_type: InputType, row_len: usize) -> InputSpec {
        InputSpec {
            name: name.to_owned(),
            datatype: Datatype::Fp32,
            input_type,
            row_shape: vec![row_len],
            open: Vec::new(),
        }
    }

    fn model(inputs: Vec<InputSpec>, reads: &[usize]) -> LoadedModel {
        LoadedModel {
            name: "app/variant".to_owned(),
            model: Arc::new(ToyModel),
            inputs: inputs.into(),
            reads: reads.to_vec(),
            bytes: 0,
        }
    }

    fn beats(row_len: usize) -> LoadedModel {
        model(vec![spec("beat", InputType::F32, row_len)], &[0])
    }

    fn row(request: u64, values: Vec<f32>) -> JobRow {
        JobRow {
            request: RequestId(request),
            input: Some([InputTensor::F32(values.into())].into()),
        }
    }

    #[test]
    fn a_single_row_is_moved_not_copied() {
        let values = vec![1.0, 2.0, 3.0];
        let address = values.as_ptr();
        let tensor = assemble(&mut [row(1, values)], &beats(3), &Device::Cpu).unwrap();
        let (storage, _) = tensor.storage_and_layout();
        let Storage::Cpu(CpuStorage::F32(stored)) = &*storage else {
            panic!("not on the CPU");
        };
        assert_eq!(stored.as_ptr(), address);
    }

    #[test]
    fn several_rows_keep_their_order() {
        let mut rows = [row(1, vec![1.0, 2.0]), row(2, vec![3.0, 4.0])];
        let tensor = assemble(&mut rows, &beats(2), &Device::Cpu).unwrap();
        assert_eq!(tensor.dims(), [2, 2]);
        assert_eq!(
            tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
            [1.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn integers_are_assembled_like_floats() {
        let tokens = model(vec![spec("tokens", InputType::I64, 2)], &[0]);
        let mut rows = [0, 1].map(|request| JobRow {
            request: RequestId(request),
            input: Some([InputTensor::I64(vec![7, request as i64].into())].into()),
        });
        let tensor = assemble(&mut rows, &tokens, &Device::Cpu).unwrap();
        assert_eq!(tensor.to_vec2::<i64>().unwrap(), [[7, 0], [7, 1]]);
    }

    #[test]
    fn a_model_gets_only_the_inputs_that_it_reads() {
        let inputs = || {
            ["a", "b", "c"]
                .map(|name| spec(name, InputType::F32, 1))
                .to_vec()
        };
        let rows = || {
            [1, 2].map(|request| JobRow {
                request: RequestId(request),
                input: Some(
                    [10.0, 20.0, 30.0]
                        .map(|base| InputTensor::F32(vec![base + request as f32].into()))
                        .into_iter()
                        .collect(),
                ),
            })
        };
        let given = |reads: &[usize], rows: &mut [JobRow]| {
            let tensor = assemble(rows, &model(inputs(), reads), &Device::Cpu).unwrap();
            tensor.to_vec2::<f32>().unwrap()
        };
        assert_eq!(given(&[0, 2], &mut rows()), [[11.0, 31.0], [12.0, 32.0]]);
        assert_eq!(given(&[1], &mut rows()[..1]), [[21.0]]);
        let mut short = rows();
        short[1].input.as_mut().unwrap().pop();
        let refused = assemble(&mut short, &model(inputs(), &[0]), &Device::Cpu).unwrap_err();
        assert_eq!(refused.to_string(), "request 2: input `c`: missing");
    }

    #[test]
    fn a_wrong_input_names_the_request_and_the_input() {
        let refused = |rows: &mut [JobRow]| {
            assemble(rows, &beats(2), &Device::Cpu)
                .unwrap_err()
                .to_string()
        };
        let short = refused(&mut [row(1, vec![0.0; 2]), row(7, vec![0.0; 3])]);
        assert_eq!(
            short,
            "request 7: input `beat`: 3 values, the model takes 2"
        );
        let typed = refused(&mut [JobRow {
            request: RequestId(3),
            input: Some([InputTensor::I64(vec![1, 2].into())].into()),
        }]);
        assert_eq!(
            typed,
            "request 3: input `beat`: type I64, the model takes F32"
        );
        let missing = refused(&mut [JobRow {
            request: RequestId(4),
            input: None,
        }]);
        assert_eq!(missing, "request 4: input `beat`: missing");
    }
}
