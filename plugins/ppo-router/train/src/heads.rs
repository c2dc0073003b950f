//! A network's outputs as a random action: shares of the arrivals and, optionally, batch bounds per
//! model (each drawn independently, as in H-PPO).

use ppo_router_net::{Decision, batch_pairs};
use switchyard_sim::random::Stream;

use crate::density::{add_gradient, log_density};

/// The meaning of the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Heads {
    /// Number of outputs that are shares, n.
    pub instances: usize,
    /// Number of models with batch bounds.
    pub models: usize,
    /// The pairs of bounds; empty without batch bounds.
    pub pairs: Vec<(u32, u32)>,
}

/// The part of a drawn action that its probability needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnAction {
    /// Logarithms of the shares.
    pub log_shares: Vec<f32>,
    /// Index of the pair per model.
    pub pairs: Vec<u8>,
}

// === impl Heads ===

impl Heads {
    /// The heads of `instances` instances and `models` models.
    #[must_use]
    pub fn new(instances: usize, models: usize, batches: &[u32]) -> Self {
        Self {
            instances,
            models,
            pairs: batch_pairs(batches),
        }
    }

    /// Number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.instances + self.models * self.pairs.len()
    }

    /// Draws an action (eq. 8), also as a decision.
    pub fn draw(
        &self,
        outputs: &[f32],
        sigma: f64,
        random: &mut Stream,
        action: &mut DrawnAction,
        decision: &mut Decision,
    ) {
        let (means, heads) = outputs.split_at(self.instances);
        action.log_shares.clear();
        let noisy = means.iter().map(|&f| f + (sigma * random.normal()) as f32);
        action.log_shares.extend(noisy);
        subtract_log_sum(&mut action.log_shares);
        decision.shares.clear();
        let shares = action.log_shares.iter().map(|&l| libm::exp(f64::from(l)));
        decision.shares.extend(shares);
        let total: f64 = decision.shares.iter().sum();
        decision.shares.iter_mut().for_each(|share| *share /= total);
        action.pairs.clear();
        decision.batches.clear();
        if self.pairs.is_empty() {
            return;
        }
        for head in heads.chunks_exact(self.pairs.len()) {
            let mut sum = 0.0;
            let highest = head.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sums: Vec<f64> = head
                .iter()
                .map(|&x| {
                    sum += libm::exp(f64::from(x - highest));
                    sum
                })
                .collect();
            let pair = random.pick(&sums);
            action.pairs.push(pair as u8);
            decision.batches.push(self.pairs[pair]);
        }
    }

    /// Logarithm of an action's probability (for the shares, of the density).
    #[must_use]
    pub fn log_probability(
        &self,
        outputs: &[f32],
        log_shares: &[f32],
        pairs: &[u8],
        sigma: f64,
    ) -> f64 {
        let (means, heads) = outputs.split_at(self.instances);
        let mut sum = log_density(log_shares, means, sigma);
        if !self.pairs.is_empty() {
            for (head, &pair) in heads.chunks_exact(self.pairs.len()).zip(pairs) {
                sum += f64::from(head[usize::from(pair)]) - log_sum(head);
            }
        }
        sum
    }

    /// Adds `scale` times the gradient of [`log_probability`](Self::log_probability) by the
    /// outputs, and `entropy` times that of the batch heads' entropy (without the entropy of the
    /// shares).
    #[allow(clippy::too_many_arguments)] // One argument per part of the formula.
    pub fn add_gradient(
        &self,
        outputs: &[f32],
        log_shares: &[f32],
        pairs: &[u8],
        sigma: f64,
        scale: f32,
        entropy: f32,
        gradient: &mut [f32],
    ) {
        let (means, heads) = outputs.split_at(self.instances);
        let (of_means, of_heads) = gradient.split_at_mut(self.instances);
        add_gradient(log_shares, means, sigma, scale, of_means);
        if self.pairs.is_empty() {
            return;
        }
        let size = self.pairs.len();
        let slopes = of_heads.chunks_exact_mut(size);
        for ((head, slope), &pair) in heads.chunks_exact(size).zip(slopes).zip(pairs) {
            let log_total = log_sum(head) as f32;
            let chance = |x: f32| libm::expf(x - log_total);
            let surprise: f32 = head.iter().map(|&x| chance(x) * (log_total - x)).sum();
            for (k, (&x, slope)) in head.iter().zip(slope).enumerate() {
                let p = chance(x);
                let hit = if k == usize::from(pair) { 1.0 } else { 0.0 };
                *slope += scale * (hit - p) + entropy * p * (log_total - x - surprise);
            }
        }
    }
}

