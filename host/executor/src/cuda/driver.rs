//! Calls of the driver, next to those of candle: the GPUs of the machine and their memory.
//!
//! Memory comes from the GPU's pool, which candle's allocations use too. Freed memory stays with
//! this process until a library needs it, so that a batch allocates without the driver.

use std::ffi::c_void;
use std::ptr::from_mut;

use candle_core::Device;
use candle_core::cuda_backend::cudarc::driver::result::{device as gpus, mem_pool};
use candle_core::cuda_backend::cudarc::driver::{CudaContext, DriverError, sys};
use candle_core::cuda_backend::{CudaDevice, DeviceId};
use sys::CUmemPool_attribute as Attribute;

use crate::memory::DeviceMemory;

/// Tells apart the times that a GPU was opened; `None` for the processor.
pub(crate) type Opened = Option<DeviceId>;

/// The number of GPUs that the driver has.
pub(crate) fn count() -> Result<usize, String> {
    let count = CudaContext::device_count().map_err(|error| error.to_string())?;
    usize::try_from(count).map_err(|_| format!("the driver counts {count} GPUs"))
}

/// Opens a GPU with a stream of its own.
pub(crate) fn open(index: usize) -> Result<Device, String> {
    let device = CudaDevice::new_with_stream(index).map_err(|error| error.to_string())?;
    // SAFETY: every tensor of this device is allocated, used and freed on its one stream, in order:
    // only the two threads of the worker that opens it use it, and candle refuses to mix tensors of
    // two opened devices even if they are the same GPU.
    unsafe { device.disable_event_tracking() };
    if let Some(pool) = pool(&device) {
        // Without it a worker is slower, and works.
        if let Err(error) = set(pool, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX) {
            tracing::debug!(%error, "the pool returns freed memory to the driver at once");
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

/// The GPU's name.
pub(crate) fn gpu_name(index: usize) -> Option<String> {
    let index = i32::try_from(index).ok()?;
    // Initialises the driver, which the calls below need.
    if index >= CudaContext::device_count().ok()? {
        return None;
    }
    gpus::get_name(gpus::get(index).ok()?).ok()
}

/// The GPU's memory now.
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

/// Returns the pool's unused memory to the driver, for libraries that allocate from the driver.
/// Waits until the device is idle.
pub(crate) fn trim(device: &Device) {
    let Device::Cuda(cuda) = device else {
        return;
    };
    if let Err(error) = device.synchronize() {
        tracing::debug!(%error, "the device failed before its memory was trimmed");
    }
    if let Some(pool) = pool(cuda) {
        // SAFETY: the pool is the GPU's own and lives as long as the driver.
        let trimmed = unsafe { mem_pool::trim_to(pool, 0) };
        if let Err(error) = trimmed {
            tracing::debug!(%error, "the pool was not trimmed");
        }
    }
}

/// Runs `work` and returns the most bytes of the GPU that this process used at once beyond those
/// before.
pub(crate) fn peak_of<T>(device: &Device, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    const NOW: Attribute = Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    const HIGH: Attribute = Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let pool = match device {
        Device::Cuda(cuda) => pool(cuda),
        _ => None,
    };
    let before = pool.and_then(|pool| {
        device.synchronize().ok()?;
        // Zero is the only value that the driver takes; it starts a new maximum.
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

/// The pool of this GPU's allocations; `None` on GPUs without one.
fn pool(device: &CudaDevice) -> Option<sys::CUmemoryPool> {
    let stream = device.cuda_stream();
    let context = stream.context();
    if !context.has_async_alloc() {
        return None;
    }
    context.bind_to_thread().ok()?;
    // SAFETY: the driver has just given a context of this GPU.
    unsafe { gpus::get_mem_pool(context.cu_device()) }.ok()
}

fn get(pool: sys::CUmemoryPool, attribute: Attribute) -> Option<u64> {
    let mut value = 0u64;
    let at: *mut c_void = from_mut(&mut value).cast();
    // SAFETY: by the driver's manual, the attributes that are read here are 64-bit integers.
    unsafe { mem_pool::get_attribute(pool, attribute, at) }.ok()?;
    Some(value)
}

fn set(pool: sys::CUmemoryPool, attribute: Attribute, mut value: u64) -> Result<(), DriverError> {
    let at: *mut c_void = from_mut(&mut value).cast();
    // SAFETY: as above.
    unsafe { mem_pool::set_attribute(pool, attribute, at) }
}
