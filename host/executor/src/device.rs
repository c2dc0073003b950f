//! The devices that workers compute on: their names, opening them, telling them apart.

use std::fmt;
use std::str::FromStr;

use candle_core::{Device, DeviceLocation};
use thiserror::Error;

use crate::cuda;
use crate::memory::{DeviceMemory, MemoryGauge};

/// A device by its name: `cpu`, `cuda:0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// The processor.
    #[default]
    Cpu,
    /// One of NVIDIA's GPUs, counted from 0 as the driver counts them.
    Cuda(usize),
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// This program cannot use it.
    #[error(
        "`{device}`: this program was built without the feature `cuda`; `cargo xtask cuda` builds \
         one with it"
    )]
    NotBuilt {
        /// The device.
        device: DeviceName,
    },
    /// The driver is not usable, so no GPU is.
    #[error("`{device}`: no GPU answers on this machine: {reason}")]
    NoDriver {
        /// The device.
        device: DeviceName,
        /// The driver's reason.
        reason: String,
    },
    /// The machine has fewer GPUs.
    #[error("`{device}`: does not exist, this machine has {}", gpus(*.count))]
    NoSuchGpu {
        /// The device.
        device: DeviceName,
        /// GPUs of the machine.
        count: usize,
    },
    /// The GPU exists and cannot be opened.
    #[error("`{device}`: {reason}")]
    Open {
        /// The device.
        device: DeviceName,
        /// The driver's reason.
        reason: String,
    },
}

/// Tells opened devices apart: only tensors of one opened device work together. Two workers on a
/// GPU have opened it twice, each with a stream of its own, and candle refuses to mix their tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenedDevice {
    location: DeviceLocation,
    opened: cuda::Opened,
}

fn gpus(count: usize) -> String {
    match count {
        0 => "no GPU".to_owned(),
        1 => "one GPU, `cuda:0`".to_owned(),
        more => format!("{more} GPUs, `cuda:0` to `cuda:{}`", more - 1),
    }
}

// === impl DeviceName ===

impl DeviceName {
    /// Checks that this program was built for such a device.
    ///
    /// # Errors
    /// It was built without the feature `cuda`.
    pub fn check_built(self) -> Result<(), DeviceError> {
        match self {
            Self::Cuda(_) if !cfg!(feature = "cuda") => Err(DeviceError::NotBuilt { device: self }),
            _ => Ok(()),
        }
    }

    /// Opens it for one worker: a GPU with a stream of its own.
    ///
    /// # Errors
    /// This program cannot use it, or the machine lacks it.
    pub fn open(self) -> Result<Device, DeviceError> {
        self.check_built()?;
        let Self::Cuda(index) = self else {
            return Ok(Device::Cpu);
        };
        let count = cuda::count().map_err(|reason| DeviceError::NoDriver {
            device: self,
            reason,
        })?;
        self.check_exists(count)?;
        cuda::open(index).map_err(|reason| DeviceError::Open {
            device: self,
            reason,
        })
    }

    /// The kind of worker that computes on it with these threads: `cpu-2t`, `cuda-h200`; `cuda` if
    /// the driver does not tell the GPU's name.
    pub fn kind(self, threads: usize) -> String {
        match self {
            Self::Cpu => format!("cpu-{threads}t"),
            Self::Cuda(index) => match cuda::gpu_name(index) {
                Some(name) => gpu_kind(&name),
                None => "cuda".to_owned(),
            },
        }
    }

    fn check_exists(self, count: usize) -> Result<(), DeviceError> {
        match self {
            Self::Cuda(index) if index >= count => Err(DeviceError::NoSuchGpu {
                device: self,
                count,
            }),
            _ => Ok(()),
        }
    }
}

