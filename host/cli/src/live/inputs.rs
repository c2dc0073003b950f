//! Bodies of requests, with the inputs that the server's metadata name.

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;
use serde_json::json;
use switchyard_core::time::Micros;
use switchyard_training::data::{Generator, Mix};
use switchyard_training::train::{Recipe, recipe};

/// Added to the seed of a run: the seeds below it made the models' training data.
const SEEDS_FROM: u64 = 1_000_000;

/// One app's inputs.
pub(super) struct AppInputs {
    tensors: Vec<InputTensor>,
    /// By class: samples of an app whose data this program makes. Empty: values are drawn.
    samples: Vec<Generator<'static>>,
    seed: u64,
}

/// A body, and the length of its JSON part.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) json_length: usize,
}

#[derive(Deserialize)]
struct Metadata {
    inputs: Vec<InputTensor>,
}

#[derive(Deserialize)]
struct InputTensor {
    name: String,
    datatype: String,
    /// The rows first.
    shape: Vec<i64>,
}

// === impl AppInputs ===

impl AppInputs {
    /// Reads the server's metadata of an app with this many classes.
    pub(super) fn read(
        app: &str,
        classes: usize,
        seed: u64,
        metadata: &[u8],
    ) -> Result<Self, String> {
        let read: Metadata =
            serde_json::from_slice(metadata).map_err(|error| format!("app {app}: {error}"))?;
        let strange = |tensor: &&InputTensor| {
            tensor.datatype != "FP32" || tensor.shape.iter().skip(1).any(|&size| size < 1)
        };
        if let Some(tensor) = read.inputs.iter().find(strange) {
            return Err(format!(
                "app {app}: input `{}` is {} {:?}: a live run sends FP32 of fixed dimensions",
                tensor.name, tensor.datatype, tensor.shape
            ));
        }
        let width: usize = read.inputs.iter().map(InputTensor::width).sum();
        let seed = seed.wrapping_add(SEEDS_FROM);
        let data = recipe(app).map(Recipe::data);
        let data = data.filter(|data| data.classes() == classes && data.width() == width);
        let samples = data.map(|data| {
            let only = |label: usize| {
                let weights: Vec<f64> = (0..classes).map(|at| f64::from(at == label)).collect();
                Mix::try_new(&weights).map(|mix| Generator::new(data, seed, mix))
            };
            (0..classes).map(only).collect::<Result<Vec<_>, _>>()
        });
        Ok(Self {
            tensors: read.inputs,
            samples: samples
                .transpose()
                .map_err(|error| format!("app {app}: {error}"))?
                .unwrap_or_default(),
            seed,
        })
    }

    /// The body of the `index`-th request, which is of this class.
    pub(super) fn body(&self, index: u64, label: usize, deadline: Micros) -> Body {
        let values = self.values(index, label);
        let mut rest = values.as_slice();
        let described = self.tensors.iter().map(|tensor| {
            let (own, after) = rest.split_at(tensor.width().min(rest.len()));
            rest = after;
            let shape: Vec<usize> = std::iter::once(1).chain(tensor.row_shape()).collect();
            json!({
                "name": tensor.name, "shape": shape, "datatype": "FP32",
                "parameters": { "binary_data_size": size_of_val(own) },
            })
        });
        let described: Vec<_> = described.collect();
        let head = json!({
            "parameters": { "timeout": deadline.0 },
            "inputs": described,
            "outputs": [{ "name": "label" }],
        });
        let mut bytes = head.to_string().into_bytes();
        let json_length = bytes.len();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Body {
            bytes: bytes.into(),
            json_length,
        }
    }

    fn values(&self, index: u64, label: usize) -> Vec<f32> {
        if let Some(samples) = self.samples.get(label) {
            return samples.sample(index).values;
        }
        let mut rng = Pcg64::seed_from_u64(self.seed ^ index.rotate_left(32));
        let width: usize = self.tensors.iter().map(InputTensor::width).sum();
        (0..width).map(|_| rng.random_range(-1.0..1.0)).collect()
    }
}

// === impl InputTensor ===

impl InputTensor {
    fn row_shape(&self) -> impl Iterator<Item = usize> {
        let sizes = self.shape.iter().skip(1);
        sizes.map(|&size| usize::try_from(size).unwrap_or(1))
    }

    fn width(&self) -> usize {
        self.row_shape().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(datatype: &str) -> String {
        format!(r#"{{"inputs": [{{"name": "x", "datatype": "{datatype}", "shape": [-1, 2, 3]}}]}}"#)
    }

    #[test]
    fn a_body_has_the_inputs_of_the_metadata_and_the_deadline() {
        let inputs = AppInputs::read("none", 1, 7, metadata("FP32").as_bytes());
        let inputs = inputs.unwrap_or_else(|error| panic!("{error}"));
        let body = inputs.body(3, 0, Micros(1_500));
        let (head, data) = body.bytes.split_at(body.json_length);
        let head: serde_json::Value = serde_json::from_slice(head).expect("JSON");
        assert_eq!(head["parameters"]["timeout"], 1_500);
        assert_eq!(head["inputs"][0]["shape"], json!([1, 2, 3]));
        assert_eq!(data.len(), 6 * size_of::<f32>());
        assert_eq!(inputs.body(3, 0, Micros(1_500)).bytes, body.bytes);
        assert_ne!(inputs.body(4, 0, Micros(1_500)).bytes, body.bytes);
    }

    #[test]
    fn inputs_that_cannot_be_made_are_refused() {
        let read = AppInputs::read("none", 1, 7, metadata("BYTES").as_bytes());
        assert!(read.is_err_and(|error| error.contains("`x` is BYTES")));
    }
}
