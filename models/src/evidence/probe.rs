//! The small classifier that an embedding is trained with: one vote in the place of neighbours'.

use super::Tensors;
use crate::error::ModelError;

/// Layer names of the classifier; each has a `weight [in, out]` and a `bias [out]`.
pub(crate) const HIDDEN: &str = "probe.hidden";
pub(crate) const OUTPUT: &str = "probe.output";

/// Two linear layers with a ReLU between them.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    hidden: Layer,
    output: Layer,
}

#[derive(Clone, Debug)]
struct Layer {
    /// `[in, out]`, row-major.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

// === impl Probe ===

impl Probe {
    /// The classifier of an evidence file, if it has one.
    pub(super) fn read(
        tensors: &mut Tensors<'_>,
        dimensions: usize,
        classes: usize,
    ) -> Result<Option<Self>, ModelError> {
        if !tensors.tensors.contains_key(&format!("{HIDDEN}.weight")) {
            return Ok(None);
        }
        let (shape, bias) = tensors.take(&format!("{HIDDEN}.bias"))?;
        let width = bias.len();
        if shape != [width] || width == 0 {
            let name = format!("{HIDDEN}.bias");
            return Err(ModelError::tensor(
                tensors.file,
                &name,
                format!("shape {shape:?}, must be [_]"),
            ));
        }
        let weight = tensors.shaped(&format!("{HIDDEN}.weight"), &[dimensions, width])?;
        let output = Layer {
            weight: tensors.shaped(&format!("{OUTPUT}.weight"), &[width, classes])?,
            bias: tensors.shaped(&format!("{OUTPUT}.bias"), &[classes])?,
        };
        let hidden = Layer { weight, bias };
        Ok(Some(Self { hidden, output }))
    }

    /// The most likely class of an embedded input; the lower label of equally likely ones.
    pub(super) fn classify(&self, embedded: &[f32]) -> usize {
        let mut hidden = self.hidden.apply(embedded);
        for value in &mut hidden {
            *value = value.max(0.0);
        }
        let scores = self.output.apply(&hidden);
        (0..scores.len())
            .rev()
            .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
            .unwrap_or_default()
    }
}

// === impl Layer ===

impl Layer {
    fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut sums = self.bias.clone();
        for (value, row) in input.iter().zip(self.weight.chunks_exact(self.bias.len())) {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_likely_class_wins_and_ties_go_to_the_lower() {
        // Hidden: relu(x), relu(-x). Output: class 0 and 1 score as they, class 2 scores 0.5.
        let probe = Probe {
            hidden: Layer {
                weight: vec![1.0, -1.0],
                bias: vec![0.0, 0.0],
            },
            output: Layer {
                weight: vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
                bias: vec![0.0, 0.0, 0.5],
            },
        };
        assert_eq!(probe.classify(&[2.0]), 0);
        assert_eq!(probe.classify(&[-2.0]), 1);
        assert_eq!(probe.classify(&[0.1]), 2);
        assert_eq!(probe.classify(&[0.5]), 0, "class 0 and 2 are even");
    }
}
