//! Counters of energy, and the counter of each kind of worker.

use switchyard_profile::EnergySource;

/// Counts energy.
pub trait EnergyMeter: Send + Sync {
    /// Microjoules since a fixed moment; `None` once the counter cannot be read any more.
    fn total_uj(&self) -> Option<u64>;
}

/// The counters of a machine.
#[derive(Clone, Copy, Default)]
pub struct Meters<'a> {
    /// Counts the processors.
    pub rapl: Option<&'a dyn EnergyMeter>,
    /// Counts the first GPU, on which GPU workers are measured.
    pub nvml: Option<&'a dyn EnergyMeter>,
}

// === impl Meters ===

impl<'a> Meters<'a> {
    /// The counter of a kind of worker, by the kind's [name](crate::device::DeviceName::kind).
    pub fn of_kind(self, kind: &str) -> Option<&'a dyn EnergyMeter> {
        match EnergySource::of_kind(kind)? {
            EnergySource::Rapl => self.rapl,
            EnergySource::Nvml => self.nvml,
            EnergySource::Declared => None,
        }
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
    fn a_kind_is_counted_by_the_counter_of_its_own_processor_or_not_at_all() {
        let (rapl, nvml) = (Constant(1), Constant(2));
        let all = Meters {
            rapl: Some(&rapl),
            nvml: Some(&nvml),
        };
        let read = |meters: Meters<'_>, kind| meters.of_kind(kind).and_then(EnergyMeter::total_uj);
        let kinds = ["cpu-1t", "cpu-16t", "cuda", "metal", "imported"];
        assert_eq!(
            kinds.map(|kind| read(all, kind)),
            [Some(1), Some(1), Some(2), None, None]
        );
        let only_rapl = Meters { nvml: None, ..all };
        assert_eq!(read(only_rapl, "cuda"), None, "never the CPU's counter");
        let only_nvml = Meters { rapl: None, ..all };
        assert_eq!(read(only_nvml, "cpu-1t"), None);
    }
}
