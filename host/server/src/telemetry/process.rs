//! Metrics of the process under their usual names, read from /proc when they are asked for.

use std::fmt::Write;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Appends them. A figure that cannot be read is left out.
pub(super) fn render(text: &mut String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let stat = Stat::of(&stat);
    let descriptors = fs::read_dir("/proc/self/fd").map(|entries| entries.count() as f64);
    let most = getrlimit(Resource::Nofile).current;
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            "counter",
            "Processor time of all threads",
            stat.as_ref().map(Stat::cpu_seconds),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Memory in RAM",
            stat.as_ref().map(Stat::resident_bytes),
        ),
        (
            "process_threads",
            "gauge",
            "Threads",
            stat.as_ref().map(|stat| stat.threads),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open descriptors",
            descriptors.ok(),
        ),
        (
            "process_max_fds",
            "gauge",
            "Descriptors that the process may have",
            most.map(|most| most as f64),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start of the process since 1970",
            stat.as_ref().and_then(Stat::started),
        ),
    ] {
        if let Some(value) = value {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            );
        }
    }
}

/// Fields of /proc/self/stat: clock ticks, pages.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: f64,
    threads: f64,
    started_ticks: f64,
    resident_pages: f64,
}

// === impl Stat ===

impl Stat {
    /// The name of the program, in parentheses, may contain anything; the fields follow it.
    fn of(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Field 3, the state, is the first of them.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            started_ticks: field(22)?,
            resident_pages: field(24)?,
        })
    }

    fn cpu_seconds(&self) -> f64 {
        self.cpu_ticks / clock_ticks_per_second() as f64
    }

    fn resident_bytes(&self) -> f64 {
        self.resident_pages * page_size() as f64
    }

    /// The start counts from the boot of the machine.
    fn started(&self) -> Option<f64> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let up: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let since_boot = self.started_ticks / clock_ticks_per_second() as f64;
        Some(now.as_secs_f64() - up + since_boot)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_fields_follow_the_name() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 18 0 4000 100000 321 1";
        let stat = Stat {
            cpu_ticks: 300.0,
            threads: 18.0,
            started_ticks: 4_000.0,
            resident_pages: 321.0,
        };
        assert_eq!(Stat::of(text), Some(stat));
        assert_eq!(Stat::of("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let mut text = String::new();
        render(&mut text);
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_threads",
            "process_open_fds",
            "process_max_fds",
            "process_start_time_seconds",
        ] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            let value: f64 = line.split_once(' ').unwrap().1.parse().unwrap();
            assert!(value >= 0.0, "{line}");
        }
    }
}
