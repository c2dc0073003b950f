//! Page-locked memory, in which batches are assembled on their way to a GPU.
//!
//! A GPU copies from such memory on its own, at the speed of the bus, while the processor continues:
//! the next inputs are written while the ones before are on their way. Each number is copied twice,
//! into this memory and out of it.

use std::sync::Arc;

use candle_core::backend::BackendDevice;
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaStream, DevicePtrMut, DeviceRepr, PinnedHostSlice, ValidAsZeroBits, result,
};
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::op::BackpropOp;
use candle_core::{Device, Result, Shape, Storage, Tensor, WithDType};

use crate::values::{Number, Values};

/// Bytes from which on a copy to the GPU begins: smaller copies cost more calls than they save.
const COPY_BYTES: usize = 1 << 20;

/// Memory in which a worker's batches are assembled, for each type as large as its largest batch.
#[derive(Default)]
pub(crate) struct Staging {
    f32s: Option<PinnedBuffer<f32>>,
    i64s: Option<PinnedBuffer<i64>>,
    bytes: Option<PinnedBuffer<u8>>,
}

/// A number that can be uploaded to a GPU.
pub(crate) trait Staged: WithDType + CudaDType + DeviceRepr + ValidAsZeroBits {
    /// The memory for its type.
    fn of(staging: &mut Staging) -> &mut Option<PinnedBuffer<Self>>;
}

/// Page-locked memory that the GPU copies from, on one stream.
pub(crate) struct PinnedBuffer<T> {
    numbers: PinnedHostSlice<T>,
    stream: Arc<CudaStream>,
}

impl Staged for f32 {
    fn of(staging: &mut Staging) -> &mut Option<PinnedBuffer<Self>> {
        &mut staging.f32s
    }
}

impl Staged for i64 {
    fn of(staging: &mut Staging) -> &mut Option<PinnedBuffer<Self>> {
        &mut staging.i64s
    }
}

impl Staged for u8 {
    fn of(staging: &mut Staging) -> &mut Option<PinnedBuffer<Self>> {
        &mut staging.bytes
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // The GPU may still copy from it. An error means that it does not.
        let _ = self.stream.synchronize();
    }
}

// === impl Staging ===

impl Staging {
    /// The pieces, one after another, as a tensor on `device`. The copies may still be under way
    /// when this returns; computations with the tensor wait for them.
    pub(crate) fn upload<T: Staged + Number>(
        &mut self,
        pieces: &[Values<T>],
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let len: usize = pieces.iter().map(Values::len).sum();
        let Device::Cuda(cuda) = device else {
            return Tensor::from_vec(Values::joined(pieces), shape, device);
        };
        if len == 0 || len != shape.elem_count() {
            return Tensor::from_vec(Values::joined(pieces), shape, device);
        }
        // Earlier copies from this memory must have arrived.
        cuda.synchronize()?;
        let pinned = PinnedBuffer::of_len(T::of(self), len, cuda)?;
        // SAFETY: the copies below write every number before it is read.
        let mut onto = unsafe { cuda.alloc::<T>(len)? };
        pinned.send(pieces, &mut onto)?;
        let storage = CudaStorage::wrap_cuda_slice(onto, cuda.clone());
        let storage = Storage::Cuda(storage);
        Ok(Tensor::from_storage(
            storage,
            shape,
            BackpropOp::none(),
            false,
        ))
    }
}

// === impl PinnedBuffer ===

impl<T: Staged + Number> PinnedBuffer<T> {
    /// A buffer of at least `len` numbers: `held`, or a larger one that replaces it.
    fn of_len<'a>(
        held: &'a mut Option<Self>,
        len: usize,
        device: &CudaDevice,
    ) -> Result<&'a mut Self> {
        if held
            .as_ref()
            .is_some_and(|pinned| pinned.numbers.len() < len)
        {
            *held = None;
        }
        if let Some(pinned) = held {
            return Ok(pinned);
        }
        let stream = device.cuda_stream();
        let context: &Arc<CudaContext> = stream.context();
        // SAFETY: every number is written before it is read; all bit patterns are valid numbers.
        let numbers = unsafe { context.alloc_pinned::<T>(len.next_power_of_two()) }.w()?;
        Ok(held.insert(Self { numbers, stream }))
    }

    /// Copies the pieces into this memory and from there to the GPU, in parts, so that both copies
    /// run at the same time.
    fn send(&mut self, pieces: &[Values<T>], onto: &mut impl DevicePtrMut<T>) -> Result<()> {
        let stream = Arc::clone(&self.stream);
        let (address, _waits) = onto.device_ptr_mut(&stream);
        let numbers = self.numbers.as_mut_slice().w()?;
        let (mut filled, mut sent) = (0, 0);
        let last = pieces.len().saturating_sub(1);
        for (i, piece) in pieces.iter().enumerate() {
            let end = filled + piece.len();
            piece.copy_to(&mut numbers[filled..end]);
            filled = end;
            let waiting = &numbers[sent..filled];
            if size_of_val(waiting) < COPY_BYTES && i != last {
                continue;
            }
            let to = address + (sent * size_of::<T>()) as u64;
            // SAFETY: both sides hold `waiting.len()` numbers from there on. This memory is not
            // written again, and not freed, before the stream has passed this copy: `upload` and
            // `drop` wait for the stream.
            unsafe { result::memcpy_htod_async(to, waiting, stream.cu_stream()) }.w()?;
            sent = filled;
        }
        Ok(())
    }
}
