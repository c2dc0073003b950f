//! Counters of energy, and the counter of each kind of worker.

use switchyard_profile::EnergySource;

use crate::device::DeviceName;

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
    /// Counts the first GPU, `cuda:0`.
    pub nvml: Option<&'a dyn EnergyMeter>,
}

// === impl Meters ===

impl<'a> Meters<'a> {
    /// The counter of a kind of worker that is measured on `device`, by the kind's
    /// [name](DeviceName::kind). `None` on any GPU but the first.
    pub fn of_kind(self, kind: &str, device: DeviceName) -> Option<&'a dyn EnergyMeter> {
        match (EnergySource::of_kind(kind)?, device) {
            (EnergySource::Rapl, _) => self.rapl,
            (EnergySource::Nvml, DeviceName::Cuda(0)) => self.nvml,
            (EnergySource::Nvml, _) => {
                if self.nvml.is_some() {
                    tracing::info!(
                        kind,
                        %device,
                        "its energy is not measured: only that of `cuda:0` is counted"
                    );
                }
                None
            }
            (EnergySource::Declared, _) => None,
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
        let read = |meters: Meters<'_>, kind: &str| {
            let device = match kind {
                "cuda" => DeviceName::Cuda(0),
                _ => DeviceName::Cpu,
            };
            let meter = meters.of_kind(kind, device);
            meter.and_then(EnergyMeter::total_uj)
        };
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

    #[test]
    fn a_kind_on_another_gpu_than_the_first_is_not_counted() {
        let nvml = Constant(2);
        let meters = Meters {
            rapl: None,
            nvml: Some(&nvml),
        };
        let is_counted = |device| meters.of_kind("cuda-h200", device).is_some();
        assert!(is_counted(DeviceName::Cuda(0)));
        assert!(!is_counted(DeviceName::Cuda(1)));
        assert!(!is_counted(DeviceName::Cpu));
    }
}
