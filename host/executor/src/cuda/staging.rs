//! Page-locked memory, in which batches are put together on their way to a card.
//!
//! A card copies from such memory by itself, at the speed of the bus and while the processor goes on:
//! the next inputs are put in their place while those before are on their way. Each number is copied
//! twice on the whole, into this memory and out of it.

use std::sync::Arc;

use candle_core::backend::BackendDevice;
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaStream, DevicePtrMut, DeviceRepr, PinnedHostSlice, ValidAsZeroBits, result,
};
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::op::BackpropOp;
use candle_core::{Device, Result, Shape, Storage, Tensor, WithDType};

use crate::values::{Number, Values};

/// Bytes from which on a copy to the card is begun: smaller ones cost more calls than they save.
const COPY_BYTES: usize = 1 << 20;

/// Memory in which a worker's batches are put together, of each type as large as its largest batch.
#[derive(Default)]
pub(crate) struct Staging {
    f32s: Option<Pinned<f32>>,
    i64s: Option<Pinned<i64>>,
    bytes: Option<Pinned<u8>>,
}

/// What goes to a card.
pub(crate) trait Staged: WithDType + CudaDType + DeviceRepr + ValidAsZeroBits {
    /// The memory for its type.
    fn of(staging: &mut Staging) -> &mut Option<Pinned<Self>>;
}

/// Memory that the card copies from, on one stream.
pub(crate) struct Pinned<T> {
    numbers: PinnedHostSlice<T>,
    stream: Arc<CudaStream>,
}

impl Staged for f32 {
    fn of(staging: &mut Staging) -> &mut Option<Pinned<Self>> {
        &mut staging.f32s
    }
}

impl Staged for i64 {
    fn of(staging: &mut Staging) -> &mut Option<Pinned<Self>> {
        &mut staging.i64s
    }
}

impl Staged for u8 {
    fn of(staging: &mut Staging) -> &mut Option<Pinned<Self>> {
        &mut staging.bytes
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // The card may still be copying from it. An error means that it does not any more.
        let _ = self.stream.synchronize();
    }
}

// === impl Staging ===

impl Staging {
    /// The pieces, one after another, as a tensor on `device`. The copies may still be under way
    /// when this returns; what is computed with the tensor waits for them.
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
        // What was copied from this memory before must have arrived.
        cuda.synchronize()?;
        let pinned = Pinned::of_len(T::of(self), len, cuda)?;
        // SAFETY: every number is written by the copies below before anything reads it.
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

// === impl Pinned ===

impl<T: Staged + Number> Pinned<T> {
    /// At least `len` numbers: those of `held`, or more in their place.
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
        // SAFETY: numbers are written before they are read; all bit patterns are numbers.
        let numbers = unsafe { context.alloc_pinned::<T>(len.next_power_of_two()) }.w()?;
        Ok(held.insert(Self { numbers, stream }))
    }

    /// Copies the pieces into this memory and from it to the card, in parts, so that the two go on
    /// at the same time.
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
            // written again, and not freed, before the stream has come this far: `upload` and
            // `drop` wait for it.
            unsafe { result::memcpy_htod_async(to, waiting, stream.cu_stream()) }.w()?;
            sent = filled;
        }
        Ok(())
    }
}
