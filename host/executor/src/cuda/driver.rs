//! What is asked of the driver beside what candle asks of it: which cards there are, and what their
//! memory holds.
//!
//! Memory comes from the card's pool, which candle's allocations use too: what is freed stays with
//! this process until somebody needs it, so that a batch allocates without the driver's help.

use std::ffi::c_void;
use std::ptr::from_mut;

use candle_core::Device;
use candle_core::cuda_backend::cudarc::driver::result::{device as cards, mem_pool};
use candle_core::cuda_backend::cudarc::driver::{CudaContext, DriverError, sys};
use candle_core::cuda_backend::{CudaDevice, DeviceId};
use sys::CUmemPool_attribute as Attribute;

use crate::memory::DeviceMemory;

/// Which opening of a card; none for what is no card.
pub(crate) type Opened = Option<DeviceId>;

/// Cards that the driver has.
pub(crate) fn count() -> Result<usize, String> {
    let count = CudaContext::device_count().map_err(|error| error.to_string())?;
    usize::try_from(count).map_err(|_| format!("the driver counts {count} cards"))
}

/// Opens a card with a stream of its own.
pub(crate) fn open(index: usize) -> Result<Device, String> {
    let device = CudaDevice::new_with_stream(index).map_err(|error| error.to_string())?;
    // SAFETY: every tensor of this device is allocated, used and freed on its one stream, in order:
    // the worker that opens it hands it to nobody but its own two threads, and candle refuses to
    // mix tensors of two devices even when they are the same card.
    unsafe { device.disable_event_tracking() };
    if let Some(pool) = pool(&device) {
        // A worker can do without; it is slower then.
        if let Err(error) = set(pool, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX) {
            tracing::debug!(%error, "freed memory goes back to the driver at once");
        }
    }
    Ok(Device::Cuda(device))
}

pub(crate) fn opened(device: &Device) -> Opened {
    match device {
        Device::Cuda(cuda) => Some(cuda.id()),
        _ => None,
    }
}

/// What the card calls itself.
pub(crate) fn card_name(index: usize) -> Option<String> {
    let index = i32::try_from(index).ok()?;
    // Initialises the driver, without which no card can be asked for.
    if index >= CudaContext::device_count().ok()? {
        return None;
    }
    cards::get_name(cards::get(index).ok()?).ok()
}

/// What the card's memory holds now.
pub(crate) fn memory(device: &Device) -> Option<DeviceMemory> {
    let Device::Cuda(cuda) = device else {
        return None;
    };
    let stream = cuda.cuda_stream();
    let (free, total) = stream.context().mem_get_info().ok()?;
    let idle = pool(cuda).and_then(|pool| {
        let reserved = get(pool, Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        let used = get(pool, Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        Some(reserved.saturating_sub(used))
    });
    Some(DeviceMemory {
        total: total as u64,
        free: free as u64,
        idle: idle.unwrap_or_default(),
    })
}

/// Gives memory that is not in use back to the driver, for the libraries that ask it and not the
/// pool. Waits for what still runs.
pub(crate) fn trim(device: &Device) {
    let Device::Cuda(cuda) = device else {
        return;
    };
    if let Err(error) = device.synchronize() {
        tracing::debug!(%error, "what runs before memory is given back");
    }
    if let Some(pool) = pool(cuda) {
        // SAFETY: the pool is the card's own and lives as long as the driver.
        let trimmed = unsafe { mem_pool::trim_to(pool, 0) };
        if let Err(error) = trimmed {
            tracing::debug!(%error, "memory is not given back");
        }
    }
}

/// Runs `work` and returns the most bytes of the card that were in use at once beyond those before
/// it, of everything in this process.
pub(crate) fn peak_of<T>(device: &Device, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    const NOW: Attribute = Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    const HIGH: Attribute = Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let pool = match device {
        Device::Cuda(cuda) => pool(cuda),
        _ => None,
    };
    let before = pool.and_then(|pool| {
        device.synchronize().ok()?;
        // Zero is the only value it takes, and means "from now on".
        set(pool, HIGH, 0).ok()?;
        get(pool, NOW)
    });
    let done = work();
    let high = pool.and_then(|pool| get(pool, HIGH));
    let peak = high
        .zip(before)
        .map(|(high, before)| high.saturating_sub(before));
    (done, peak)
}

/// The pool that this card's allocations come from; none on cards without.
fn pool(device: &CudaDevice) -> Option<sys::CUmemoryPool> {
    let stream = device.cuda_stream();
    let context = stream.context();
    if !context.has_async_alloc() {
        return None;
    }
    context.bind_to_thread().ok()?;
    // SAFETY: the card is one that the driver has just given a context of.
    unsafe { cards::get_mem_pool(context.cu_device()) }.ok()
}

fn get(pool: sys::CUmemoryPool, attribute: Attribute) -> Option<u64> {
    let mut value = 0u64;
    let at: *mut c_void = from_mut(&mut value).cast();
    // SAFETY: the attributes asked for here are 64-bit integers, as the driver's manual has it.
    unsafe { mem_pool::get_attribute(pool, attribute, at) }.ok()?;
    Some(value)
}

fn set(pool: sys::CUmemoryPool, attribute: Attribute, mut value: u64) -> Result<(), DriverError> {
    let at: *mut c_void = from_mut(&mut value).cast();
    // SAFETY: as above.
    unsafe { mem_pool::set_attribute(pool, attribute, at) }
}
