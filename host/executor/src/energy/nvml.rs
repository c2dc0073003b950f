//! Energy of NVIDIA's cards: what the driver counts since it was loaded, of cards since Volta.
//!
//! The library is the machine's own and is looked for when it is asked for: a build with the feature
//! `nvml` runs on machines without a card, and finds none. Without the feature there is never one.

use super::EnergyMeter;

/// The counter of the first card: of everything that runs on it.
#[derive(Debug)]
pub struct Nvml {
    #[cfg(feature = "nvml")]
    library: nvml_wrapper::Nvml,
}

/// As drivers have it; the name without a number comes with development files only.
#[cfg(feature = "nvml")]
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The first card.
#[cfg(feature = "nvml")]
const CARD: u32 = 0;

// === impl Nvml ===

#[cfg(feature = "nvml")]
impl Nvml {
    /// The first card's counter, where the machine has the library, a card, and one that counts.
    pub fn open() -> Option<Self> {
        let named = || {
            let mut builder = nvml_wrapper::Nvml::builder();
            builder.lib_path(LIBRARY.as_ref()).init()
        };
        let library = named().or_else(|_| nvml_wrapper::Nvml::init());
        let library = library
            .inspect_err(|error| tracing::debug!(%error, "no energy of cards is counted"))
            .ok()?;
        let opened = Self { library };
        opened.total_uj().is_some().then_some(opened)
    }
}

#[cfg(feature = "nvml")]
impl EnergyMeter for Nvml {
    fn total_uj(&self) -> Option<u64> {
        let card = self.library.device_by_index(CARD).ok()?;
        let total_mj = card.total_energy_consumption().ok()?;
        total_mj.checked_mul(1_000)
    }
}

#[cfg(not(feature = "nvml"))]
impl Nvml {
    /// None: this build does not look for cards.
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

    /// On a machine without a card, or a build without the feature, there is none; with one the
    /// count goes up.
    #[test]
    fn a_card_counts_upwards_where_there_is_one() {
        let Some(nvml) = Nvml::open() else {
            eprintln!("no card whose energy is counted here");
            return;
        };
        let first = nvml.total_uj();
        assert!(first.is_some() && nvml.total_uj() >= first);
    }
}
