//! The 2-D convolution as one operation with its gradients.
//!
//! A block of windows is unfolded and multiplied while it is in the second-level cache. The whole
//! unfolded image, nine times the image for a 3 x 3 window, never exists. Unfolding costs little
//! compared with the product, so the gradients unfold again instead of keeping the rows.

use candle_core::{CpuStorage, CustomOp2, Device, Layout, Result, Shape, Tensor};
use switchyard_kernels::{Activation, Window2d, Windows};

use super::device::has_kernels;
use super::pointwise::activate;
use super::taps::taps;
use super::tensors::{contiguous, kernel_error, with_values};

/// Values in one block of unfolded windows.
const BLOCK: usize = 64 * 1024;

/// Fewest windows in one block, for wide windows: with fewer, the weights are read more often than
/// the windows.
const BLOCK_WINDOWS_MIN: usize = 64;

/// `[batch, height, width, in]` and weights `[positions * in + 1, out]` to
/// `[batch, lines, columns, out]`.
struct Convolve2d {
    window: Window2d,
    /// The second argument again: as a tensor it can be multiplied without being copied.
    weight: Tensor,
}

/// Convolves `x` `[batch, height, width, in]` with `weight` `[positions * in + 1, out]`, its rows
/// ordered by (line, column, input channel), then the bias.
///
/// # Errors
/// Shapes do not fit, or the image with its padding is smaller than a window.
pub(crate) fn convolve2d(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let (rows, channels) = (weight.dim(0)?, x.dim(3)?);
    if rows != window.positions() * channels + 1 {
        candle_core::bail!("convolution weights of {rows} rows for {channels} channels");
    }
    if !has_kernels(x) {
        return composed(x, weight, window, None, Activation::None);
    }
    let op = Convolve2d {
        window,
        weight: weight.detach(),
    };
    x.contiguous()?.apply_op2(weight, op)
}

/// The same as products of whole batches, for devices without the operation above, followed by
/// `onto +` and an activation.
pub(crate) fn composed(
    x: &Tensor,
    weight: &Tensor,
    window: Window2d,
    onto: Option<&Tensor>,
    activation: Activation,
) -> Result<Tensor> {
    let (batch, height, width, channels) = x.dims4()?;
    let [lines, columns] = window.output(height, width).map_err(kernel_error)?;
    let rows = if window.is_identity() {
        x.reshape((batch * lines * columns, channels))?
    } else {
        rows(x, window)?
    };
    let wide = rows.dim(1)?;
    let product = rows.matmul(&weight.narrow(0, 0, wide)?)?;
    let onto = onto.map(|onto| onto.reshape(product.shape())).transpose()?;
    finish(product, &weight.get(wide)?, onto.as_ref(), activation)?.reshape((
        batch,
        lines,
        columns,
        (),
    ))
}

/// Windows as rows, `[batch * lines * columns, positions * channels]`.
fn rows(x: &Tensor, window: Window2d) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return super::cuda::unfold(x, window);
    }
    let rows = Tensor::cat(&taps(window, x)?, 3)?;
    rows.flatten_to(2)
}

/// Adds a product's bias and `onto`, and applies the activation.
fn finish(
    product: Tensor,
    bias: &Tensor,
    onto: Option<&Tensor>,
    activation: Activation,
) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if product.device().is_cuda() {
        let relu = activation == Activation::Relu;
        let sum = super::cuda::finish(product, bias, onto, relu)?;
        return if relu {
            Ok(sum)
        } else {
            activate(sum, activation)
        };
    }
    let sum = product.broadcast_add(bias)?;
    match onto {
        Some(onto) => activate((onto + sum)?, activation),
        None => activate(sum, activation),
    }
}

// === impl Convolve2d ===

impl Convolve2d {
    fn windows(&self, shape: &Shape) -> Result<Windows> {
        let (_, height, width, channels) = shape.dims4()?;
        Windows::new(self.window, [height, width, channels]).map_err(kernel_error)
    }
}

