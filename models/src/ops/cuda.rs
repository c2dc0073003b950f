//! GPU kernels for operations that would take a dozen passes of candle's.
//!
//! Their source is `cuda/kernels.cu`, compiled when the process first computes on a GPU.

#![allow(
    unsafe_code,
    reason = "launching a kernel of its own source, whose arguments cannot be checked"
)]

mod finish;
mod unfold;
mod windows;

use std::sync::OnceLock;

use candle_core::cuda_backend::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, LaunchArgs, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::cudarc::nvrtc::compile_ptx;
use candle_core::{DType, Layout, Result};
use switchyard_kernels::Window2d;

pub(crate) use self::finish::finish;
pub(crate) use self::unfold::unfold;
pub(crate) use self::windows::{depthwise, max_pool};
use super::tensors::kernel_error;

const SOURCE: &str = include_str!("cuda/kernels.cu");

/// Threads of a block, which share a multiprocessor's registers.
const BLOCK: u32 = 256;
/// Blocks beyond which each thread computes more than one value.
const BLOCKS_MAX: u64 = 1 << 16;

/// Sizes of windows over images, as the kernels take them.
struct WindowSizes {
    /// Values, or words, of the result.
    count: u64,
    sizes: [i32; 11],
}

/// The kernel `name`.
fn kernel(device: &CudaDevice, name: &str) -> Result<CudaFunction> {
    static PTX: OnceLock<std::result::Result<String, String>> = OnceLock::new();
    let compiled = PTX.get_or_init(|| {
        let ptx = compile_ptx(SOURCE).map_err(|error| error.to_string())?;
        Ok(ptx.to_src())
    });
    let ptx = match compiled {
        Ok(ptx) => ptx,
        Err(error) => candle_core::bail!("compiling the GPU kernels: {error}"),
    };
    let func = device.get_or_load_custom_func(name, "switchyard", ptx)?;
    Ok(func.into_cuda_function())
}

/// The kernel `name` for values of a type.
fn typed(device: &CudaDevice, name: &str, dtype: DType) -> Result<CudaFunction> {
    let suffix = match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        other => candle_core::bail!("no kernel computes in {other:?} on a GPU"),
    };
    kernel(device, &format!("{name}_{suffix}"))
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

// === impl WindowSizes ===

impl WindowSizes {
    /// Of windows with `lines` and `columns` of results over images of `channels` words a position;
    /// the result has `values` words a window and channel.
    fn new(
        window: Window2d,
        [batch, height, width, channels]: [usize; 4],
        values: usize,
    ) -> Result<Self> {
        let [lines, columns] = window.output(height, width).map_err(kernel_error)?;
        let Window2d {
            kernel,
            stride,
            padding,
        } = window;
        let sizes = [
            height,
            width,
            channels,
            lines,
            columns,
            kernel[0],
            kernel[1],
            stride[0],
            stride[1],
            padding.top,
            padding.left,
        ];
        let mut narrow = [0; 11];
        for (narrow, size) in narrow.iter_mut().zip(sizes) {
            *narrow = i32::try_from(size).map_err(candle_core::Error::wrap)?;
        }
        Ok(Self {
            count: (batch * lines * columns * channels * values) as u64,
            sizes: narrow,
        })
    }

    fn push<'a>(&'a self, builder: &mut LaunchArgs<'a>) {
        builder.arg(&self.count);
        for size in &self.sizes {
            builder.arg(size);
        }
    }
}
