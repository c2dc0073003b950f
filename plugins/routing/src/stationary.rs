//! SA, the stationary approximation: per phase of the workload, the fixed shares with the largest
//! heavy share that keeps late requests below `late_max`.

use libm::log;

use crate::fleet::Fleet;
use crate::md1::waits_longer;
use crate::settings::RoutingSettings;

/// Number of steps in which heavy shares are tried.
const STEPS: u32 = 1_000;

/// The shares of each phase.
#[derive(Debug)]
pub(crate) struct PhaseShares(Vec<PhaseShare>);

/// The shares of one phase.
#[derive(Debug)]
struct PhaseShare {
    /// Arrivals per second.
    rate: f64,
    /// Per instance.
    shares: Vec<f64>,
}

/// Instances that split a share evenly, each an M/D/1 queue.
struct InstanceGroup {
    at: Vec<usize>,
    /// Their longest service time, in seconds.
    service_s: f64,
}

// === impl PhaseShares ===

impl PhaseShares {
    pub(crate) fn new(settings: &RoutingSettings, fleet: &Fleet, slo_us: u64) -> Self {
        let groups = [
            InstanceGroup::of(fleet, true),
            InstanceGroup::of(fleet, false),
        ];
        let slo_s = slo_us as f64 / 1e6;
        let phase = |&rate: &f64| {
            let heavy = heavy_share(&groups, rate, slo_s, settings.late_max);
            let mut shares = vec![0.0; fleet.len()];
            for (group, share) in groups.iter().zip([heavy, 1.0 - heavy]) {
                for &at in &group.at {
                    shares[at] = share / group.at.len() as f64;
                }
            }
            PhaseShare { rate, shares }
        };
        Self(settings.rates.iter().map(phase).collect())
    }

    /// The shares of the most likely phase given the arrivals per second: for Poisson arrivals the
    /// largest count * ln(rate) - rate.
    pub(crate) fn shares(&self, arrival_rate: f64) -> &[f64] {
        let likelihood = |phase: &PhaseShare| arrival_rate * log(phase.rate) - phase.rate;
        let likeliest = self
            .0
            .iter()
            .max_by(|a, b| likelihood(a).total_cmp(&likelihood(b)));
        likeliest.map_or(&[], |phase| &phase.shares)
    }
}

// === impl InstanceGroup ===

impl InstanceGroup {
    fn of(fleet: &Fleet, heavy: bool) -> Self {
        let at = fleet.group(heavy);
        let longest_us = at.iter().map(|&at| fleet.alone_us(at)).max();
        Self {
            at,
            service_s: longest_us.unwrap_or(0) as f64 / 1e6,
        }
    }

    /// The late share of the group's requests, at `rate` requests per second.
    fn late(&self, rate: f64, slo_s: f64) -> f64 {
        if self.at.is_empty() || self.service_s <= 0.0 {
            return 0.0;
        }
        let load = rate / self.at.len() as f64 * self.service_s;
        waits_longer(load, (slo_s - self.service_s) / self.service_s)
    }
}

/// The largest share of the heavy group with at most `late_max` late requests; if there is none,
/// the share with the fewest.
fn heavy_share(groups: &[InstanceGroup; 2], rate: f64, slo_s: f64, late_max: f64) -> f64 {
    let [heavy, light] = groups;
    match (heavy.at.is_empty(), light.at.is_empty()) {
        (true, _) => return 0.0,
        (false, true) => return 1.0,
        (false, false) => {}
    }
    let mut best = (f64::INFINITY, 0.0);
    for step in (0..=STEPS).rev() {
        let share = f64::from(step) / f64::from(STEPS);
        let late = share * heavy.late(rate * share, slo_s)
            + (1.0 - share) * light.late(rate * (1.0 - share), slo_s);
        if late <= late_max {
            return share;
        }
        if late < best.0 {
            best = (late, share);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(heavy_ms: f64, light_ms: f64) -> [InstanceGroup; 2] {
        let group = |at: [usize; 2], ms: f64| InstanceGroup {
            at: at.to_vec(),
            service_s: ms / 1e3,
        };
        [group([0, 1], heavy_ms), group([2, 3], light_ms)]
    }

    #[test]
    fn a_quiet_phase_is_all_heavy() {
        // Load 0.21 each: a wait of 6 services is negligible.
        let share = heavy_share(&groups(42.8, 12.0), 10.0, 0.3, 0.02);
        assert!((share - 1.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn a_burst_takes_the_heavy_share_that_the_tail_allows() {
        // At a share of 0.213 each heavy instance has a load of 0.82; 9 % of its requests wait more
        // than 257 ms: 0.213 * 0.09 = 0.02.
        let share = heavy_share(&groups(42.8, 12.0), 180.0, 0.3, 0.02);
        assert!((0.20..0.22).contains(&share), "{share}");
        let tighter = heavy_share(&groups(42.8, 12.0), 180.0, 0.15, 0.02);
        assert!(tighter < share, "{tighter}");
    }

    #[test]
    fn without_a_feasible_share_the_fewest_are_late() {
        // 500/s: the light instances serve in time up to a load of 0.307 * 250 * 0.012 = 0.92; the
        // rest is late on the heavy instances.
        let share = heavy_share(&groups(42.8, 12.0), 500.0, 0.3, 0.02);
        assert!((share - 0.693).abs() < 0.002, "{share}");
    }
}
