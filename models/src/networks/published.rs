//! Public weights in torchvision's and timm's naming, converted to this crate's layout.
//!
//! Batch normalisation is folded into the convolution before it while a network is loaded: with
//! fixed statistics both are one affine map, and inference has one pass less. Files keep weights as
//! PyTorch does, output channels first.

use candle_core::Tensor;
use switchyard_kernels::Window2d;

use crate::error::ModelError;
use crate::ops::layers::{Conv2d, DepthwiseConv2d, Linear};
use crate::weights::params::{Init, Params};

/// A convolution without bias followed by batch normalisation, as one convolution.
///
/// Reads `CONV.weight` `[output, input, height, width]` and
/// `NORM.{weight, bias, running_mean, running_var}` `[output]`.
///
/// # Errors
/// A tensor is missing or of another shape, or a variance is negative.
pub(crate) fn conv_bn(
    params: &mut Params,
    conv: &str,
    norm: &str,
    [input, output]: [usize; 2],
    window: Window2d,
    epsilon: f64,
) -> Result<Conv2d, ModelError> {
    let weight = fold(params, conv, norm, [input, output], window, epsilon)?;
    let weights = params.narrow(conv, weight)?;
    Conv2d::from_weights(input, weights, window, params.mode()).map_err(ModelError::compute(conv))
}

/// The same for a depthwise convolution: `CONV.weight` is `[channels, 1, height, width]`.
///
/// # Errors
/// As [`conv_bn`].
pub(crate) fn depthwise_bn(
    params: &mut Params,
    conv: &str,
    norm: &str,
    channels: usize,
    window: Window2d,
    epsilon: f64,
) -> Result<DepthwiseConv2d, ModelError> {
    let weight = fold(params, conv, norm, [1, channels], window, epsilon)?;
    let weight = params.compute_in(conv, weight)?;
    DepthwiseConv2d::from_weight(weight, window, params.mode()).map_err(ModelError::compute(conv))
}

/// A convolution with bias: `WEIGHT` `[output, input, height, width]` and `BIAS` `[output]`.
///
/// # Errors
/// A tensor is missing or of another shape.
pub(crate) fn conv_bias(
    params: &mut Params,
    [weight, bias]: [&str; 2],
    [input, output]: [usize; 2],
    window: Window2d,
) -> Result<Conv2d, ModelError> {
    let [height, width] = window.kernel;
    let rows = params
        .get(weight, &[output, input, height, width], Init::Zero)?
        .permute((2, 3, 1, 0))
        .and_then(|rows| rows.reshape((height * width * input, output)))
        .map_err(ModelError::compute(weight))?;
    let bias = params.get(bias, &[output], Init::Zero)?;
    with_bias(params, weight, &rows, &bias, input, window)
}

/// Linear maps of the same input as one, over the channels of images: pairs of `WEIGHT` `[output,
/// input]` and `BIAS` `[output]`.
///
/// # Errors
/// A tensor is missing or of another shape.
pub(crate) fn pointwise(
    params: &mut Params,
    names: &[[String; 2]],
    [input, output]: [usize; 2],
) -> Result<Conv2d, ModelError> {
    let (mut weights, mut biases) = (Vec::new(), Vec::new());
    for [weight, bias] in names {
        weights.push(params.get(weight, &[output, input], Init::Zero)?);
        biases.push(params.get(bias, &[output], Init::Zero)?);
    }
    let name = names.concat().join(" + ");
    let join = |parts: &[Tensor]| Tensor::cat(parts, 0);
    let rows = join(&weights).and_then(|weight| weight.t()?.contiguous());
    let rows = rows.map_err(ModelError::compute(&name))?;
    let bias = join(&biases).map_err(ModelError::compute(&name))?;
    with_bias(params, &name, &rows, &bias, input, Window2d::centred(1, 1))
}

/// A convolution of `[positions * input, output]` and a bias `[output]`.
fn with_bias(
    params: &mut Params,
    name: &str,
    rows: &Tensor,
    bias: &Tensor,
    input: usize,
    window: Window2d,
) -> Result<Conv2d, ModelError> {
    let biased = bias
        .unsqueeze(0)
        .and_then(|bias| Tensor::cat(&[rows, &bias], 0));
    let weights = params.narrow(name, biased.map_err(ModelError::compute(name))?)?;
    Conv2d::from_weights(input, weights, window, params.mode()).map_err(ModelError::compute(name))
}

/// `NAME.weight` `[output, input]` and `NAME.bias` `[output]`.
///
/// # Errors
/// A tensor is missing or of another shape.
pub(crate) fn linear(
    params: &mut Params,
    name: &str,
    [input, output]: [usize; 2],
) -> Result<Linear, ModelError> {
    dense(params, name, &[output, input], [input, output])
}

/// A 1 x 1 convolution with bias, on one position: `NAME.weight` `[output, input, 1, 1]` and
/// `NAME.bias` `[output]`.
///
/// # Errors
/// A tensor is missing or of another shape.
pub(crate) fn one_by_one(
    params: &mut Params,
    name: &str,
    [input, output]: [usize; 2],
) -> Result<Linear, ModelError> {
    dense(params, name, &[output, input, 1, 1], [input, output])
}

/// A linear map whose weights have this shape in the file.
fn dense(
    params: &mut Params,
    name: &str,
    shape: &[usize],
    [input, output]: [usize; 2],
) -> Result<Linear, ModelError> {
    let weight_name = format!("{name}.weight");
    let weight = params
        .get(&weight_name, shape, Init::Zero)?
        .reshape((output, input))
        .and_then(|weight| weight.t()?.contiguous())
        .map_err(ModelError::compute(&weight_name))?;
    let weight = params.narrow(&weight_name, weight)?;
    let bias = params.get(&format!("{name}.bias"), &[output], Init::Zero)?;
    Linear::with_mode(weight, bias, params.mode()).map_err(ModelError::compute(name))
}

/// `[positions * input + 1, output]`: rows ordered by (line, column, input channel), then the bias.
fn fold(
    params: &mut Params,
    conv: &str,
    norm: &str,
    [input, output]: [usize; 2],
    window: Window2d,
    epsilon: f64,
) -> Result<Tensor, ModelError> {
    let [height, width] = window.kernel;
    let weight = params.values(&format!("{conv}.weight"), &[output, input, height, width])?;
    let gain = params.values(&format!("{norm}.weight"), &[output])?;
    let shift = params.values(&format!("{norm}.bias"), &[output])?;
    let mean = params.statistics(&format!("{norm}.running_mean"), &[output])?;
    let variance_name = format!("{norm}.running_var");
    let variance = params.statistics(&variance_name, &[output])?;
    if let Some(at) = variance.iter().position(|&variance| variance < 0.0) {
        let reason = format!("value {at} is {}, a variance is not negative", variance[at]);
        return Err(params.refused(&variance_name, reason));
    }
    let positions = height * width;
    let rows = positions * input;
    let mut folded = vec![0f32; (rows + 1) * output];
    for out in 0..output {
        let scale = f64::from(gain[out]) / (f64::from(variance[out]) + epsilon).sqrt();
        for channel in 0..input {
            for position in 0..positions {
                let value = weight[(out * input + channel) * positions + position];
                folded[(position * input + channel) * output + out] =
                    (f64::from(value) * scale) as f32;
            }
        }
        folded[rows * output + out] = (f64::from(shift[out]) - f64::from(mean[out]) * scale) as f32;
    }
    Tensor::from_vec(folded, (rows + 1, output), params.device())
        .map_err(ModelError::compute(format!("folding {norm} into {conv}")))
}
