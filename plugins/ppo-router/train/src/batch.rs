//! The samples of an update: joined trajectories, normalised advantages, thinned slots.

use switchyard_sim::random::Stream;

use crate::mlp::{CHUNK, Mlp, PassBuffers, SparseRows};
use crate::rollout::{Trajectory, advantages};
use crate::settings::TrainSettings;
use crate::stats::UpdateStats;

/// The samples of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateBatch {
    pub(crate) rows: SparseRows,
    pub(crate) critic_rows: SparseRows,
    /// Indices of the rows of slots: without those after the last.
    pub(crate) slots: Vec<u32>,
    /// Indices of the used slots; `weights` has their weights, with a mean of 1.
    pub(crate) kept: Vec<u32>,
    pub(crate) weights: Vec<f32>,
    pub(crate) log_shares: Vec<f32>,
    pub(crate) pairs: Vec<u8>,
    pub(crate) log_probabilities: Vec<f32>,
    pub(crate) advantages: Vec<f32>,
    pub(crate) targets: Vec<f32>,
}

// === impl UpdateBatch ===

impl UpdateBatch {
    /// Joins trajectories and estimates advantages.
    pub(crate) fn of(
        trajectories: &[Trajectory],
        value: &Mlp,
        settings: &TrainSettings,
        is_few: &[bool],
    ) -> (Self, UpdateStats) {
        let (mut batch, mut stats) = (Self::default(), UpdateStats::default());
        let mut pass = PassBuffers::default();
        let (mut errors, mut squares, mut sum) = (0.0, 0.0, 0.0);
        for one in trajectories {
            let first = batch.rows.len() as u32;
            let picks: Vec<u32> = (0..one.rows.len() as u32).collect();
            let mut values = Vec::with_capacity(picks.len());
            for picks in picks.chunks(CHUNK) {
                values.extend_from_slice(value.forward(&one.critic_rows, picks, &mut pass));
            }
            let begin = batch.advantages.len();
            let (gamma, lambda) = (settings.gamma, settings.lambda);
            advantages(&one.rewards, &values, gamma, lambda, &mut batch.advantages);
            for (advantage, value) in batch.advantages[begin..].iter().zip(&values) {
                let target = f64::from(advantage + value);
                errors += f64::from(*advantage).powi(2);
                squares += target * target;
                sum += target;
                batch.targets.push(advantage + value);
            }
            batch.slots.extend(first..first + one.rewards.len() as u32);
            batch.rows.extend(&one.rows);
            batch.critic_rows.extend(&one.critic_rows);
            batch.log_shares.extend_from_slice(&one.log_shares);
            batch.pairs.extend_from_slice(&one.pairs);
            batch
                .log_probabilities
                .extend_from_slice(&one.log_probabilities);
            for (all, one) in stats.counts.iter_mut().zip(&one.counts) {
                all.add(one);
            }
        }
        let count = batch.targets.len().max(1) as f64;
        let variance = squares / count - (sum / count).powi(2);
        stats.unexplained = errors / count / variance.max(f64::MIN_POSITIVE);
        batch.normalise(is_few, settings);
        (batch, stats)
    }

    /// Normalises advantages to mean 0 and deviation 1; as far as `balance` says, separately for
    /// slots after few arrivals and for the others.
    fn normalise(&mut self, is_few: &[bool], settings: &TrainSettings) {
        normalise(&mut self.advantages);
        let limit = settings.advantage_max;
        // Clamping reduces the deviation, so repeat.
        for _ in 0..3 {
            for group in [false, true] {
                let own = || {
                    self.advantages
                        .iter()
                        .zip(is_few)
                        .filter(|(_, few)| **few == group)
                };
                let count = own().count().max(1) as f32;
                let squares: f32 = own().map(|(advantage, _)| advantage * advantage).sum();
                let deviation = (squares / count).sqrt().max(1e-4);
                let factor = libm::powf(deviation, -settings.balance);
                for (advantage, &few) in self.advantages.iter_mut().zip(is_few) {
                    if few == group {
                        *advantage = (*advantage * factor).clamp(-limit, limit);
                    }
                }
            }
        }
    }

    /// Drops some of the slots with few arrivals and weights the others for them.
    pub(crate) fn thin(&mut self, trajectories: &[Trajectory], share: f64, random: &mut Stream) {
        let arrivals = || trajectories.iter().flat_map(|one| &one.arrivals);
        let total: u64 = arrivals().map(|&count| u64::from(count)).sum();
        let slots = self.slots.len().max(1) as f64;
        let mean = total as f64 / slots;
        for (at, &count) in (0..).zip(arrivals()) {
            let is_few = f64::from(count) < mean;
            if !is_few || share >= 1.0 || random.uniform() < share {
                self.kept.push(at);
            }
            self.weights
                .push(if is_few { (1.0 / share) as f32 } else { 1.0 });
        }
        let counted = self.kept.iter().map(|&at| self.weights[at as usize]);
        let scale = self.kept.len() as f32 / counted.sum::<f32>().max(f32::MIN_POSITIVE);
        self.weights.iter_mut().for_each(|weight| *weight *= scale);
    }
}