fn log_sum(numbers: &[f32]) -> f64 {
    let highest = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = numbers
        .iter()
        .map(|&x| libm::exp(f64::from(x - highest)))
        .sum();
    f64::from(highest) + libm::log(sum)
}

fn subtract_log_sum(numbers: &mut [f32]) {
    let log_sum = log_sum(numbers) as f32;
    numbers.iter_mut().for_each(|x| *x -= log_sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchyard_sim::random::Purpose;

    const OUTPUTS: [f32; 14] = [
        0.3, -0.2, 0.5, 0.1, 0.0, 0.4, -0.7, 0.2, 0.1, 0.3, -0.1, 0.6, 0.2, 0.9,
    ];

    fn heads() -> Heads {
        Heads {
            instances: 2,
            models: 2,
            pairs: batch_pairs(&[1, 3, 5]),
        }
    }

    #[test]
    fn draws_follow_their_probabilities() {
        let heads = heads();
        let mut random = Stream::new(1, Purpose::Learning, 0);
        let (mut action, mut decision) = (DrawnAction::default(), Decision::default());
        let mut counts = [0u32; 6];
        for _ in 0..50_000 {
            heads.draw(&OUTPUTS, 0.698, &mut random, &mut action, &mut decision);
            counts[usize::from(action.pairs[0])] += 1;
            assert_eq!(decision.batches.len(), 2);
        }
        let logs = [0.5_f32.ln(), 0.5_f32.ln()];
        let chances: Vec<f64> = (0..6)
            .map(|pair| {
                let log = |pairs: [u8; 2]| heads.log_probability(&OUTPUTS, &logs, &pairs, 0.698);
                // Summed over the second model.
                let all = (0..6).map(|k| log([pair, k]).exp()).sum::<f64>();
                let total: f64 = (0..36).map(|k| log([k / 6, k % 6]).exp()).sum();
                all / total
            })
            .collect();
        for (count, chance) in counts.iter().zip(&chances) {
            let share = f64::from(*count) / 50_000.0;
            assert!((share - chance).abs() < 0.01, "{counts:?} {chances:?}");
        }
    }

    #[test]
    fn the_gradient_equals_finite_differences() {
        let heads = heads();
        let logs = [0.3_f32.ln(), 0.7_f32.ln()];
        let pairs = [2, 4];
        let mut gradient = [0.0; 14];
        heads.add_gradient(&OUTPUTS, &logs, &pairs, 0.698, 1.0, 0.0, &mut gradient);
        for i in 0..OUTPUTS.len() {
            let at = |step: f32| {
                let mut moved = OUTPUTS;
                moved[i] += step;
                heads.log_probability(&moved, &logs, &pairs, 0.698)
            };
            let slope = (at(0.01) - at(-0.01)) / 0.02;
            let got = f64::from(gradient[i]);
            assert!((slope - got).abs() < 2e-3, "{i}: {got}, not {slope}");
        }
    }

    #[test]
    fn the_entropy_gradient_equals_finite_differences() {
        let heads = heads();
        let entropy = |outputs: &[f32]| -> f64 {
            let of = |head: &[f32]| -> f64 {
                let total = log_sum(head);
                let logs = head.iter().map(|&x| f64::from(x) - total);
                logs.map(|log| -log.exp() * log).sum()
            };
            outputs[2..].chunks_exact(6).map(of).sum()
        };
        let mut gradient = [0.0; 14];
        let logs = [0.5_f32.ln(); 2];
        heads.add_gradient(&OUTPUTS, &logs, &[0, 0], 0.698, 0.0, 1.0, &mut gradient);
        for i in 0..OUTPUTS.len() {
            let at = |step: f32| {
                let mut moved = OUTPUTS;
                moved[i] += step;
                entropy(&moved)
            };
            let slope = (at(0.01) - at(-0.01)) / 0.02;
            assert!((slope - f64::from(gradient[i])).abs() < 1e-3, "{i}");
        }
    }
}
