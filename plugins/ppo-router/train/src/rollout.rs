//! Trajectories of a policy in several environments, and what its actions were worth.

use ppo_router_net::{Kind, Network, Scratch};
use rayon::prelude::*;
use switchyard_sim::random::{Purpose, Stream};
use switchyard_sim::{Scenario, SimError};

use crate::env::{Env, Slot};
use crate::heads::{Action, Heads};
use crate::mlp::Rows;
use crate::yard::Yard;

/// Phases told apart in what is counted.
pub const PHASES: usize = 2;

/// How trajectories are collected.
#[derive(Clone, Copy, Debug)]
pub struct Collect<'a> {
    /// The instances.
    pub yard: &'a Yard,
    /// Under which workload.
    pub scenario: &'a Scenario,
    /// What is observed.
    pub kind: Kind,
    /// The policy.
    pub network: &'a Network,
    /// What its outputs mean.
    pub heads: &'a Heads,
    /// Deviation of the noise, sigma.
    pub sigma: f64,
    /// Environments, each reset at the beginning.
    pub envs: usize,
    /// Slots recorded of each.
    pub slots: usize,
    /// Slots before those, in which every instance gets its share of the service rate: nobody
    /// shall learn from a yard that is empty because it was just made.
    pub warm_up: usize,
    /// Reward of a slot, from what ended and what arrived.
    pub reward: Reward,
    /// Of all draws.
    pub seed: u64,
}

/// Eq. 2, and what is taken off it.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    /// Weight of rejections, alpha.
    pub alpha: f64,
    /// Weight of accuracy, beta.
    pub beta: f64,
    /// Taken off per request that ends. All that arrive end, whatever is done: over time this
    /// is a constant, in one slot it is a potential (what is inside) that goes up and down (Ng,
    /// Harada and Russell, 1999). No policy's worth over another changes, only the noise that
    /// it is seen through.
    pub per_request: f64,
    /// All of it is multiplied by this: networks like small numbers.
    pub scale: f64,
}

/// What happened in one environment.
#[derive(Clone, Debug, Default)]
pub struct Trajectory {
    /// One observation per slot, and the one after the last.
    pub rows: Rows,
    /// What the critic is told: the same, and what arrives in this slot and the
    /// next.
    pub critic_rows: Rows,
    /// Logarithms of the shares, n per slot.
    pub log_shares: Vec<f32>,
    /// Batch pairs, one per model and slot.
    pub pairs: Vec<u8>,
    /// Logarithms of the actions' probabilities.
    pub log_probabilities: Vec<f32>,
    /// Rewards, scaled.
    pub rewards: Vec<f32>,
    /// Requests that arrived in each slot.
    pub arrivals: Vec<u32>,
    /// Those of the slot before the first.
    pub arrivals_before: u32,
    /// Counts by the phase in which a slot began.
    pub counts: [Slot; PHASES],
}

// === impl Reward ===

impl Reward {
    fn of(&self, slot: &Slot) -> f32 {
        let reward = slot.reward(self.alpha, self.beta) - self.per_request * slot.ended as f64;
        (reward * self.scale) as f32
    }
}

/// Slots whose arrivals the critic is told, from the one that begins.
const CRITIC_SLOTS: usize = 3;

/// Numbers that the critic is told beside the observation.
pub const CRITIC_MORE: usize = 2 * CRITIC_SLOTS;

/// How many requests arrive in a slot, for the critic: as a share of what the yard serves, and
/// its logarithm. No action changes what arrives, so that the critic may know it and those to
/// come (an input-dependent baseline: Mao et al., "Variance Reduction for Reinforcement Learning
/// in Input-Driven Environments", 2019). It makes the slot in which a burst begins less of a
/// surprise, which otherwise drowns what a normal slot teaches.
fn told(arrivals: u32, scale: f32) -> [f32; 2] {
    let count = arrivals as f32;
    let log = libm::logf(1.0 + count) / libm::logf(1.0 + scale);
    [count / scale, log]
}

