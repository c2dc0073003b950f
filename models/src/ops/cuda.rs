//! GPU kernels for operations that would take a dozen passes of candle's.
//!
//! Their source is `cuda/kernels.cu`, compiled when the process first computes on a GPU.

#![allow(
    unsafe_code,
    reason = "launching a kernel of its own source, whose arguments cannot be checked"
)]

use std::sync::OnceLock;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaSlice, DeviceRepr, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::cudarc::nvrtc::compile_ptx;
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::{
    CpuStorage, CustomOp1, DType, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor,
    builder_arg,
};
use half::f16;
use switchyard_kernels::Window2d;

use super::tensors::kernel_error;

const SOURCE: &str = include_str!("cuda/kernels.cu");

/// Threads of a block, which share a multiprocessor's registers.
const BLOCK: u32 = 256;
/// Blocks beyond which each thread computes more than one value.
const BLOCKS_MAX: u64 = 1 << 16;

/// Windows of images as rows of a matrix.
struct GpuUnfold(Window2d);

/// Adds a bias and a residual to a product and applies a ReLU, in place.
struct GpuFinish {
    relu: bool,
}

/// Windows of `x` `[batch, height, width, channels]` as rows
/// `[batch * lines * columns, positions * channels]`, ordered by (line, column, channel).
///
/// # Errors
/// The image with its padding is smaller than a window, or the GPU fails.
pub(crate) fn unfold(x: &Tensor, window: Window2d) -> Result<Tensor> {
    x.contiguous()?.apply_op1_no_bwd(&GpuUnfold(window))
}

/// `product + bias + onto`, then a ReLU; overwrites `product`, which must have no other holder.
///
/// # Errors
/// Shapes do not fit, or the GPU fails.
pub(crate) fn finish(
    product: Tensor,
    bias: &Tensor,
    onto: Option<&Tensor>,
    relu: bool,
) -> Result<Tensor> {
    let (product, bias) = (product.contiguous()?, bias.contiguous()?);
    let op = GpuFinish { relu };
    match onto {
        Some(onto) => product.inplace_op3(&bias, &onto.contiguous()?, &op)?,
        None => product.inplace_op2(&bias, &op)?,
    }
    Ok(product)
}

/// The kernel `name` for values of a type.
fn kernel(device: &CudaDevice, name: &str, dtype: DType) -> Result<CudaFunction> {
    static PTX: OnceLock<std::result::Result<String, String>> = OnceLock::new();
    let compiled = PTX.get_or_init(|| {
        let ptx = compile_ptx(SOURCE).map_err(|error| error.to_string())?;
        Ok(ptx.to_src())
    });
    let ptx = match compiled {
        Ok(ptx) => ptx,
        Err(error) => candle_core::bail!("compiling the GPU kernels: {error}"),
    };
    let suffix = match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        other => candle_core::bail!("no kernel computes in {other:?} on a GPU"),
    };
    let func = device.get_or_load_custom_func(&format!("{name}_{suffix}"), "switchyard", ptx)?;
    Ok(func.into_cuda_function())
}

