//! Whether the cost of slicing is larger than the noise of its measurement.

use switchyard_profile::{LatencyCell, SlicingCell};

/// Follows a cost in tables that is within the noise.
pub(super) const NOISE_MARK: &str = "~";

/// Whether the sliced run was not slower than the whole run by more than the whole run varies, from
/// its median to its 95th percentile.
pub(super) fn is_noise(latencies: &[LatencyCell], cell: &SlicingCell) -> bool {
    let whole = latencies.iter().filter(|latency| {
        latency.is_of(&cell.kind, &cell.app, &cell.variant)
            && latency.from_stage == 0
            && latency.exit.is_some()
            && latency.batch == cell.batch
    });
    let whole = whole.max_by_key(|latency| latency.to_stage);
    let spread_us = whole.map_or(0, |latency| latency.p95_us.saturating_sub(latency.p50_us));
    cell.sliced_us.saturating_sub(cell.whole_us) <= spread_us
}

/// [`NOISE_MARK`] where it applies.
pub(super) fn noise_mark(is_noise: bool) -> &'static str {
    match is_noise {
        true => NOISE_MARK,
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slicing(sliced_us: u64) -> SlicingCell {
        SlicingCell {
            kind: "cpu-1t".to_owned(),
            app: "heart".to_owned(),
            variant: "cnn".to_owned(),
            batch: 1,
            cuts: 2,
            whole_us: 100,
            sliced_us,
            ratio: 1.0,
            cut_us: 0.0,
        }
    }

    fn latency(to_stage: u32, p95_us: u64) -> LatencyCell {
        LatencyCell {
            kind: "cpu-1t".to_owned(),
            app: "heart".to_owned(),
            variant: "cnn".to_owned(),
            from_stage: 0,
            to_stage,
            exit: Some("final".to_owned()),
            batch: 1,
            samples: 30,
            mean_us: None,
            p50_us: 100,
            p95_us,
            p99_us: p95_us,
            energy_uj: None,
        }
    }

    #[test]
    fn a_cost_counts_where_it_exceeds_the_spread_of_the_whole_run() {
        let latencies = [latency(1, 500), latency(3, 120)];
        for (sliced_us, noise) in [(80, true), (100, true), (120, true), (121, false)] {
            let found = is_noise(&latencies, &slicing(sliced_us));
            assert_eq!(found, noise, "{sliced_us}");
        }
        assert!(is_noise(&[], &slicing(90)) && !is_noise(&[], &slicing(101)));
    }
}
