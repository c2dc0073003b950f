//! The slack grid (section 4.2).

use crate::model::Model;

/// The slack grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// FLD: this number of equal steps from 0 to the deadline (section 4.2.2).
    Fixed(u32),
    /// MD: the latencies that meet the deadline (section 4.2.1).
    Models,
}

/// Slacks in microseconds, ascending from 0 to the deadline.
pub(crate) fn slacks(grid: Grid, slo_us: u64, models: &[Model], queue_max: usize) -> Vec<u64> {
    match grid {
        // Rounded down, so that no slack is overestimated.
        Grid::Fixed(steps) => (0..=u64::from(steps))
            .map(|step| (u128::from(slo_us) * u128::from(step) / u128::from(steps)) as u64)
            .collect(),
        // The paper omits two needed slacks: 0 for requests that meet no latency, and the deadline
        // for a request that has just arrived.
        Grid::Models => {
            let batches = models.iter().flat_map(|model| {
                let batches = model.latency_us.iter().take(queue_max);
                batches.copied().filter(|&us| us < slo_us)
            });
            let mut slacks: Vec<u64> = batches.chain([0, slo_us]).collect();
            slacks.sort_unstable();
            slacks.dedup();
            slacks
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slacks_of(grid: Grid, queue_max: usize) -> Vec<u64> {
        let model = |name: &str, latency_us: &[u64]| Model {
            name: name.to_owned(),
            accuracy: 0.5,
            latency_us: latency_us.to_vec(),
        };
        let models = [model("a", &[10, 20, 70]), model("b", &[20, 99, 101])];
        slacks(grid, 100, &models, queue_max)
    }

    #[test]
    fn fixed_steps_are_rounded_down() {
        assert_eq!(slacks_of(Grid::Fixed(3), 3), [0, 33, 66, 100]);
    }

    #[test]
    fn the_models_grid_has_each_latency_that_meets_the_deadline_once() {
        assert_eq!(slacks_of(Grid::Models, 3), [0, 10, 20, 70, 99, 100]);
        assert_eq!(slacks_of(Grid::Models, 2), [0, 10, 20, 99, 100]);
    }
}
