//! Energy of kinds of workers: the counter that counts it, and power that an operator declares.

use crate::schema::{EnergyCell, EnergySource, ProfileFile};

// === impl EnergySource ===

impl EnergySource {
    /// The counter that counts the energy of a kind of worker, by the kind's name: processors for
    /// `cpu-2t`, GPUs for `cuda-h200`. `None` for other kinds: nothing counts them.
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind.split('-').next() {
            Some("cpu") => Some(Self::Rapl),
            Some("cuda") => Some(Self::Nvml),
            _ => None,
        }
    }
}

// === impl ProfileFile ===

impl ProfileFile {
    /// Sets the power of a kind, in watts, as its operator states it: each of its batches takes
    /// `power_w` times its mean latency. Measured energy is kept.
    pub fn declare_power(&mut self, kind: &str, power_w: f64) {
        let known = self.energy.iter().find(|cell| cell.kind == kind);
        if known.is_some_and(|cell| cell.source != EnergySource::Declared) {
            return;
        }
        self.energy.retain(|cell| cell.kind != kind);
        self.energy.push(EnergyCell {
            kind: kind.to_owned(),
            source: EnergySource::Declared,
            power_w,
        });
        for cell in self.latencies.iter_mut().filter(|cell| cell.kind == kind) {
            let mean_us = cell.mean_us.unwrap_or(cell.p50_us);
            cell.energy_uj = Some((power_w * mean_us as f64).round() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter_or_none() {
        let source = EnergySource::of_kind;
        assert_eq!(source("cpu-16t"), Some(EnergySource::Rapl));
        assert_eq!(source("cuda"), Some(EnergySource::Nvml));
        assert_eq!(source("cuda-h200"), Some(EnergySource::Nvml));
        assert_eq!(source("imported"), None);
    }
}
