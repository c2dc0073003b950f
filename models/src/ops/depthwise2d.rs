//! Depthwise convolution: each channel has its own window of weights.
//!
//! A matrix product would multiply by zeros, so it is an operation of its own, with gradients.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use switchyard_kernels::{Window2d, Windows, plain};

use super::device::has_kernels;
use super::taps::taps;
use super::tensors::{contiguous, kernel_error};

/// `[batch, height, width, channels]` and weights `[positions + 1, channels]`, the last row the
/// bias, to `[batch, lines, columns, channels]`.
struct Depthwise(Window2d);

/// Gradient of [`Depthwise`] in its input, from the result's gradient and the weights.
struct InputGradient {
    windows: Windows,
    /// `[batch, height, width, channels]`.
    dims: [usize; 4],
}

/// Gradient of [`Depthwise`] in its weights, from the input and the result's gradient.
struct WeightGradient(Windows);

/// Convolves each channel of `x` `[batch, height, width, channels]` with its column of `weight`
/// `[positions + 1, channels]`; rows ordered by (line, column), then the bias.
///
/// # Errors
/// Shapes do not fit, or the image with its padding is smaller than a window.
pub(crate) fn depthwise(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let (rows, channels) = (window.positions() + 1, x.dim(3)?);
    if weight.dims() != [rows, channels] {
        candle_core::bail!(
            "depthwise weights {:?}, must be [{rows}, {channels}]",
            weight.dims()
        );
    }
    if has_kernels(x) {
        return x
            .contiguous()?
            .apply_op2(&weight.contiguous()?, Depthwise(window));
    }
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return super::cuda::depthwise(x, weight, window);
    }
    composed(x, weight, window)
}

/// The same made of candle's own operations, for devices without a kernel of this project.
fn composed(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (i, tap) in taps(window, x)?.iter().enumerate() {
        let part = tap.broadcast_mul(&weight.get(i)?)?;
        sum = Some(match sum {
            Some(sum) => (sum + part)?,
            None => part,
        });
    }
    match sum {
        Some(sum) => sum.broadcast_add(&weight.get(window.positions())?),
        None => candle_core::bail!("a window without positions"),
    }
}

// === impl Depthwise ===

impl Depthwise {
    fn windows(&self, shape: &Shape) -> Result<Windows> {
        let (_, height, width, channels) = shape.dims4()?;
        Windows::new(self.0, [height, width, channels]).map_err(kernel_error)
    }
}

impl CustomOp2 for Depthwise {
    fn name(&self) -> &'static str {
        "depthwise"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, .., channels) = x_layout.shape().dims4()?;
        let windows = self.windows(x_layout.shape())?;
        let x = contiguous(x, x_layout)?;
        let sums = plain::depthwise(&windows, x, contiguous(weight, weight_layout)?);
        let [lines, columns] = windows.output();
        let shape = (batch, lines, columns, channels).into();
        Ok((CpuStorage::F32(sums), shape))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        let windows = self.windows(x.shape())?;
        let input = InputGradient {
            windows,
            dims: x.dims4()?.into(),
        };
        Ok((
            Some(grad.apply_op2_no_bwd(weight, &input)?),
            Some(x.apply_op2_no_bwd(&grad, &WeightGradient(windows))?),
        ))
    }
}

// === impl InputGradient ===

impl CustomOp2 for InputGradient {
    fn name(&self) -> &'static str {
        "depthwise-input-gradient"
    }

    fn cpu_fwd(
        &self,
        grad: &CpuStorage,
        grad_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let grad = contiguous(grad, grad_layout)?;
        let weight = contiguous(weight, weight_layout)?;
        let sums = plain::depthwise_image_gradient(&self.windows, grad, weight);
        Ok((CpuStorage::F32(sums), self.dims.as_slice().into()))
    }
}

// === impl WeightGradient ===

impl CustomOp2 for WeightGradient {
    fn name(&self) -> &'static str {
        "depthwise-weight-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        grad: &CpuStorage,
        grad_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = contiguous(x, x_layout)?;
        let grad = contiguous(grad, grad_layout)?;
        let sums = plain::depthwise_weight_gradient(&self.0, x, grad);
        let shape = (self.0.positions() + 1, self.0.channels()).into();
        Ok((CpuStorage::F32(sums), shape))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};
    use switchyard_kernels::Padding;

    use super::super::testing::assert_close;
    use super::*;

    #[test]
    fn forward_and_gradients_equal_the_composed_operations() {
        let temporal = Window2d {
            kernel: [5, 1],
            stride: [1, 1],
            padding: Padding {
                top: 2,
                bottom: 2,
                ..Padding::default()
            },
        };
        let x = Var::randn(0f32, 1.0, (2, 7, 6, 5), &Device::Cpu).unwrap();
        for window in [
            Window2d::centred(1, 1),
            Window2d::centred(3, 1),
            Window2d::centred(3, 2),
            Window2d::centred(5, 2),
            temporal,
        ] {
            let name = format!("{window:?}");
            let rows = window.positions() + 1;
            let weight = Var::randn(0f32, 1.0, (rows, 5), &Device::Cpu).unwrap();
            let ours = depthwise(&x, &weight, window).unwrap();
            let theirs = composed(&x, &weight, window).unwrap();
            assert_close(&ours, &theirs, 1e-4, &name);
            let scale = Tensor::randn(0f32, 1.0, ours.shape(), &Device::Cpu).unwrap();
            let gradients = |y: &Tensor| (y * &scale).unwrap().sum_all().unwrap().backward();
            let (ours, theirs) = (gradients(&ours).unwrap(), gradients(&theirs).unwrap());
            for var in [&x, &weight] {
                assert_close(
                    ours.get(var).unwrap(),
                    theirs.get(var).unwrap(),
                    1e-4,
                    &name,
                );
            }
        }
    }

    #[test]
    fn forward_equals_candles_grouped_convolution() {
        let x = Tensor::randn(0f32, 1.0, (2, 9, 8, 4), &Device::Cpu).unwrap();
        for (kernel, stride) in [(3, 1), (3, 2), (5, 2)] {
            let window = Window2d::centred(kernel, stride);
            let weight = Tensor::randn(0f32, 1.0, (kernel * kernel + 1, 4), &Device::Cpu).unwrap();
            let ours = depthwise(&x, &weight, window).unwrap();
            let grouped = weight
                .narrow(0, 0, kernel * kernel)
                .and_then(|taps| taps.t()?.reshape((4, 1, kernel, kernel)))
                .unwrap();
            let theirs = x
                .permute((0, 3, 1, 2))
                .and_then(|x| x.contiguous()?.conv2d(&grouped, kernel / 2, stride, 1, 4))
                .and_then(|y| y.permute((0, 2, 3, 1)))
                .and_then(|y| y.broadcast_add(&weight.get(kernel * kernel)?))
                .unwrap();
            assert_close(&ours, &theirs, 1e-4, &format!("{window:?}"));
        }
    }

    #[test]
    fn weights_of_another_width_are_an_error() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu);
        let x = zeros(&[1, 4, 4, 3]).unwrap();
        let text = depthwise(&x, &zeros(&[10, 2]).unwrap(), Window2d::centred(3, 1))
            .unwrap_err()
            .to_string();
        assert!(text.contains("[10, 3]"), "{text}");
    }
}
