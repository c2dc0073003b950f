//! Bias, residual and ReLU of a product.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, CudaStorage, WrapErr};
use candle_core::{CpuStorage, DType, InplaceOp2, InplaceOp3, Layout, Result, Tensor, builder_arg};
use half::f16;

use super::{launch, range, typed};

/// Values that a thread computes at once.
const FOUR: usize = 4;

/// Adds a bias and a residual to a product and applies a ReLU, in place.
struct GpuFinish {
    relu: bool,
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
        let (own, of_bias) = (range(layout)?, range(bias_layout)?);
        let of_onto = onto.map(|(_, layout)| range(layout)).transpose()?;
        let begins = [
            own.start,
            of_bias.start,
            of_onto.as_ref().map_or(0, |of| of.start),
        ];
        // Four values at once, if each group is aligned.
        let is_four = [channels]
            .iter()
            .chain(&begins)
            .all(|at| at.is_multiple_of(FOUR));
        let (name, width) = if is_four {
            ("finish_four", FOUR)
        } else {
            ("finish", 1)
        };
        let func = typed(&device, name, product.dtype())?;
        let bias = bias.as_cuda_slice::<T>()?.slice(of_bias);
        let has_onto = i32::from(onto.is_some());
        // The kernel does not read this argument if there is no residual.
        let onto = match onto {
            Some((onto, layout)) => onto.as_cuda_slice::<T>()?.slice(range(layout)?),
            None => bias.slice(..),
        };
        let slice: &mut CudaSlice<T> = product.as_cuda_slice_mut::<T>()?;
        let mut sums = slice.slice_mut(own);
        let stream = device.cuda_stream();
        let mut builder = stream.launch_builder(&func);
        builder.arg(&mut sums);
        builder.arg(&bias);
        builder.arg(&onto);
        builder_arg!(
            builder,
            (count / width) as u64,
            (channels / width) as i32,
            has_onto,
            i32::from(self.relu)
        );
        // SAFETY: the arguments are those of the kernel; it writes `count` values or groups, and reads
        // the same number of `onto` if there is one, and `channels` of the bias.
        unsafe { builder.launch(launch((count / width) as u64)) }.w()?;
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
