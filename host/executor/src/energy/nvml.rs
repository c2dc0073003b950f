//! Energy of NVIDIA's GPUs: the driver counts it since it was loaded, on GPUs since Volta.
//!
//! The machine's own library is loaded at run time: a program with the feature `nvml` also runs on
//! machines without a GPU and finds none there. A program without the feature never finds one.

use super::meter::EnergyMeter;

/// The counter of the first GPU. It counts everything that runs on the GPU.
#[derive(Debug)]
pub struct Nvml {
    #[cfg(feature = "nvml")]
    library: nvml_wrapper::Nvml,
}

/// The name in drivers; the name without a number comes with development files only.
#[cfg(feature = "nvml")]
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The first GPU.
#[cfg(feature = "nvml")]
const GPU: u32 = 0;

// === impl Nvml ===

#[cfg(feature = "nvml")]
impl Nvml {
    /// The counter of the first GPU; `None` if the machine lacks the library, a GPU, or its counter.
    pub fn open() -> Option<Self> {
        let named = || {
            let mut builder = nvml_wrapper::Nvml::builder();
            builder.lib_path(LIBRARY.as_ref()).init()
        };
        let library = named().or_else(|_| nvml_wrapper::Nvml::init());
        let library = library
            .inspect_err(|error| tracing::debug!(%error, "the energy of GPUs is not counted"))
            .ok()?;
        let opened = Self { library };
        opened.total_uj().is_some().then_some(opened)
    }
}

#[cfg(feature = "nvml")]
impl EnergyMeter for Nvml {
    fn total_uj(&self) -> Option<u64> {
        let gpu = self.library.device_by_index(GPU).ok()?;
        let total_mj = gpu.total_energy_consumption().ok()?;
        total_mj.checked_mul(1_000)
    }
}

#[cfg(not(feature = "nvml"))]
impl Nvml {
    /// `None`: this program was built without the feature `nvml`.
    pub fn open() -> Option<Self> {
        None
    }
}

#[cfg(not(feature = "nvml"))]
impl EnergyMeter for Nvml {
    fn total_uj(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on a machine without a GPU or without the feature.
    #[test]
    fn a_gpu_counts_upwards() {
        let Some(nvml) = Nvml::open() else {
            eprintln!("not tested: no GPU counts its energy here");
            return;
        };
        let first = nvml.total_uj();
        assert!(first.is_some() && nvml.total_uj() >= first);
    }
}
