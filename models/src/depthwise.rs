//! Depthwise convolution: each channel has a window of weights of its own.
//!
//! A matrix product cannot express it without multiplying by zeros, so it is an operation of its
//! own. Channels are last, hence neighbours in memory: the innermost loop runs over them, with
//! one multiply-add per number read.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use crate::device::has_kernels;
use crate::unfold2d::{Window2d, contiguous};

/// `[batch, height, width, channels]` and weights `[positions + 1, channels]`, the last row the
/// bias, to `[batch, lines, columns, channels]`.
struct Depthwise(Window2d);

/// Gradient of [`Depthwise`] in its input, from the result's gradient and the weights.
struct InputGradient {
    window: Window2d,
    shape: [usize; 4],
}

/// Gradient of [`Depthwise`] in its weights, from the input and the result's gradient.
struct WeightGradient(Window2d);

/// Convolves each channel of `x` `[batch, height, width, channels]` with its column of `weight`
/// `[positions + 1, channels]`; rows ordered by (line, column), then the bias.
///
/// # Errors
/// Shapes do not fit, or the picture with its padding is smaller than a window.
pub(crate) fn depthwise(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let (rows, channels) = (window.positions() + 1, x.dim(3)?);
    if weight.dims() != [rows, channels] {
        candle_core::bail!(
            "depthwise weights {:?}, must be [{rows}, {channels}]",
            weight.dims()
        );
    }
    if has_kernels(x) {
        x.contiguous()?
            .apply_op2(&weight.contiguous()?, Depthwise(window))
    } else {
        composed(x, weight, window)
    }
}

/// The same from candle's own operations, for devices without a kernel of ours.
fn composed(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (i, tap) in window.taps(x)?.iter().enumerate() {
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
        let (batch, height, width, channels) = x_layout.shape().dims4()?;
        let x = contiguous(x, x_layout)?;
        let weight = contiguous(weight, weight_layout)?;
        let [lines, columns] = self.0.output(height, width)?;
        let (taps, bias) = weight.split_at(self.0.positions() * channels);
        let mut sums = bias.repeat(batch * lines * columns);
        let pictures = x.chunks_exact((height * width * channels).max(1));
        let outputs = sums.chunks_exact_mut((lines * columns * channels).max(1));
        for (from, to) in pictures.zip(outputs) {
            self.0
                .for_each_run([height, width], [lines, columns], |run| {
                    let sum = &mut to[run.window * channels..][..channels];
                    let values = &from[run.position * channels..][..run.count * channels];
                    let factors = &taps[run.slot * channels..][..run.count * channels];
                    for (value, factor) in values
                        .chunks_exact(channels)
                        .zip(factors.chunks_exact(channels))
                    {
                        multiply_add(sum, value, factor);
                    }
                });
        }
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
        let input = InputGradient {
            window: self.0,
            shape: x.dims4()?.into(),
        };
        Ok((
            Some(grad.apply_op2_no_bwd(weight, &input)?),
            Some(x.apply_op2_no_bwd(&grad, &WeightGradient(self.0))?),
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
        let [batch, height, width, channels] = self.shape;
        let grad = contiguous(grad, grad_layout)?;
        let weight = contiguous(weight, weight_layout)?;
        let [lines, columns] = self.window.output(height, width)?;
        let mut sums = vec![0f32; batch * height * width * channels];
        let pictures = sums.chunks_exact_mut((height * width * channels).max(1));
        let outputs = grad.chunks_exact((lines * columns * channels).max(1));
        for (to, from) in pictures.zip(outputs) {
            self.window
                .for_each_run([height, width], [lines, columns], |run| {
                    let value = &from[run.window * channels..][..channels];
                    let onto = &mut to[run.position * channels..][..run.count * channels];
                    let factors = &weight[run.slot * channels..][..run.count * channels];
                    for (sum, factor) in onto
                        .chunks_exact_mut(channels)
                        .zip(factors.chunks_exact(channels))
                    {
                        multiply_add(sum, value, factor);
                    }
                });
        }
        Ok((CpuStorage::F32(sums), self.shape.as_slice().into()))
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
        let (_, height, width, channels) = x_layout.shape().dims4()?;
        let x = contiguous(x, x_layout)?;
        let grad = contiguous(grad, grad_layout)?;
        let [lines, columns] = self.0.output(height, width)?;
        let positions = self.0.positions();
        let mut sums = vec![0f32; (positions + 1) * channels];
        let (taps, bias) = sums.split_at_mut(positions * channels);
        let pictures = x.chunks_exact((height * width * channels).max(1));
        let outputs = grad.chunks_exact((lines * columns * channels).max(1));
        for (picture, grad) in pictures.zip(outputs) {
            self.0
                .for_each_run([height, width], [lines, columns], |run| {
                    let factor = &grad[run.window * channels..][..channels];
                    let values = &picture[run.position * channels..][..run.count * channels];
                    let onto = &mut taps[run.slot * channels..][..run.count * channels];
                    for (sum, value) in onto
                        .chunks_exact_mut(channels)
                        .zip(values.chunks_exact(channels))
                    {
                        multiply_add(sum, value, factor);
                    }
                });
        }
        for grad in grad.chunks_exact(channels.max(1)) {
            for (sum, value) in bias.iter_mut().zip(grad) {
                *sum += value;
            }
        }
        Ok((CpuStorage::F32(sums), (positions + 1, channels).into()))
    }
}

/// `sum += a * b`, number by number.
#[inline]
fn multiply_add(sum: &mut [f32], a: &[f32], b: &[f32]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum += a * b;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;
    use crate::unfold2d::Padding;

    fn numbers(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    fn assert_close(a: &Tensor, b: &Tensor, what: &str) {
        assert_eq!(a.dims(), b.dims(), "{what}");
        for (a, b) in numbers(a).iter().zip(numbers(b)) {
            assert!((a - b).abs() < 1e-4, "{what}: {a} {b}");
        }
    }

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
            let what = format!("{window:?}");
            let rows = window.positions() + 1;
            let weight = Var::randn(0f32, 1.0, (rows, 5), &Device::Cpu).unwrap();
            let ours = depthwise(&x, &weight, window).unwrap();
            let theirs = composed(&x, &weight, window).unwrap();
            assert_close(&ours, &theirs, &what);
            let scale = Tensor::randn(0f32, 1.0, ours.shape(), &Device::Cpu).unwrap();
            let gradients = |y: &Tensor| (y * &scale).unwrap().sum_all().unwrap().backward();
            let (ours, theirs) = (gradients(&ours).unwrap(), gradients(&theirs).unwrap());
            for var in [&x, &weight] {
                assert_close(ours.get(var).unwrap(), theirs.get(var).unwrap(), &what);
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
            assert_close(&ours, &theirs, &format!("{window:?}"));
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