/// Per slot, whether the slot before had fewer arrivals than the mean.
pub(crate) fn after_few(trajectories: &[Trajectory]) -> Vec<bool> {
    let arrivals = || trajectories.iter().flat_map(|one| &one.arrivals);
    let total: u64 = arrivals().map(|&count| u64::from(count)).sum();
    let mean = total as f64 / arrivals().count().max(1) as f64;
    let before = trajectories.iter().flat_map(|one| {
        let first = std::iter::once(&one.arrivals_before);
        first.chain(&one.arrivals).take(one.arrivals.len())
    });
    before.map(|&count| f64::from(count) < mean).collect()
}

/// Subtracts a least-squares parabola in the arrivals from the rewards, one per group and per few
/// or many arrivals, so that slots in which bursts begin do not bend the others' parabola.
pub(crate) fn regress(trajectories: &mut [Trajectory], is_few: &[bool]) {
    let counts = trajectories.iter().flat_map(|one| one.arrivals.clone());
    let counts: Vec<f64> = counts.map(f64::from).collect();
    let rewards = trajectories.iter().flat_map(|one| one.rewards.clone());
    let mut rewards: Vec<f64> = rewards.map(f64::from).collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    for few in [false, true] {
        for few_now in [false, true] {
            let own = |t: &usize| is_few[*t] == few && (counts[*t] < mean) == few_now;
            let own: Vec<usize> = (0..rewards.len()).filter(own).collect();
            let points = own.iter().map(|&t| (counts[t] / mean.max(1.0), rewards[t]));
            let line = parabola(points);
            for t in own {
                let x = counts[t] / mean.max(1.0);
                rewards[t] -= line[0] + x * (line[1] + x * line[2]);
            }
        }
    }
    let mut left = rewards.into_iter();
    for one in trajectories {
        for (reward, left) in one.rewards.iter_mut().zip(left.by_ref()) {
            *reward = left as f32;
        }
    }
}

/// Least squares of y by 1, x, x^2, slightly regularised so that few points suffice.
fn parabola(points: impl Iterator<Item = (f64, f64)>) -> [f64; 3] {
    let mut rows = [[0.0; 4]; 3];
    for (i, row) in rows.iter_mut().enumerate() {
        row[i] = 1e-6;
    }
    for (x, y) in points {
        let powers = [1.0, x, x * x];
        for (i, row) in rows.iter_mut().enumerate() {
            for (cell, power) in row.iter_mut().zip(powers) {
                *cell += powers[i] * power;
            }
            row[3] += powers[i] * y;
        }
    }
    // Gauss-Jordan elimination; the matrix is positive definite.
    for i in 0..3 {
        let pivot = rows[i];
        for (j, row) in rows.iter_mut().enumerate() {
            let factor = if i == j { 0.0 } else { row[i] / pivot[i] };
            for (cell, above) in row.iter_mut().zip(pivot) {
                *cell -= factor * above;
            }
        }
    }
    [0, 1, 2].map(|i| rows[i][3] / rows[i][i])
}

/// Normalises to mean 0 and deviation 1.
fn normalise(numbers: &mut [f32]) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let squares = numbers.iter().map(|&x| (f64::from(x) - mean).powi(2));
    let deviation = libm::sqrt(squares.sum::<f64>() / count).max(1e-8);
    for x in numbers {
        *x = ((f64::from(*x) - mean) / deviation) as f32;
    }
}

/// A shuffled order of the indices per epoch (Fisher and Yates).
pub(crate) fn orders(kept: &[u32], epochs: usize, random: &mut Stream) -> Vec<Vec<u32>> {
    let shuffled = |_| {
        let mut order = kept.to_vec();
        for i in (1..order.len()).rev() {
            order.swap(i, (random.uniform() * (i + 1) as f64) as usize);
        }
        order
    };
    (0..epochs).map(shuffled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parabola_through_its_points_is_found() {
        let points = (0..20).map(|i| {
            let x = f64::from(i) / 5.0;
            (x, 0.5 - 2.0 * x + 0.25 * x * x)
        });
        let line = parabola(points);
        for (got, want) in line.into_iter().zip([0.5, -2.0, 0.25]) {
            assert!((got - want).abs() < 1e-4, "{line:?}");
        }
        assert_eq!(parabola(std::iter::empty()), [0.0; 3]);
    }

    #[test]
    fn regression_removes_arrivals_and_keeps_actions() {
        // Rewards are linear in the arrivals, plus 1 for good actions.
        let arrivals: Vec<u32> = (0..40).map(|t| t % 10).collect();
        let good = |t: usize| t.is_multiple_of(4);
        let rewards = arrivals.iter().enumerate();
        let rewards = rewards.map(|(t, &n)| n as f32 * 3.0 + f32::from(u8::from(good(t))));
        let mut one = [Trajectory {
            rewards: rewards.collect(),
            arrivals: arrivals.clone(),
            ..Trajectory::default()
        }];
        regress(&mut one, &[true; 40]);
        let mean = |is_good: bool| {
            let own = (0..40).filter(|&t| good(t) == is_good);
            let own: Vec<f32> = own.map(|t| one[0].rewards[t]).collect();
            own.iter().sum::<f32>() / own.len() as f32
        };
        assert!(
            mean(true) - mean(false) > 0.8,
            "{} {}",
            mean(true),
            mean(false)
        );
        assert!(one[0].rewards.iter().all(|reward| reward.abs() < 1.5));
    }
}