fn launch(count: u64) -> LaunchConfig {
    let blocks = count.div_ceil(u64::from(BLOCK)).clamp(1, BLOCKS_MAX);
    LaunchConfig {
        grid_dim: (blocks as u32, 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// Range of the values of a contiguous tensor.
fn range(layout: &Layout) -> Result<std::ops::Range<usize>> {
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(from..to),
        None => candle_core::bail!("a GPU kernel needs contiguous input"),
    }
}

// === impl GpuUnfold ===

impl GpuUnfold {
    fn run<T: CudaDType + DeviceRepr>(
        &self,
        x: &CudaStorage,
        layout: &Layout,
        dtype: DType,
    ) -> Result<(CudaStorage, Shape)> {
        let device = x.device();
        let (batch, height, width, channels) = layout.shape().dims4()?;
        let [lines, columns] = self.0.output(height, width).map_err(kernel_error)?;
        let (windows, wide) = (batch * lines * columns, self.0.positions() * channels);
        let images = x.as_cuda_slice::<T>()?.slice(range(layout)?);
        // SAFETY: the kernel writes every value of it.
        let mut rows = unsafe { device.alloc::<T>(windows * wide)? };
        let func = kernel(device, "unfold", dtype)?;
        let count = (windows * wide) as u64;
        let stream = device.cuda_stream();
        let mut builder = stream.launch_builder(&func);
        builder.arg(&images);
        builder.arg(&mut rows);
        let Window2d {
            kernel,
            stride,
            padding,
        } = self.0;
        builder_arg!(
            builder,
            count,
            height as i32,
            width as i32,
            channels as i32,
            lines as i32,
            columns as i32,
            kernel[0] as i32,
            kernel[1] as i32,
            stride[0] as i32,
            stride[1] as i32,
            padding.top as i32,
            padding.left as i32
        );
        // SAFETY: the arguments are those of the kernel, which reads inside the images and writes
        // `count` values.
        unsafe { builder.launch(launch(count)) }.w()?;
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
            DType::F16 => self.run::<f16>(x, layout, DType::F16),
            dtype => self.run::<f32>(x, layout, dtype),
        }
    }
}

// === impl GpuFinish ===

impl GpuFinish {
    fn run<T: CudaDType + DeviceRepr>(
        &self,
        (product, layout): (&mut CudaStorage, &Layout),
        (bias, bias_layout): (&CudaStorage, &Layout),
        onto: Option<(&CudaStorage, &Layout)>,
    ) -> Result<()> {
        let count = layout.shape().elem_count();
        let channels = bias_layout.shape().elem_count();
        let fits = onto.is_none_or(|(_, onto)| onto.shape().elem_count() == count);
        if channels == 0 || count % channels != 0 || !fits {
            candle_core::bail!("{} does not fit {:?}", self.name(), layout.shape());
        }
        let device = product.device().clone();
        let func = kernel(&device, "finish", product.dtype())?;
        let bias = bias.as_cuda_slice::<T>()?.slice(range(bias_layout)?);
        let has_onto = i32::from(onto.is_some());
        // The kernel does not read this argument if there is no residual.
        let onto = match onto {
            Some((onto, layout)) => onto.as_cuda_slice::<T>()?.slice(range(layout)?),
            None => bias.slice(..),
        };
        let own = range(layout)?;
        let slice: &mut CudaSlice<T> = product.as_cuda_slice_mut::<T>()?;
        let mut sums = slice.slice_mut(own);
        let stream = device.cuda_stream();
        let mut builder = stream.launch_builder(&func);
        builder.arg(&mut sums);
        builder.arg(&bias);
        builder.arg(&onto);
        builder_arg!(
            builder,
            count as u64,
            channels as i32,
            has_onto,
            i32::from(self.relu)
        );
        // SAFETY: the arguments are those of the kernel; it writes `count` values, and reads the
        // same number of `onto` if there is one, and `channels` of the bias.
        unsafe { builder.launch(launch(count as u64)) }.w()?;
        Ok(())
    }

    fn name(&self) -> &'static str {
        "finish-on-a-gpu"
    }
}

impl InplaceOp2 for GpuFinish {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<()> {
        candle_core::bail!("{} is for GPUs", Self::name(self))
    }

    fn cuda_fwd(
        &self,
        product: &mut CudaStorage,
        layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<()> {
        let (product, bias) = ((product, layout), (bias, bias_layout));
        match product.0.dtype() {
            DType::F16 => self.run::<f16>(product, bias, None),
            _ => self.run::<f32>(product, bias, None),
        }
    }
}

impl InplaceOp3 for GpuFinish {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn cpu_fwd(
        &self,
        _: &mut CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<()> {
        candle_core::bail!("{} is for GPUs", Self::name(self))
    }

    fn cuda_fwd(
        &self,
        product: &mut CudaStorage,
        layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
        onto: &CudaStorage,
        onto_layout: &Layout,
    ) -> Result<()> {
        let (product, bias) = ((product, layout), (bias, bias_layout));
        let onto = Some((onto, onto_layout));
        match product.0.dtype() {
            DType::F16 => self.run::<f16>(product, bias, onto),
            _ => self.run::<f32>(product, bias, onto),
        }
    }
}
