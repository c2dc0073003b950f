//! From utilities by seed to ranks.

use switchyard_sim::metrics::PairedEffect;

/// The rule, for the scoreboard.
pub(super) const RULE: &str = "score(p) = 100 / C * sum over the cells c of U(p, c) / max over q of \
     U(q, c). A cell is a workload on a test bed, C their number, U(p, c) the mean utility of an arrival \
     under policy p: accuracy, reduced by the app's penalty for a late answer, 0 without an answer. A \
     cell that a policy cannot run counts 0; a cell that no policy can run is left out, and a policy that \
     can run no cell. Intervals: 95 % over the seeds, Student's t, with the best utility of each cell held fixed.";

/// The rule of the differences, for the scoreboard.
pub(super) const AGAINST: &str = "Difference: from the best other shipped policy, in score or in the \
     cell, seed by seed on the same arrivals; n.s.: not significant, because the 95 % interval contains \
     0. One of twenty comparisons without a difference still looks significant, and the best is chosen on \
     these seeds.";

/// Values by seed, by policy; absent for a policy without a result.
pub(super) type BySeed = Vec<Option<Vec<f64>>>;

/// A policy against the best other baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Against {
    /// Position of the baseline.
    pub(super) baseline: usize,
    pub(super) effect: PairedEffect,
}

/// The position of the largest mean, and that mean; the first of equal ones.
pub(super) fn best(values: &BySeed) -> Option<(usize, f64)> {
    best_among(values, |_| true)
}

/// Each policy's values over the best mean, by seed; 0 without a result. None if no policy has a value
/// above 0.
pub(super) fn relative(cell: &BySeed, seeds: usize) -> Option<Vec<Vec<f64>>> {
    let (_, best) = best(cell).filter(|(_, mean)| *mean > 0.0)?;
    let of_policy = |own: &Option<Vec<f64>>| match own {
        Some(values) => values.iter().map(|value| value / best).collect(),
        None => vec![0.0; seeds],
    };
    Some(cell.iter().map(of_policy).collect())
}

/// Each policy's score by seed.
pub(super) fn scores(cells: &[BySeed], policies: usize, seeds: usize) -> Vec<Vec<f64>> {
    let relative: Vec<_> = cells
        .iter()
        .filter_map(|cell| relative(cell, seeds))
        .collect();
    let count = relative.len().max(1) as f64;
    let of_seed = |policy: usize, seed: usize| {
        let sum: f64 = relative.iter().map(|cell| cell[policy][seed]).sum();
        100.0 * sum / count
    };
    let of_policy = |policy| (0..seeds).map(|seed| of_seed(policy, seed)).collect();
    (0..policies).map(of_policy).collect()
}

/// A policy against the best of the other baselines; none without another one, or with one seed.
pub(super) fn against(values: &BySeed, is_baseline: &[bool], policy: usize) -> Option<Against> {
    let own = values[policy].as_ref()?;
    let (baseline, _) = best_among(values, |other| other != policy && is_baseline[other])?;
    let other = values[baseline].as_ref()?;
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    let effect = PairedEffect::of(&some(other), &some(own))?;
    Some(Against { baseline, effect })
}

/// Positions from the highest mean to the lowest; equal ones keep their order.
pub(super) fn order(scores: &[Vec<f64>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| mean(&scores[b]).total_cmp(&mean(&scores[a])));
    order
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn best_among(values: &BySeed, takes_part: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
    let means = values.iter().enumerate();
    let means = means.filter_map(|(at, own)| Some((at, mean(own.as_ref()?))));
    let means = means.filter(|(at, _)| takes_part(*at));
    means.reduce(|best, other| if other.1 > best.1 { other } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<BySeed> {
        vec![
            vec![Some(vec![0.4, 0.6]), Some(vec![1.0, 1.0]), None],
            vec![
                Some(vec![0.8, 0.8]),
                Some(vec![0.4, 0.4]),
                Some(vec![0.2, 0.2]),
            ],
            // No policy runs here.
            vec![None, None, None],
        ]
    }

    /// 100 / 2 * (0.4 / 1 + 0.8 / 0.8) = 70 for the first policy under the first seed.
    #[test]
    fn scores_by_hand() {
        let scores = scores(&cells(), 3, 2);
        let expected = [[70.0, 80.0], [75.0, 75.0], [12.5, 12.5]];
        for (own, expected) in scores.iter().zip(&expected) {
            for (own, expected) in own.iter().zip(expected) {
                assert!((own - expected).abs() < 1e-9, "{scores:?}");
            }
        }
        assert_eq!(order(&scores), [0, 1, 2], "equal means keep their order");
    }

    #[test]
    fn the_difference_is_from_the_best_other_baseline() {
        let cells = cells();
        let of = |policy, is_baseline| against(&cells[0], is_baseline, policy);
        let own = of(0, &[true, true, true]).map(|own| (own.baseline, own.effect.difference.mean));
        assert_eq!(own, Some((1, -0.5)));
        let best = of(1, &[true, true, true]).map(|own| own.baseline);
        assert_eq!(best, Some(0), "not itself");
        assert_eq!(
            of(1, &[false, true, true]),
            None,
            "the other one has no result"
        );
        assert_eq!(of(2, &[true, true, true]), None);
    }
}
