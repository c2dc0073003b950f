//! Windows of images as rows of a matrix.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{DeviceRepr, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, CudaStorage, WrapErr};
use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor};
use half::f16;
use switchyard_kernels::Window2d;

use super::{WindowSizes, kernel, launch, range};
use crate::ops::tensors::kernel_error;

/// Widths of words that a kernel copies, in bytes.
const WORDS: [usize; 3] = [16, 4, 2];

struct GpuUnfold(Window2d);

/// Windows of `x` `[batch, height, width, channels]` as rows
/// `[batch * lines * columns, positions * channels]`, ordered by (line, column, channel).
///
/// # Errors
/// The image with its padding is smaller than a window, or the GPU fails.
pub(crate) fn unfold(x: &Tensor, window: Window2d) -> Result<Tensor> {
    x.contiguous()?.apply_op1_no_bwd(&GpuUnfold(window))
}

/// The widest word of which positions of `channels` values consist that begin at value `from`.
fn word(channels: usize, from: usize, size: usize) -> usize {
    let fits = |&word: &usize| {
        (channels * size).is_multiple_of(word) && (from * size).is_multiple_of(word)
    };
    WORDS.into_iter().find(fits).unwrap_or(size)
}

// === impl GpuUnfold ===

impl GpuUnfold {
    fn run<T: CudaDType + DeviceRepr>(
        &self,
        x: &CudaStorage,
        layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let device = x.device();
        let (batch, height, width, channels) = layout.shape().dims4()?;
        let [lines, columns] = self.0.output(height, width).map_err(kernel_error)?;
        let (windows, wide) = (batch * lines * columns, self.0.positions() * channels);
        let values = range(layout)?;
        let word = word(channels, values.start, size_of::<T>());
        let words = channels * size_of::<T>() / word;
        let sizes = WindowSizes::new(self.0, [batch, height, width, words], self.0.positions())?;
        let images = x.as_cuda_slice::<T>()?.slice(values);
        // SAFETY: the kernel writes every value of it.
        let mut rows = unsafe { device.alloc::<T>(windows * wide)? };
        let func = kernel(device, &format!("unfold_{word}"))?;
        let stream = device.cuda_stream();
        let mut builder = stream.launch_builder(&func);
        builder.arg(&images);
        builder.arg(&mut rows);
        sizes.push(&mut builder);
        // SAFETY: the arguments are those of the kernel, which reads inside the images and writes
        // `count` words; both begin at a multiple of a word, and memory of CUDA at one of 256 bytes.
        unsafe { builder.launch(launch(sizes.count)) }.w()?;
        let storage = CudaStorage::wrap_cuda_slice(rows, device.clone());
        Ok((storage, (windows, wide).into()))
    }
}

impl CustomOp1 for GpuUnfold {
    fn name(&self) -> &'static str {
        "unfold-on-a-gpu"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("{} is for GPUs", self.name())
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        match x.dtype() {
            DType::F16 => self.run::<f16>(x, layout),
            _ => self.run::<f32>(x, layout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_wide_as_channels_and_offset_allow() {
        assert_eq!(word(64, 0, 4), 16);
        assert_eq!(word(64, 64, 2), 16);
        assert_eq!(word(64, 4, 2), 4, "8 bytes from the begin");
        assert_eq!(word(3, 0, 4), 4);
        assert_eq!(word(3, 0, 2), 2);
    }
}