/// `NVIDIA GeForce RTX 4090` is `cuda-geforce-rtx-4090`.
fn gpu_kind(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .filter(|word| word != "nvidia");
    std::iter::once("cuda".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join("-")
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let index = match text.split_once(':') {
            None if text == "cpu" => return Ok(Self::Cpu),
            None if text == "cuda" => Some(0),
            Some(("cuda", index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => {
                index.parse().ok()
            }
            _ => None,
        };
        index.map(Self::Cuda).ok_or_else(|| {
            format!("`{text}` is not a device; devices are `cpu` and `cuda:N`, such as `cuda:0`")
        })
    }
}

// === impl OpenedDevice ===

impl OpenedDevice {
    /// Which opened device this is.
    pub fn of(device: &Device) -> Self {
        Self {
            location: device.location(),
            opened: cuda::opened(device),
        }
    }
}

/// The device's memory now; `None` for the processor, which has no memory of its own.
pub fn memory(device: &Device) -> Option<DeviceMemory> {
    cuda::memory(device)
}

/// Reads an opened device's memory.
pub(crate) struct DeviceGauge(pub(crate) Device);

impl MemoryGauge for DeviceGauge {
    fn read(&self) -> Option<DeviceMemory> {
        memory(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, name) in [
            ("cpu", DeviceName::Cpu),
            ("cuda:0", DeviceName::Cuda(0)),
            ("cuda:12", DeviceName::Cuda(12)),
        ] {
            assert_eq!(text.parse(), Ok(name));
            assert_eq!(name.to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceName::Cuda(0)));
        for text in [
            "", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cpu:0", "CUDA:0",
        ] {
            let refused = text.parse::<DeviceName>();
            let reason = format!(
                "`{text}` is not a device; devices are `cpu` and `cuda:N`, such as `cuda:0`"
            );
            assert_eq!(refused, Err(reason));
        }
    }

    #[test]
    fn a_missing_gpu_is_named_with_the_gpus_of_the_machine() {
        let checked = |index, count| {
            let found = DeviceName::Cuda(index).check_exists(count);
            found.map_err(|error| error.to_string())
        };
        assert_eq!(checked(0, 1), Ok(()));
        assert_eq!(checked(7, 8), Ok(()));
        let refused = |text: &str| Err(text.to_owned());
        assert_eq!(
            checked(0, 0),
            refused("`cuda:0`: does not exist, this machine has no GPU")
        );
        assert_eq!(
            checked(1, 1),
            refused("`cuda:1`: does not exist, this machine has one GPU, `cuda:0`")
        );
        assert_eq!(
            checked(8, 8),
            refused("`cuda:8`: does not exist, this machine has 8 GPUs, `cuda:0` to `cuda:7`")
        );
    }

    #[test]
    fn a_kind_names_its_gpu() {
        assert_eq!(gpu_kind("NVIDIA H200"), "cuda-h200");
        assert_eq!(gpu_kind("NVIDIA A100-SXM4-80GB"), "cuda-a100-sxm4-80gb");
        assert_eq!(DeviceName::Cpu.kind(2), "cpu-2t");
    }

    /// On any machine and in any build: a reason, and no panic.
    #[test]
    fn a_device_that_cannot_be_opened_has_a_reason() {
        assert!(DeviceName::Cpu.open().is_ok_and(|device| device.is_cpu()));
        let far = DeviceName::Cuda(4_000).open();
        let reason = far.map(|_| ()).map_err(|error| error.to_string());
        assert!(
            reason
                .as_ref()
                .is_err_and(|reason| reason.starts_with("`cuda:4000`: ")),
            "{reason:?}"
        );
        if !cfg!(feature = "cuda") {
            let device = DeviceName::Cuda(0);
            assert_eq!(device.open().err(), Some(DeviceError::NotBuilt { device }));
        }
    }

    #[test]
    fn the_processor_is_one_device() {
        assert_eq!(
            OpenedDevice::of(&Device::Cpu),
            OpenedDevice::of(&Device::Cpu)
        );
        assert_eq!(memory(&Device::Cpu), None);
    }
}
