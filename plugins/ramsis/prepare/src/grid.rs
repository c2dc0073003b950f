//! Which slacks are told apart (section 4.2).

use crate::spec::{Grid, Spec};

/// Slacks in microseconds, ascending from 0 to the deadline.
pub(crate) fn slacks(spec: &Spec, queue_max: usize) -> Vec<u64> {
    match spec.grid {
        // Rounded down: a slack never counts as more than it is.
        Grid::Fixed(steps) => (0..=u64::from(steps))
            .map(|step| (u128::from(spec.slo_us) * u128::from(step) / u128::from(steps)) as u64)
            .collect(),
        // What the paper leaves out is needed: 0 for what meets no latency, and the whole
        // deadline for a request that has just come.
        Grid::Models => {
            let batches = spec.models.iter().flat_map(|model| {
                let batches = model.latency_us.iter().take(queue_max);
                batches.copied().filter(|&us| us < spec.slo_us)
            });
            let mut slacks: Vec<u64> = batches.chain([0, spec.slo_us]).collect();
            slacks.sort_unstable();
            slacks.dedup();
            slacks
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Model;

    fn spec(grid: Grid) -> Spec {
        let model = |name: &str, latency_us: &[u64]| Model {
            name: name.to_owned(),
            accuracy: 0.5,
            latency_us: latency_us.to_vec(),
        };
        let models = vec![model("a", &[10, 20, 70]), model("b", &[20, 99, 101])];
        Spec {
            grid,
            ..Spec::new(models, 100, 4)
        }
    }

    #[test]
    fn fixed_steps_are_rounded_down() {
        assert_eq!(slacks(&spec(Grid::Fixed(3)), 3), [0, 33, 66, 100]);
    }

    #[test]
    fn the_models_grid_has_each_latency_that_meets_the_deadline_once() {
        assert_eq!(slacks(&spec(Grid::Models), 3), [0, 10, 20, 70, 99, 100]);
        assert_eq!(slacks(&spec(Grid::Models), 2), [0, 10, 20, 99, 100]);
    }
}
