//! Energy of the processors and cards, where the machine counts it.
//!
//! What a kind of worker draws is counted by whoever counts its processor: [`Rapl`] for the CPU's
//! kinds, [`Nvml`] for those of NVIDIA's cards. Where neither does, an operator's word is taken
//! ([`ProfileFile::declare_power`](crate::profile::ProfileFile::declare_power)), and marked as such.

mod nvml;
mod rapl;

pub use nvml::Nvml;
pub use rapl::{POWERCAP, Rapl};

use crate::profile::EnergySource;

/// Counts energy.
pub trait EnergyMeter: Send + Sync {
    /// Microjoules since some moment; none when it cannot be read any more.
    fn total_uj(&self) -> Option<u64>;
}

/// What counts on a machine.
#[derive(Clone, Copy, Default)]
pub struct Meters<'a> {
    /// The processors.
    pub rapl: Option<&'a dyn EnergyMeter>,
    /// The first card, which is the one that workers compute on.
    pub nvml: Option<&'a dyn EnergyMeter>,
}

// === impl Meters ===

impl<'a> Meters<'a> {
    /// Who counts what a kind of worker draws, by the kind's [name](crate::profile::kind_name).
    pub fn of_kind(self, kind: &str) -> Option<&'a dyn EnergyMeter> {
        match source_of(kind)? {
            EnergySource::Rapl => self.rapl,
            EnergySource::Nvml => self.nvml,
            EnergySource::Declared => None,
        }
    }
}

/// By what the energy of a kind is measured where it is; none where nothing here measures it.
pub(crate) fn source_of(kind: &str) -> Option<EnergySource> {
    match kind.split('-').next() {
        Some("cpu") => Some(EnergySource::Rapl),
        Some("cuda") => Some(EnergySource::Nvml),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Constant(u64);

    impl EnergyMeter for Constant {
        fn total_uj(&self) -> Option<u64> {
            Some(self.0)
        }
    }

    #[test]
    fn a_kind_is_counted_by_its_own_processor_or_not_at_all() {
        let (rapl, nvml) = (Constant(1), Constant(2));
        let all = Meters {
            rapl: Some(&rapl),
            nvml: Some(&nvml),
        };
        let read =
            |meters: Meters<'_>, kind| meters.of_kind(kind).and_then(super::EnergyMeter::total_uj);
        let kinds = ["cpu-1t", "cpu-16t", "cuda", "metal", "imported"];
        assert_eq!(
            kinds.map(|kind| read(all, kind)),
            [Some(1), Some(1), Some(2), None, None]
        );
        let only_rapl = Meters { nvml: None, ..all };
        assert_eq!(read(only_rapl, "cuda"), None, "declared, not the CPU's");
        let only_nvml = Meters { rapl: None, ..all };
        assert_eq!(read(only_nvml, "cpu-1t"), None);
    }
}
