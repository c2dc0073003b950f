//! Operations on the windows of each channel: the largest value, and a weighted sum.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{DeviceRepr, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, CudaStorage, WrapErr};
use candle_core::{CpuStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor};
use half::f16;
use switchyard_kernels::Window2d;

use super::{WindowSizes, launch, range, typed};

struct GpuMaxPool(Window2d);

struct GpuDepthwise(Window2d);

/// Largest value of each window and channel, positions outside the image counting as 0:
/// `[batch, height, width, channels]` to `[batch, lines, columns, channels]`.
///
/// # Errors
/// The image with its padding is smaller than a window, or the GPU fails.
pub(crate) fn max_pool(x: &Tensor, window: Window2d) -> Result<Tensor> {
    x.contiguous()?.apply_op1_no_bwd(&GpuMaxPool(window))
}

/// Convolves each channel of `x` `[batch, height, width, channels]` with its column of `weight`
/// `[positions + 1, channels]`; rows ordered by (line, column), then the bias.
///
/// # Errors
/// The image with its padding is smaller than a window, or the GPU fails.
pub(crate) fn depthwise(x: &Tensor, weight: &Tensor, window: Window2d) -> Result<Tensor> {
    let op = GpuDepthwise(window);
    x.contiguous()?.apply_op2_no_bwd(&weight.contiguous()?, &op)
}

/// Runs the kernel `name` on images and, if it takes some, weights.
fn run<T: CudaDType + DeviceRepr>(
    name: &str,
    window: Window2d,
    (x, layout): (&CudaStorage, &Layout),
    weights: Option<(&CudaStorage, &Layout)>,
) -> Result<(CudaStorage, Shape)> {
    let device = x.device();
    let (batch, height, width, channels) = layout.shape().dims4()?;
    let sizes = WindowSizes::new(window, [batch, height, width, channels], 1)?;
    let func = typed(device, name, x.dtype())?;
    let images = x.as_cuda_slice::<T>()?.slice(range(layout)?);
    let weights = match weights {
        Some((weights, layout)) => Some(weights.as_cuda_slice::<T>()?.slice(range(layout)?)),
        None => None,
    };
    // SAFETY: the kernel writes every value of it.
    let mut onto = unsafe { device.alloc::<T>(sizes.count as usize)? };
    let stream = device.cuda_stream();
    let mut builder = stream.launch_builder(&func);
    builder.arg(&images);
    if let Some(weights) = &weights {
        builder.arg(weights);
    }
    builder.arg(&mut onto);
    sizes.push(&mut builder);
    // SAFETY: the arguments are those of the kernel, which reads inside the images and the weights,
    // whose shapes are checked, and writes `count` values.
    unsafe { builder.launch(launch(sizes.count)) }.w()?;
    let [lines, columns] = [sizes.sizes[3] as usize, sizes.sizes[4] as usize];
    let storage = CudaStorage::wrap_cuda_slice(onto, device.clone());
    Ok((storage, (batch, lines, columns, channels).into()))
}

// === impl GpuMaxPool ===

impl CustomOp1 for GpuMaxPool {
    fn name(&self) -> &'static str {
        "max-pool-on-a-gpu"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("{} is for GPUs", self.name())
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        match x.dtype() {
            DType::F16 => run::<f16>("max_pool", self.0, (x, layout), None),
            _ => run::<f32>("max_pool", self.0, (x, layout), None),
        }
    }
}

// === impl GpuDepthwise ===

impl CustomOp2 for GpuDepthwise {
    fn name(&self) -> &'static str {
        "depthwise-on-a-gpu"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("{} is for GPUs", self.name())
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        layout: &Layout,
        weights: &CudaStorage,
        weights_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (x, weights) = ((x, layout), Some((weights, weights_layout)));
        match x.0.dtype() {
            DType::F16 => run::<f16>("depthwise", self.0, x, weights),
            _ => run::<f32>("depthwise", self.0, x, weights),
        }
    }
}