impl CustomOp2 for Convolve2d {
    fn name(&self) -> &'static str {
        "convolve2d"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _weight: &CpuStorage,
        _weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let batch = x_layout.shape().dims4()?.0;
        let x = contiguous(x, x_layout)?;
        let windows = self.windows(x_layout.shape())?;
        let channels = self.weight.dim(1)?;
        let count = batch * windows.per_image();
        let mut output = Vec::with_capacity(count * channels);
        for range in blocks(&windows, count) {
            let rows = matrix(windows.unfold(x, range.clone()), range.len())?;
            with_values(&rows.matmul(&self.weight)?, |product| {
                output.extend_from_slice(product);
            })?;
        }
        let [lines, columns] = windows.output();
        let shape = (batch, lines, columns, channels).into();
        Ok((CpuStorage::F32(output), shape))
    }

    fn bwd(
        &self,
        x: &Tensor,
        _weight: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let windows = self.windows(x.shape())?;
        let grad = grad.contiguous()?.flatten_to(2)?.detach();
        let transposed = self.weight.narrow(0, 0, windows.width())?.t()?;
        let mut x_grad = vec![0f32; x.elem_count()];
        let mut weight_grad = vec![0f32; self.weight.elem_count()];
        with_values(x, |x| -> Result<()> {
            for range in blocks(&windows, grad.dim(0)?) {
                let rows = matrix(windows.unfold(x, range.clone()), range.len())?;
                let grad = grad.narrow(0, range.start, range.len())?;
                with_values(&rows.t()?.matmul(&grad)?, |product| {
                    for (sum, value) in weight_grad.iter_mut().zip(product) {
                        *sum += value;
                    }
                })?;
                with_values(&grad.matmul(&transposed)?, |rows| {
                    windows.fold(rows, windows.width(), range.clone(), &mut x_grad);
                })?;
            }
            Ok(())
        })??;
        Ok((
            Some(Tensor::from_vec(x_grad, x.shape(), &Device::Cpu)?),
            Some(Tensor::from_vec(
                weight_grad,
                self.weight.shape(),
                &Device::Cpu,
            )?),
        ))
    }
}

/// `0..count` in blocks of windows.
fn blocks(windows: &Windows, count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let block = (BLOCK / (windows.width() + 1)).max(BLOCK_WINDOWS_MIN);
    (0..count)
        .step_by(block)
        .map(move |from| from..(from + block).min(count))
}

/// `values` as `[rows, _]` on the CPU.
fn matrix(values: Vec<f32>, rows: usize) -> Result<Tensor> {
    let columns = values.len() / rows.max(1);
    Tensor::from_vec(values, (rows, columns), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Var;

    use super::super::testing::assert_close;
    use super::*;

    /// Small images of one block, and large ones of several blocks, the last of which ends inside
    /// an image.
    #[test]
    fn forward_and_gradients_equal_candles_convolution() {
        for shape in [(2, 10, 8, 3), (3, 40, 30, 6)] {
            let x = Var::randn(0f32, 1.0, shape, &Device::Cpu).unwrap();
            for (kernel, stride) in [(1, 2), (3, 1), (3, 2), (5, 1), (7, 2)] {
                let name = format!("{shape:?}, kernel {kernel}, stride {stride}");
                let rows = kernel * kernel * shape.3 + 1;
                let weight = Var::randn(0f32, 0.1, (rows, 4), &Device::Cpu).unwrap();
                let window = Window2d::centred(kernel, stride);
                let ours = convolve2d(&x, &weight, window).unwrap();
                let theirs = theirs(&x, &weight, kernel, stride).unwrap();
                assert_close(&ours, &theirs, 1e-4, &name);
                let whole = composed(&x, &weight, window, None, Activation::None);
                assert_close(&whole.unwrap(), &theirs, 1e-4, &name);
                let onto = theirs.neg().unwrap();
                let none = composed(&x, &weight, window, Some(&onto), Activation::Relu);
                assert_close(&none.unwrap(), &theirs.zeros_like().unwrap(), 1e-4, &name);
                let scale = Tensor::randn(0f32, 0.1, ours.shape(), &Device::Cpu).unwrap();
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
    }

    /// candle's own convolution, which is channels first.
    fn theirs(x: &Tensor, weight: &Tensor, kernel: usize, stride: usize) -> Result<Tensor> {
        let channels = x.dim(3)?;
        let rows = kernel * kernel * channels;
        let taps = weight.narrow(0, 0, rows)?;
        let taps = taps.reshape((kernel, kernel, channels, ()))?;
        let taps = taps.permute((3, 2, 0, 1))?.contiguous()?;
        x.permute((0, 3, 1, 2))?
            .contiguous()?
            .conv2d(&taps, (kernel - 1) / 2, stride, 1, 1)?
            .permute((0, 2, 3, 1))?
            .broadcast_add(&weight.get(rows)?)
    }

    #[test]
    fn weights_of_another_width_are_an_error() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu);
        let x = zeros(&[1, 4, 4, 3]).unwrap();
        let text = convolve2d(&x, &zeros(&[27, 2]).unwrap(), Window2d::centred(3, 1))
            .unwrap_err()
            .to_string();
        assert!(text.contains("27 rows"), "{text}");
    }
}
