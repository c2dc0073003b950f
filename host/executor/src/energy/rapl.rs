//! Energy of the processors: Intel's and AMD's RAPL counters, which Linux shows below
//! `/sys/class/powercap`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::meter::EnergyMeter;

/// The folder in which Linux shows the counters.
pub const POWERCAP: &str = "/sys/class/powercap";

/// The counters of all processor packages. They count everything that runs on the packages, but no
/// memory and no GPU. They move about once a millisecond.
#[derive(Debug)]
pub struct Rapl {
    packages: Mutex<Vec<ProcessorPackage>>,
}

/// One processor package.
#[derive(Debug)]
struct ProcessorPackage {
    counter: PathBuf,
    /// The counter starts again from 0 after this.
    range_uj: u64,
    last_uj: u64,
    /// Since it was opened.
    total_uj: u64,
}

// === impl Rapl ===

impl Rapl {
    /// The packages below a folder such as [`POWERCAP`]. `None` if there are none, or if only the
    /// superuser may read them.
    pub fn open(folder: &Path) -> Option<Self> {
        let mut zones: Vec<PathBuf> = fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect();
        zones.sort();
        let packages: Vec<ProcessorPackage> = zones
            .iter()
            .filter_map(|zone| ProcessorPackage::open(zone))
            .collect();
        (!packages.is_empty()).then(|| Self {
            packages: Mutex::new(packages),
        })
    }
}

impl EnergyMeter for Rapl {
    fn total_uj(&self) -> Option<u64> {
        // Each package is whole at every point where a panic could strike.
        let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        packages.iter_mut().map(ProcessorPackage::total_uj).sum()
    }
}

// === impl ProcessorPackage ===

impl ProcessorPackage {
    /// A zone of a package. Cores, graphics and memory are zones of their own, inside it or next to
    /// it; another interface may show the same package a second time.
    fn open(zone: &Path) -> Option<Self> {
        let folder = zone.file_name()?.to_str()?;
        let name = fs::read_to_string(zone.join("name")).ok()?;
        if !folder.starts_with("intel-rapl:") || !name.trim().starts_with("package") {
            return None;
        }
        let counter = zone.join("energy_uj");
        Some(Self {
            range_uj: number(&zone.join("max_energy_range_uj")).ok()?,
            last_uj: number(&counter).ok()?,
            total_uj: 0,
            counter,
        })
    }

    fn total_uj(&mut self) -> Option<u64> {
        let now_uj = number(&self.counter).ok()?;
        let more_uj = match now_uj.checked_sub(self.last_uj) {
            Some(more_uj) => more_uj,
            None => (self.range_uj + now_uj).saturating_sub(self.last_uj),
        };
        self.last_uj = now_uj;
        self.total_uj += more_uj;
        Some(self.total_uj)
    }
}

fn number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    text.trim().parse().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn zone(root: &Path, folder: &str, name: &str, energy_uj: u64) -> PathBuf {
        let zone = root.join(folder);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "1000\n").unwrap();
        fs::write(zone.join("energy_uj"), format!("{energy_uj}\n")).unwrap();
        zone
    }

    #[test]
    fn packages_add_up_and_counters_wrap() {
        let root = tempfile::tempdir().unwrap();
        let first = zone(root.path(), "intel-rapl:0", "package-0", 100);
        let second = zone(root.path(), "intel-rapl:1", "package-1", 900);
        let core = zone(root.path(), "intel-rapl:0:0", "core", 5);
        zone(root.path(), "intel-rapl-mmio:0", "package-0", 7);
        let rapl = Rapl::open(root.path()).unwrap();
        assert_eq!(rapl.total_uj(), Some(0));
        fs::write(first.join("energy_uj"), "150").unwrap();
        fs::write(second.join("energy_uj"), "20").unwrap(); // It has passed its range of 1000.
        fs::write(core.join("energy_uj"), "500").unwrap();
        assert_eq!(rapl.total_uj(), Some(50 + 120));
        fs::write(first.join("energy_uj"), "151").unwrap();
        assert_eq!(rapl.total_uj(), Some(171));
        fs::remove_file(first.join("energy_uj")).unwrap();
        assert_eq!(rapl.total_uj(), None);
    }

    #[test]
    fn a_machine_that_counts_nothing_has_no_meter() {
        let root = tempfile::tempdir().unwrap();
        assert!(Rapl::open(&root.path().join("missing")).is_none());
        zone(root.path(), "intel-rapl:0", "psys", 1);
        assert!(Rapl::open(root.path()).is_none());
    }
}