/// Collects all trajectories, in parallel over the environments, in their order.
///
/// # Errors
/// The simulator's.
pub fn collect(of: &Collect<'_>) -> Result<Vec<Trajectory>, SimError> {
    let envs: Vec<usize> = (0..of.envs).collect();
    envs.into_par_iter().map(|env| one(of, env)).collect()
}

fn one(of: &Collect<'_>, env: usize) -> Result<Trajectory, SimError> {
    let lane = env as u64;
    let mut random = Stream::new(of.seed, Purpose::Learning, lane);
    let seed = of
        .seed
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
        .wrapping_add(lane);
    let mut env = Env::reset(of.yard, of.scenario, of.kind, seed)?;
    let mut decision = of.yard.proportional();
    let mut made = Trajectory::default();
    for _ in 0..of.warm_up {
        made.arrivals_before = env.step(&decision)?.arrivals as u32;
    }
    let (mut action, mut scratch) = (Action::default(), Scratch::default());
    for t in 0..of.slots + CRITIC_SLOTS {
        let outputs = of.network.forward(env.observation(), &mut scratch);
        of.heads
            .draw(outputs, of.sigma, &mut random, &mut action, &mut decision);
        let log = of
            .heads
            .log_probability(outputs, &action.log_shares, &action.pairs, of.sigma);
        if t <= of.slots {
            made.rows.push(env.observation());
        }
        let phase = env.phase().min(PHASES - 1);
        let slot = env.step(&decision)?;
        made.arrivals.push(slot.arrivals as u32);
        if t < of.slots {
            made.log_probabilities.push(log as f32);
            made.log_shares.extend_from_slice(&action.log_shares);
            made.pairs.extend_from_slice(&action.pairs);
            made.rewards.push(of.reward.of(&slot));
            made.counts[phase].add(&slot);
        }
    }
    let layout = of.yard.layout(of.kind);
    let (width, scale) = (layout.width(), layout.rate_scale);
    for (t, coming) in made.arrivals.windows(CRITIC_SLOTS).enumerate() {
        let told = coming.iter().flat_map(|&count| told(count, scale));
        made.critic_rows.push_longer(&made.rows, t, width, told);
    }
    made.arrivals.truncate(of.slots);
    Ok(made)
}

/// Generalised advantages (Schulman et al., 2016) from rewards and values; of the latter there
/// is one more. The paper's eq. 11 omits the discount of the next value; this is the original.
pub fn advantages(rewards: &[f32], values: &[f32], gamma: f32, lambda: f32, to: &mut Vec<f32>) {
    let begin = to.len();
    to.resize(begin + rewards.len(), 0.0);
    let mut sum = 0.0;
    for t in (0..rewards.len()).rev() {
        let surprise = rewards[t] + gamma * values[t + 1] - values[t];
        sum = surprise + gamma * lambda * sum;
        to[begin + t] = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantages_are_discounted_sums_of_surprises() {
        let (rewards, values) = ([1.0, -2.0, 0.5], [0.3, 0.1, -0.4, 2.0]);
        let (gamma, lambda) = (0.9_f32, 0.8);
        let surprise = |t: usize| rewards[t] + gamma * values[t + 1] - values[t];
        let mut got = vec![7.0];
        advantages(&rewards, &values, gamma, lambda, &mut got);
        let decay = gamma * lambda;
        let last = surprise(2);
        let middle = surprise(1) + decay * last;
        let want = [7.0, surprise(0) + decay * middle, middle, last];
        for (a, b) in got.iter().zip(want) {
            assert!((a - b).abs() < 1e-6, "{got:?} {want:?}");
        }
    }

    #[test]
    fn without_lambda_it_is_one_step() {
        let mut got = Vec::new();
        advantages(&[1.0, 1.0], &[5.0, 5.0, 5.0], 1.0, 0.0, &mut got);
        assert_eq!(got, [1.0, 1.0]);
    }
}
