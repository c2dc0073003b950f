//! Tensor files in the safetensors format.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{DType, Device, Tensor, Var};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use super::mapped_file::FileBytes;
use crate::error::ModelError;

/// Shape and values by name, or the reason why the values cannot be used.
pub(crate) type RawTensors = BTreeMap<String, (Vec<usize>, Result<Vec<f32>, String>)>;

/// Suffix of PyTorch's counters of training batches in a batch normalisation, which inference does
/// not need.
const BATCH_COUNTER: &str = ".num_batches_tracked";

/// Reads every tensor of a safetensors file except counters of training batches. Floats of at most
/// 32 bits are widened to f32. A tensor of another type, or with a value that is not finite, is
/// refused only when the architecture asks for it: published files hold tables of other types that
/// no architecture needs. A file of zeros is refused: a network of zeros answers every input alike.
pub(crate) fn read_tensors(file: &Path) -> Result<RawTensors, ModelError> {
    let (bytes, before) = FileBytes::open(file)?;
    let parsed = SafeTensors::deserialize(&bytes)
        .map_err(|error| ModelError::weights(file, unreadable(&error)))?;
    // A file with values ends this at its first one.
    let is_zero = |view: &TensorView<'_>| view.data().iter().all(|byte| *byte == 0);
    if !parsed.is_empty() && parsed.iter().all(|(_, view)| is_zero(&view)) {
        let reason =
            "every value of every tensor is 0; train the variant again, or copy its file again";
        return Err(ModelError::weights(file, reason));
    }
    let mut tensors = BTreeMap::new();
    for (name, view) in parsed.iter() {
        if view.dtype() == Dtype::I64 && name.ends_with(BATCH_COUNTER) {
            continue;
        }
        tensors.insert(name.to_owned(), (view.shape().to_vec(), finite(&view)));
    }
    before.unchanged(file)?;
    Ok(tensors)
}

/// Shapes of the tensors of a safetensors file by name, without counters of training batches.
pub(crate) fn tensor_shapes(file: &Path) -> Result<BTreeMap<String, Vec<usize>>, ModelError> {
    let (bytes, before) = FileBytes::open(file)?;
    let parsed = SafeTensors::deserialize(&bytes)
        .map_err(|error| ModelError::weights(file, unreadable(&error)))?;
    let kept = parsed
        .iter()
        .filter(|(name, _)| !name.ends_with(BATCH_COUNTER));
    let shapes = kept.map(|(name, view)| (name.to_owned(), view.shape().to_vec()));
    let shapes = shapes.collect();
    before.unchanged(file)?;
    Ok(shapes)
}

fn unreadable(error: &SafeTensorError) -> String {
    format!("no safetensors file: {error}; copy the file again, or train the variant again")
}

/// The values of a tensor, or the reason why they cannot be used.
fn finite(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let values = match view.dtype() {
        Dtype::F32 => f32_values(view.data()),
        Dtype::F16 => widened(view.data(), DType::F16)?,
        Dtype::BF16 => widened(view.data(), DType::BF16)?,
        other => return Err(format!("type {other:?}, must be F32, F16 or BF16")),
    };
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(format!("value {at} is {}", values[at])),
        None => Ok(values),
    }
}

fn f32_values(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(size_of::<f32>())
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

fn widened(bytes: &[u8], dtype: DType) -> Result<Vec<f32>, String> {
    let length = bytes.len() / dtype.size_in_bytes();
    Tensor::from_raw_buffer(bytes, dtype, &[length], &Device::Cpu)
        .and_then(|narrow| narrow.to_dtype(DType::F32)?.to_vec1())
        .map_err(|error| format!("cannot be widened: {error}"))
}

/// Writes named f32 tensors as a safetensors file, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write_tensors(file: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), ModelError> {
    // Written to another name and renamed, so that a loader never sees half a file.
    let partial = file.with_extension("partial");
    let by_name: HashMap<&str, Tensor> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.clone()))
        .collect();
    candle_core::safetensors::save(&by_name, &partial).map_err(ModelError::compute(format!(
        "writing {}",
        partial.display()
    )))?;
    std::fs::rename(&partial, file).map_err(|source| ModelError::io(file, source))
}

/// Sets every variable for which the weights file has a tensor of its name and shape.
///
/// # Errors
/// The file cannot be read, or a tensor of a variable has a value that is not finite.
pub fn adopt_tensors(vars: &BTreeMap<String, Var>, file: &Path) -> Result<(), ModelError> {
    let mut tensors = read_tensors(file)?;
    for (name, var) in vars {
        if let Some((shape, values)) = tensors.remove(name)
            && shape == var.dims()
        {
            let values = values.map_err(|reason| ModelError::tensor(file, name, reason))?;
            Tensor::from_vec(values, shape, &Device::Cpu)
                .and_then(|tensor| var.set(&tensor))
                .map_err(ModelError::compute(format!("adopting {name}")))?;
        }
    }
    Ok(())
}
