//! What a worker computes on: named, opened, told apart.

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
    /// One of NVIDIA's cards, counted from 0 as the driver counts them.
    Cuda(usize),
}

/// Why a device cannot be computed on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// This program cannot use it.
    #[error(
        "`{device}`: this program was built without the feature `cuda`; `cargo xtask cuda` builds \
         one with it"
    )]
    NotBuilt {
        /// Which.
        device: DeviceName,
    },
    /// The machine has no card that a program could use.
    #[error("`{device}`: no card answers on this machine: {reason}")]
    NoCards {
        /// Which was asked for.
        device: DeviceName,
        /// What the driver said.
        reason: String,
    },
    /// The machine has fewer cards.
    #[error("`{device}`: does not exist, this machine has {}", cards(*.count))]
    NoSuchCard {
        /// Which was asked for.
        device: DeviceName,
        /// Cards there are.
        count: usize,
    },
    /// The card is there and cannot be opened.
    #[error("`{device}`: {reason}")]
    Open {
        /// Which.
        device: DeviceName,
        /// What the driver said.
        reason: String,
    },
}

/// Whose tensors work together: those of one device as it was opened once. Two workers on a card
/// each have a stream of their own, and candle refuses to mix their tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    location: DeviceLocation,
    opened: cuda::Opened,
}

fn cards(count: usize) -> String {
    match count {
        0 => "no card".to_owned(),
        1 => "one card, `cuda:0`".to_owned(),
        more => format!("{more} cards, `cuda:0` to `cuda:{}`", more - 1),
    }
}

// === impl DeviceName ===

impl DeviceName {
    /// Whether this program can compute on such a device, wherever there is one.
    ///
    /// # Errors
    /// It was built without the feature.
    pub fn check_built(self) -> Result<(), DeviceError> {
        match self {
            Self::Cuda(_) if !cfg!(feature = "cuda") => Err(DeviceError::NotBuilt { device: self }),
            _ => Ok(()),
        }
    }

    /// Opens it, for one worker: a card with a stream of its own.
    ///
    /// # Errors
    /// This program, or this machine, has none.
    pub fn open(self) -> Result<Device, DeviceError> {
        self.check_built()?;
        let Self::Cuda(index) = self else {
            return Ok(Device::Cpu);
        };
        let count = cuda::count().map_err(|reason| DeviceError::NoCards {
            device: self,
            reason,
        })?;
        self.check_exists(count)?;
        cuda::open(index).map_err(|reason| DeviceError::Open {
            device: self,
            reason,
        })
    }

    /// The kind of worker that computes on it with these threads: `cpu-2t`, `cuda-h200`. Where the
    /// card does not tell what it is, `cuda`.
    pub fn kind(self, threads: usize) -> String {
        match self {
            Self::Cpu => format!("cpu-{threads}t"),
            Self::Cuda(index) => match cuda::card_name(index) {
                Some(name) => card_kind(&name),
                None => "cuda".to_owned(),
            },
        }
    }

    fn check_exists(self, count: usize) -> Result<(), DeviceError> {
        match self {
            Self::Cuda(index) if index >= count => Err(DeviceError::NoSuchCard {
                device: self,
                count,
            }),
            _ => Ok(()),
        }
    }
}

/// `NVIDIA GeForce RTX 4090` is `cuda-geforce-rtx-4090`.
fn card_kind(name: &str) -> String {
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
        index
            .map(Self::Cuda)
            .ok_or_else(|| format!("no device is called `{text}`; there are `cpu` and `cuda:0` on"))
    }
}

// === impl Place ===

impl Place {
    /// Where this device's tensors are.
    pub fn of(device: &Device) -> Self {
        Self {
            location: device.location(),
            opened: cuda::opened(device),
        }
    }
}

/// What the device's memory holds now; none for what has no memory of its own.
pub fn memory(device: &Device) -> Option<DeviceMemory> {
    cuda::memory(device)
}

/// Reads an opened device's memory.
pub(crate) struct OfDevice(pub(crate) Device);

impl MemoryGauge for OfDevice {
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
            let reason = format!("no device is called `{text}`; there are `cpu` and `cuda:0` on");
            assert_eq!(refused, Err(reason));
        }
    }

    #[test]
    fn a_card_that_is_not_there_is_named_with_those_that_are() {
        let said = |index, count| {
            let checked = DeviceName::Cuda(index).check_exists(count);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(said(0, 1), Ok(()));
        assert_eq!(said(7, 8), Ok(()));
        let refused = |text: &str| Err(text.to_owned());
        assert_eq!(
            said(0, 0),
            refused("`cuda:0`: does not exist, this machine has no card")
        );
        assert_eq!(
            said(1, 1),
            refused("`cuda:1`: does not exist, this machine has one card, `cuda:0`")
        );
        assert_eq!(
            said(8, 8),
            refused("`cuda:8`: does not exist, this machine has 8 cards, `cuda:0` to `cuda:7`")
        );
    }

    #[test]
    fn a_kind_says_which_card() {
        assert_eq!(card_kind("NVIDIA H200"), "cuda-h200");
        assert_eq!(card_kind("NVIDIA A100-SXM4-80GB"), "cuda-a100-sxm4-80gb");
        assert_eq!(DeviceName::Cpu.kind(2), "cpu-2t");
    }

    /// Whatever the machine and the build have: an answer or a reason, and no panic.
    #[test]
    fn what_cannot_be_opened_says_why() {
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
    fn the_processor_is_one_place() {
        assert_eq!(Place::of(&Device::Cpu), Place::of(&Device::Cpu));
        assert_eq!(memory(&Device::Cpu), None);
    }
}
