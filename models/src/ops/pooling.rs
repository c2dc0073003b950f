//! Means and maxima over positions, on tensors.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use switchyard_kernels::{Window2d, Windows, pooling};

use super::device::has_kernels;
use super::taps::taps;
use super::tensors::{contiguous, kernel_error};

/// Largest value of each window and channel.
struct MaxPool(Window2d);

/// Mean over positions: `[batch, positions, channels]` to `[batch, channels]`.
pub(crate) fn mean_over_positions(x: &Tensor) -> Result<Tensor> {
    let (batch, positions, _) = x.dims3()?;
    // As a product: candle reduces over a middle dimension element by element.
    let mean = Tensor::full(1.0 / positions as f32, (batch, 1, positions), x.device())?;
    mean.to_dtype(x.dtype())?.matmul(x)?.squeeze(1)
}

/// Mean over all positions of images: `[batch, height, width, channels]` to `[batch, channels]`.
pub(crate) fn mean_pool(x: &Tensor) -> Result<Tensor> {
    let (batch, height, width, channels) = x.dims4()?;
    mean_over_positions(&x.reshape((batch, height * width, channels))?)
}

/// Largest value of each window and channel, without a gradient:
/// `[batch, height, width, channels]` to `[batch, lines, columns, channels]`.
///
/// Positions outside the image count as 0, so this is PyTorch's max pooling for inputs that come
/// from a ReLU.
///
/// # Errors
/// An image with its padding is smaller than a window.
pub(crate) fn max_pool(x: &Tensor, window: Window2d) -> Result<Tensor> {
    if has_kernels(x) {
        return x.contiguous()?.apply_op1_no_bwd(&MaxPool(window));
    }
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return super::cuda::max_pool(x, window);
    }
    let taps = taps(window, x)?;
    let mut largest = taps[0].zeros_like()?;
    for tap in &taps {
        largest = largest.maximum(tap)?;
    }
    Ok(largest)
}

// === impl MaxPool ===

impl CustomOp1 for MaxPool {
    fn name(&self) -> &'static str {
        "max-pool"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = layout.shape().dims4()?;
        let windows = Windows::new(self.0, [height, width, channels]).map_err(kernel_error)?;
        let [lines, columns] = windows.output();
        let mut maxima = vec![0f32; batch * lines * columns * channels];
        pooling::max_values(&windows, contiguous(storage, layout)?, &mut maxima, 0.0);
        let shape = (batch, lines, columns, channels).into();
        Ok((CpuStorage::F32(maxima), shape))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;
    use switchyard_kernels::Padding;

    use super::*;

    #[test]
    fn max_pool_takes_the_largest_of_each_window() {
        let x: Vec<f32> = (1..=16).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (1, 4, 4, 1), &Device::Cpu).unwrap();
        let even = Window2d {
            kernel: [2, 2],
            stride: [2, 2],
            padding: Padding::default(),
        };
        for window in [Window2d::centred(3, 2), even] {
            let pooled = max_pool(&x, window).unwrap();
            let rows = pooled.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(rows, [6., 8., 14., 16.]);
        }
    }

    #[test]
    fn mean_pool_averages_each_channel() {
        let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (1, 2, 3, 2), &Device::Cpu).unwrap();
        let pooled = mean_pool(&x).unwrap().to_vec2::<f32>().unwrap();
        assert!((pooled[0][0] - 5.0).abs() < 1e-6 && (pooled[0][1] - 6.0).abs() < 1e-6);
    }
}
