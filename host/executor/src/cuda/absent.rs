//! A program without the feature `cuda`: it has no GPU.

use candle_core::{Device, Result, Shape, Tensor, WithDType};

use crate::memory::DeviceMemory;
use crate::values::{Number, Values};

/// A location is opened once.
pub(crate) type Opened = ();

/// A number that can be uploaded to a device.
pub(crate) trait Staged: WithDType {}

impl<T: WithDType> Staged for T {}

/// Memory in which batches are assembled for a GPU.
#[derive(Default)]
pub(crate) struct Staging {}

impl Staging {
    /// The pieces, one after another, as a tensor on `device`.
    pub(crate) fn upload<T: Staged + Number>(
        &mut self,
        pieces: &[Values<T>],
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::from_vec(Values::joined(pieces), shape.into(), device)
    }
}

pub(crate) fn count() -> std::result::Result<usize, String> {
    Ok(0)
}

pub(crate) fn open(index: usize) -> std::result::Result<Device, String> {
    Err(format!(
        "GPU {index} in a program that was built without the feature `cuda`"
    ))
}

pub(crate) fn opened(_device: &Device) -> Opened {}

pub(crate) fn gpu_name(_index: usize) -> Option<String> {
    None
}

pub(crate) fn memory(_device: &Device) -> Option<DeviceMemory> {
    None
}

pub(crate) fn trim(_device: &Device) {}

pub(crate) fn peak_of<T>(_device: &Device, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    (work(), None)
}
