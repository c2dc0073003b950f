//! Functions of values, and factors and summands of channels.

use candle_core::Result;
use switchyard_kernels::{Activation, FeatureMap, gates, relu};

use crate::networks::onnx::elements;
use crate::networks::onnx::proto::TensorProto;

/// A function of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Relu,
    Sigmoid,
    Silu,
    HardSwish,
    HardSigmoid { alpha: f32, beta: f32 },
    Clip { low: f32, high: f32 },
    LeakyRelu { alpha: f32 },
}

/// A factor and a summand per channel.
pub(super) enum Affine<'a> {
    Norm {
        /// Factors, summands, means and variances.
        weights: [&'a TensorProto; 4],
        epsilon: f32,
    },
    Constant {
        form: AffineForm,
        /// One number, or one per channel.
        weight: &'a TensorProto,
        channels: usize,
    },
}

/// The use of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AffineForm {
    Plus,
    Minus,
    Times,
    Over,
}

// === impl Function ===

impl Function {
    /// The activation of a layer that is this function.
    pub(super) fn activation(self) -> Option<Activation> {
        match self {
            Self::Relu => Some(Activation::Relu),
            Self::Silu => Some(Activation::Silu),
            Self::HardSwish => Some(Activation::HardSwish),
            _ => None,
        }
    }

    /// The function that is `x` times this one.
    pub(super) fn times_x(self) -> Option<Self> {
        match self {
            Self::Sigmoid => Some(Self::Silu),
            Self::HardSigmoid { alpha, beta } if is_sixth(alpha) && beta == 0.5 => {
                Some(Self::HardSwish)
            }
            _ => None,
        }
    }

    pub(super) fn apply(self, values: &mut [f32]) {
        match self {
            Self::Relu => each(values, relu),
            Self::Sigmoid => gates::sigmoid(values),
            Self::Silu => gates::silu(values),
            Self::HardSwish => gates::hard_swish(values),
            Self::HardSigmoid { alpha, beta } if is_sixth(alpha) && beta == 0.5 => {
                gates::hard_sigmoid(values);
            }
            Self::HardSigmoid { alpha, beta } => {
                each(values, |x| clip(alpha * x + beta, 0.0, 1.0));
            }
            Self::Clip { low, high } => each(values, |x| clip(x, low, high)),
            Self::LeakyRelu { alpha } => each(values, |x| if x < 0.0 { alpha * x } else { x }),
        }
    }
}

fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for value in values {
        *value = function(*value);
    }
}

fn is_sixth(alpha: f32) -> bool {
    (alpha - 1.0 / 6.0).abs() < 1e-6
}

/// NaN stays NaN. `high` wins where it is below `low`.
fn clip(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

// === impl Affine ===

impl Affine<'_> {
    /// Factors and summands.
    ///
    /// # Errors
    /// A weight has not the values of its shape.
    pub(super) fn parameters(&self) -> Result<[Vec<f32>; 2]> {
        match self {
            Self::Constant {
                form,
                weight,
                channels,
            } => {
                let numbers = elements::weights(weight)?;
                let each = numbers.iter().copied().cycle().take(*channels);
                let (ones, zeros) = (vec![1.0; *channels], vec![0.0; *channels]);
                Ok(match form {
                    AffineForm::Plus => [ones, each.collect()],
                    AffineForm::Minus => [ones, each.map(|value| -value).collect()],
                    AffineForm::Times => [each.collect(), zeros],
                    AffineForm::Over => [each.map(f32::recip).collect(), zeros],
                })
            }
            Self::Norm { weights, epsilon } => {
                let [factors, summands, means, variances] = weights.map(elements::weights);
                let (means, summands) = (means?, summands?);
                let variances = variances?.into_iter();
                let factors = factors?.into_iter().zip(variances);
                let factors: Vec<f64> = factors
                    .map(|(factor, variance)| {
                        f64::from(factor) / f64::from(variance + epsilon).sqrt()
                    })
                    .collect();
                let moved = factors.iter().zip(means.into_iter().zip(summands));
                let moved = moved
                    .map(|(factor, (mean, summand))| {
                        (f64::from(summand) - f64::from(mean) * factor) as f32
                    })
                    .collect();
                Ok([factors.iter().map(|&factor| factor as f32).collect(), moved])
            }
        }
    }
}

/// Values times a factor per channel, plus a summand.
pub(super) fn apply_affine(x: &mut FeatureMap, [factors, summands]: &[Vec<f32>; 2]) {
    for position in x.values.chunks_exact_mut(factors.len().max(1)) {
        for (value, (factor, summand)) in position.iter_mut().zip(factors.iter().zip(summands)) {
            *value = *value * factor + summand;
        }
    }
}
