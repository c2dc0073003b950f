//! A dense layer without a framework: evidence is computed for one request at a time.

use super::file::EvidenceTensors;
use crate::error::ModelError;

/// `x W + b`.
#[derive(Clone, Debug)]
pub(super) struct EvidenceLayer {
    /// `[in, out]`, row-major.
    weight: Vec<f32>,
    /// `[out]`
    bias: Vec<f32>,
}

// === impl EvidenceLayer ===

impl EvidenceLayer {
    /// The layer `name` of an evidence file, `NAME.weight` `[inputs, _]` and `NAME.bias` `[_]`, if
    /// the file has it.
    pub(super) fn read(
        tensors: &mut EvidenceTensors<'_>,
        name: &str,
        inputs: usize,
    ) -> Result<Option<Self>, ModelError> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        if !tensors.has(&weight) {
            return Ok(None);
        }
        let (shape, values) = tensors.take(&weight)?;
        let outputs = match shape[..] {
            [rows, columns] if rows == inputs && columns > 0 => columns,
            _ => {
                let reason = format!("shape {shape:?}, must be [{inputs}, _]");
                return Err(ModelError::tensor(tensors.file, &weight, reason));
            }
        };
        Ok(Some(Self {
            weight: values,
            bias: tensors.shaped(&bias, &[outputs])?,
        }))
    }

    /// A layer of a weight `[in, outputs]` without a bias.
    pub(super) fn linear(weight: Vec<f32>, outputs: usize) -> Self {
        let bias = vec![0.0; outputs];
        Self { weight, bias }
    }

    /// Values out.
    pub(super) fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub(super) fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut sums = self.bias.clone();
        for (value, row) in input.iter().zip(self.weight.chunks_exact(self.bias.len())) {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
        sums
    }
}

/// Replaces negative values by 0.
pub(super) fn relu(mut values: Vec<f32>) -> Vec<f32> {
    for value in &mut values {
        *value = value.max(0.0);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_weight_are_inputs() {
        let layer = EvidenceLayer {
            weight: vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0],
            bias: vec![0.0, 0.0, -50.0],
        };
        assert_eq!(layer.apply(&[1.0, 1.0]), [11.0, 22.0, -17.0]);
        assert_eq!(relu(layer.apply(&[1.0, 1.0])), [11.0, 22.0, 0.0]);
    }
}
