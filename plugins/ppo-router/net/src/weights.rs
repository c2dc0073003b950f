//! Networks as safetensors: an 8-byte length, a JSON header, the numbers (little endian).
//!
//! Tensors are `policy.{layer}.weight` of shape `[outputs, inputs]` and `policy.{layer}.bias` of
//! shape `[outputs]`, all f32. The header's `__metadata__` has [`Meta`] as JSON under `ppo-router`.
//! Any other content is refused: weights are untrusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::WeightsError;
use crate::meta::Meta;
use crate::network::{Layer, Network};

const META_KEY: &str = "ppo-router";

#[derive(Debug, Serialize, Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

#[derive(Debug, Serialize, Deserialize)]
struct FileHeader {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, TensorEntry>,
}

// === impl Network ===

impl Network {
    /// A network from its layers: per layer the weights, input by input, and the biases.
    ///
    /// # Errors
    /// Invalid metadata, tensors of another shape, numbers that are not finite.
    pub fn try_new(meta: Meta, layers: Vec<(Vec<f32>, Vec<f32>)>) -> Result<Self, WeightsError> {
        meta.check()?;
        let mut made = Vec::new();
        let mut given = layers.into_iter();
        for (l, shape) in meta.layers.windows(2).enumerate() {
            let (inputs, outputs) = (shape[0], shape[1]);
            let (weights, biases) = given.next().ok_or_else(|| WeightsError::Missing {
                tensor: weight_name(l),
            })?;
            let lengths = [
                (weight_name(l), &weights, inputs * outputs),
                (bias_name(l), &biases, outputs),
            ];
            for (tensor, numbers, expected) in lengths {
                if numbers.len() != expected {
                    return Err(WeightsError::Shape {
                        tensor,
                        expected: vec![expected],
                        found: vec![numbers.len()],
                    });
                }
                check_finite(&tensor, numbers)?;
            }
            made.push(Layer {
                outputs,
                weights,
                biases,
            });
        }
        if given.next().is_some() {
            return Err(WeightsError::Unexpected {
                tensor: weight_name(made.len()),
            });
        }
        Ok(Self::new(meta, made))
    }

    /// Parses untrusted bytes.
    ///
    /// # Errors
    /// The first fault, with the field or tensor.
    pub fn parse(bytes: &[u8]) -> Result<Self, WeightsError> {
        let (mut header, data) = split(bytes)?;
        let meta = header.metadata.get(META_KEY).ok_or_else(|| {
            let reason = "is missing: these are not weights of a PPO router".to_owned();
            metadata(META_KEY, reason)
        })?;
        let meta: Meta =
            serde_json::from_str(meta).map_err(|error| metadata(META_KEY, error.to_string()))?;
        meta.check()?;
        let mut layers = Vec::new();
        for (l, shape) in meta.layers.windows(2).enumerate() {
            let (inputs, outputs) = (shape[0], shape[1]);
            let by_output = take(&mut header, data, &weight_name(l), &[outputs, inputs])?;
            let biases = take(&mut header, data, &bias_name(l), &[outputs])?;
            layers.push((transposed(&by_output, inputs), biases));
        }
        if let Some(tensor) = header.tensors.into_keys().next() {
            return Err(WeightsError::Unexpected { tensor });
        }
        Self::try_new(meta, layers)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// None in practice: the header is plain JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WeightsError> {
        let json = |error: serde_json::Error| file(error.to_string());
        let meta = serde_json::to_string(&self.meta).map_err(json)?;
        let mut header = FileHeader {
            metadata: BTreeMap::from([(META_KEY.to_owned(), meta)]),
            tensors: BTreeMap::new(),
        };
        let mut data = Vec::new();
        let mut add = |name: String, shape: Vec<usize>, numbers: &[f32]| {
            let begin = data.len();
            data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            let entry = TensorEntry {
                dtype: "F32".to_owned(),
                shape,
                data_offsets: [begin, data.len()],
            };
            header.tensors.insert(name, entry);
        };
        for (l, layer) in self.layers.iter().enumerate() {
            let inputs = layer.weights.len() / layer.outputs;
            let by_output = transposed(&layer.weights, layer.outputs);
            add(weight_name(l), vec![layer.outputs, inputs], &by_output);
            add(bias_name(l), vec![layer.outputs], &layer.biases);
        }
        let mut text = serde_json::to_vec(&header).map_err(json)?;
        // Readers map the numbers, so they begin at a multiple of 8.
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        bytes.extend(data);
        Ok(bytes)
    }
}

fn split(bytes: &[u8]) -> Result<(FileHeader, &[u8]), WeightsError> {
    let (length, rest) = bytes
        .split_first_chunk::<8>()
        .ok_or_else(|| file("is shorter than a safetensors header".to_owned()))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok();
    let (text, data) = length
        .and_then(|length| rest.split_at_checked(length))
        .ok_or_else(|| file("ends within its header: not safetensors".to_owned()))?;
    let header = serde_json::from_slice(text).map_err(|error| file(format!("header: {error}")))?;
    Ok((header, data))
}

/// Removes a tensor from the header and returns its numbers, in row order.
fn take(
    header: &mut FileHeader,
    data: &[u8],
    name: &str,
    expected: &[usize],
) -> Result<Vec<f32>, WeightsError> {
    let tensor = name.to_owned();
    let Some(entry) = header.tensors.remove(name) else {
        return Err(WeightsError::Missing { tensor });
    };
    if entry.dtype != "F32" {
        let found = entry.dtype;
        return Err(WeightsError::Type { tensor, found });
    }
    if entry.shape != expected {
        return Err(WeightsError::Shape {
            tensor,
            expected: expected.to_vec(),
            found: entry.shape,
        });
    }
    let [begin, end] = entry.data_offsets;
    let Some(bytes) = data.get(begin..end) else {
        let reason = format!("bytes {begin} to {end} of {}", data.len());
        return Err(WeightsError::Bytes { tensor, reason });
    };
    let length = 4 * expected.iter().product::<usize>();
    if bytes.len() != length {
        let reason = format!("has {} bytes, not {length}", bytes.len());
        return Err(WeightsError::Bytes { tensor, reason });
    }
    let (words, _) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
    check_finite(name, &numbers)?;
    Ok(numbers)
}

fn check_finite(tensor: &str, numbers: &[f32]) -> Result<(), WeightsError> {
    match numbers.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(WeightsError::NotFinite {
            tensor: tensor.to_owned(),
            index,
            value: numbers[index].to_string(),
        }),
    }
}

/// The transposed matrix; `columns` is the width of `rows`.
fn transposed(rows: &[f32], columns: usize) -> Vec<f32> {
    let column = |c| rows.iter().skip(c).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}

fn weight_name(layer: usize) -> String {
    format!("policy.{layer}.weight")
}

fn bias_name(layer: usize) -> String {
    format!("policy.{layer}.bias")
}

fn file(reason: String) -> WeightsError {
    WeightsError::File { reason }
}

fn metadata(field: &str, reason: String) -> WeightsError {
    let field = field.to_owned();
    WeightsError::Metadata { field, reason }
}

#[cfg(test)]
mod tests;
