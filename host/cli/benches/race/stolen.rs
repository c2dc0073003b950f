//! Steal time: a virtual machine was ready to run, and its host ran another one.

/// So far, on all cores, in clock ticks; none where the system does not tell.
#[derive(Clone, Copy)]
pub(crate) struct Stolen {
    stolen: u64,
    all: u64,
}

// === impl Stolen ===

impl Stolen {
    pub(crate) fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let ticks: Vec<u64> = stat
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .map_while(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        Some(Self {
            stolen: *ticks.get(7)?,
            all: ticks.iter().take(8).sum(),
        })
    }

    /// The part that was stolen since `before`, from 0 to 1.
    pub(crate) fn since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}
