//! Networks as safetensors: an 8-byte length, a JSON header, the numbers (little-endian).
//!
//! Tensors are `policy.{layer}.weight` of shape `[outputs, inputs]` and `policy.{layer}.bias`
//! of shape `[outputs]`, all f32. The header's `__metadata__` holds [`Meta`] as JSON under
//! `ppo-router`. Whatever else a file holds is refused: weights come from outside.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::network::{Layer, Network, batch_pairs};
use crate::observation::Layout;

/// Of the metadata. A change of the layout or of the tensors makes a new one.
pub const FORMAT: u32 = 1;

const META_KEY: &str = "ppo-router";

/// Outputs of a layer, at most: a bound on what untrusted metadata can ask for.
const LAYER_MAX: usize = 65_536;

/// What a network is for and how it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// [`FORMAT`].
    pub format: u32,
    /// What it observes.
    pub layout: Layout,
    /// The model of each instance, numbered from 0: instances of one model share batch bounds.
    pub models: Vec<u32>,
    /// What those models are called, by number: the variants they were trained as.
    pub variants: Vec<String>,
    /// Batch sizes that the bounds are chosen from, ascending; empty where all batches are of
    /// one request.
    pub batches: Vec<u32>,
    /// Widths of the layers, inputs and outputs included.
    pub layers: Vec<usize>,
    /// Length of a slot in microseconds.
    pub slot_us: u64,
    /// Deadline it was trained for, in microseconds.
    pub deadline_us: u64,
    /// The workload it was trained on.
    pub workload: String,
    /// The seed it was trained from.
    pub seed: u64,
    /// The command that trained it.
    pub command: String,
}

/// Why weights are refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WeightsError {
    /// Not safetensors.
    #[error("weights: {reason}")]
    File {
        /// What is wrong with the file as such.
        reason: String,
    },
    /// The metadata makes no sense.
    #[error("weights: metadata: {field}: {reason}")]
    Metadata {
        /// The field at fault.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor is not there.
    #[error("weights: tensor {tensor} is missing")]
    Missing {
        /// Its name.
        tensor: String,
    },
    /// A tensor that nothing asks for.
    #[error("weights: tensor {tensor} is unexpected")]
    Unexpected {
        /// Its name.
        tensor: String,
    },
    /// A tensor of another element type.
    #[error("weights: tensor {tensor} is {found}, not F32")]
    Type {
        /// Its name.
        tensor: String,
        /// What it holds.
        found: String,
    },
    /// A tensor of another shape.
    #[error("weights: tensor {tensor} has shape {found:?}, not {expected:?}")]
    Shape {
        /// Its name.
        tensor: String,
        /// What it should be.
        expected: Vec<usize>,
        /// What it is.
        found: Vec<usize>,
    },
    /// A tensor's bytes are not where they should be.
    #[error("weights: tensor {tensor}: {reason}")]
    Bytes {
        /// Its name.
        tensor: String,
        /// What is wrong with its place.
        reason: String,
    },
    /// A number that is none.
    #[error("weights: tensor {tensor}: number {index} is {value}")]
    NotFinite {
        /// Its name.
        tensor: String,
        /// Position in row order.
        index: usize,
        /// `NaN`, `inf` or `-inf`.
        value: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

// === impl Meta ===

impl Meta {
    /// Outputs that the last layer must have.
    #[must_use]
    pub fn outputs(&self) -> usize {
        let heads = self.variants.len() * batch_pairs(&self.batches).len();
        self.layout.instances + heads
    }

    fn check(&self) -> Result<(), WeightsError> {
        let wrong = |field: &str, reason: String| {
            Err(WeightsError::Metadata {
                field: field.to_owned(),
                reason,
            })
        };
        if self.format != FORMAT {
            return wrong("format", format!("is {}, not {FORMAT}", self.format));
        }
        if let Some((field, reason)) = self.layout.fault() {
            return wrong(&format!("layout.{field}"), reason.to_owned());
        }
        let instances = self.layout.instances;
        if self.models.len() != instances {
            let reason = format!(
                "has {} entries for {instances} instances",
                self.models.len()
            );
            return wrong("models", reason);
        }
        if let Some(model) = self
            .models
            .iter()
            .find(|m| **m as usize >= self.variants.len())
        {
            return wrong(
                "models",
                format!("names model {model}, which has no variant"),
            );
        }
        let ascends = self.batches.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || self.batches.first() == Some(&0) {
            return wrong("batches", "must be positive and ascend".to_owned());
        }
        let largest = self.batches.last().copied().unwrap_or(0);
        if self.layout.largest_batch != largest {
            let reason = format!(
                "is {}, batches end with {largest}",
                self.layout.largest_batch
            );
            return wrong("layout.largest_batch", reason);
        }
        if self.slot_us == 0 {
            return wrong("slot_us", "must be positive".to_owned());
        }
        let (inputs, outputs) = (self.layout.width(), self.outputs());
        let ends = (self.layers.first(), self.layers.last());
        if self.layers.len() < 2 || ends != (Some(&inputs), Some(&outputs)) {
            let reason = format!("must begin with {inputs} and end with {outputs}");
            return wrong("layers", reason);
        }
        if self
            .layers
            .iter()
            .any(|width| !(1..=LAYER_MAX).contains(width))
        {
            return wrong("layers", format!("must be from 1 to {LAYER_MAX}"));
        }
        Ok(())
    }
}

// === impl Network ===

impl Network {
    /// A network from its layers: for each the weights input by input, then the biases.
    ///
    /// # Errors
    /// Metadata that makes no sense, tensors that do not fit it or hold something not finite.
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

    /// Reads a file's bytes, which may hold anything.
    ///
    /// # Errors
    /// The first thing that is not as it must be, with the tensor's name.
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
    /// Never for a network that was made: JSON of plain numbers and text.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WeightsError> {
        let json = |error: serde_json::Error| file(error.to_string());
        let meta = serde_json::to_string(&self.meta).map_err(json)?;
        let mut header = Header {
            metadata: BTreeMap::from([(META_KEY.to_owned(), meta)]),
            tensors: BTreeMap::new(),
        };
        let mut data = Vec::new();
        let mut add = |name: String, shape: Vec<usize>, numbers: &[f32]| {
            let begin = data.len();
            data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            let entry = Entry {
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
        // Readers map the numbers: they begin at a multiple of 8.
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        bytes.extend(data);
        Ok(bytes)
    }
}

fn split(bytes: &[u8]) -> Result<(Header, &[u8]), WeightsError> {
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

/// Takes a tensor out of the header and its numbers out of the data, in row order.
fn take(
    header: &mut Header,
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

/// Columns as rows; `columns` is the width of the rows given.
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
pub(crate) mod tests;
