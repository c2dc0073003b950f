//! Trajectories of a policy in several environments, and their advantages.

use ppo_router_net::{Kind, Network, Scratch};
use rayon::prelude::*;
use switchyard_sim::random::{Purpose, Stream};
use switchyard_sim::{Scenario, SimError};

use crate::env::{Env, SlotOutcome};
use crate::heads::{DrawnAction, Heads};
use crate::mlp::SparseRows;
use crate::test_bed::TestBed;

/// Number of phases with separate counts.
pub const PHASES: usize = 2;

/// The configuration of a collection of trajectories.
#[derive(Clone, Copy, Debug)]
pub struct RolloutConfig<'a> {
    /// The instances and their service times.
    pub test_bed: &'a TestBed,
    /// The workload.
    pub scenario: &'a Scenario,
    /// The observation.
    pub kind: Kind,
    /// The policy.
    pub network: &'a Network,
    /// The meaning of the policy's outputs.
    pub heads: &'a Heads,
    /// Standard deviation of the noise, sigma.
    pub sigma: f64,
    /// Number of environments, each reset first.
    pub envs: usize,
    /// Recorded slots per environment.
    pub slots: usize,
    /// Slots before the recorded ones, with proportional shares, so that the policy does not learn
    /// from instances that are empty because of the reset.
    pub warm_up: usize,
    /// The reward of a slot.
    pub reward: Reward,
    /// Seed of all draws.
    pub seed: u64,
}

/// Eq. 2 with a baseline and a scale.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    /// Weight of rejections, alpha.
    pub alpha: f64,
    /// Weight of accuracy, beta.
    pub beta: f64,
    /// Subtracted per ended request. All requests end, so this is a constant plus a potential (the
    /// requests held; Ng, Harada and Russell, 1999): it does not change the order of policies and
    /// reduces noise.
    pub per_request: f64,
    /// Factor of the reward: networks learn small numbers better.
    pub scale: f64,
}

/// The trajectory of one environment.
#[derive(Clone, Debug, Default)]
pub struct Trajectory {
    /// One observation per slot, and one after the last.
    pub rows: SparseRows,
    /// The critic's inputs: the observation, and the arrivals of this and the next slots.
    pub critic_rows: SparseRows,
    /// Logarithms of the shares, n per slot.
    pub log_shares: Vec<f32>,
    /// Batch pairs, one per model and slot.
    pub pairs: Vec<u8>,
    /// Logarithms of the actions' probabilities.
    pub log_probabilities: Vec<f32>,
    /// Scaled rewards.
    pub rewards: Vec<f32>,
    /// Arrivals per slot.
    pub arrivals: Vec<u32>,
    /// Arrivals of the slot before the first.
    pub arrivals_before: u32,
    /// Outcomes by the phase at the start of the slot.
    pub counts: [SlotOutcome; PHASES],
}

// === impl Reward ===

impl Reward {
    fn of(&self, slot: &SlotOutcome) -> f32 {
        let reward = slot.reward(self.alpha, self.beta) - self.per_request * slot.ended as f64;
        (reward * self.scale) as f32
    }
}

/// Slots whose arrivals are inputs of the critic, from the current one on.
const CRITIC_SLOTS: usize = 3;

/// Inputs of the critic in addition to the observation.
pub const CRITIC_MORE: usize = 2 * CRITIC_SLOTS;

/// The arrivals of a slot as inputs of the critic: the share of the service rate, and a logarithm.
/// No action changes arrivals, so the critic may know future ones (an input-dependent baseline: Mao
/// et al., "Variance Reduction for Reinforcement Learning in Input-Driven Environments", 2019).
/// That reduces the surprise at the start of a burst, which would otherwise drown normal slots.
fn critic_inputs(arrivals: u32, scale: f32) -> [f32; 2] {
    let count = arrivals as f32;
    let log = libm::logf(1.0 + count) / libm::logf(1.0 + scale);
    [count / scale, log]
}

/// Collects all trajectories in parallel, in the order of the environments.
///
/// # Errors
/// Errors of the simulator.
pub fn collect(of: &RolloutConfig<'_>) -> Result<Vec<Trajectory>, SimError> {
    let envs: Vec<usize> = (0..of.envs).collect();
    envs.into_par_iter().map(|env| one(of, env)).collect()
}

fn one(of: &RolloutConfig<'_>, env: usize) -> Result<Trajectory, SimError> {
    let lane = env as u64;
    let mut random = Stream::new(of.seed, Purpose::Learning, lane);
    let seed = of
        .seed
        .wrapping_mul(0x2545_f491_4f6c_dd1d)
        .wrapping_add(lane);
    let mut env = Env::reset(of.test_bed, of.scenario, of.kind, seed)?;
    let mut decision = of.test_bed.proportional();
    let mut made = Trajectory::default();
    for _ in 0..of.warm_up {
        made.arrivals_before = env.step(&decision)?.arrivals as u32;
    }
    let (mut action, mut scratch) = (DrawnAction::default(), Scratch::default());
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
    let layout = of.test_bed.layout(of.kind);
    let (width, scale) = (layout.width(), layout.rate_scale);
    for (t, coming) in made.arrivals.windows(CRITIC_SLOTS).enumerate() {
        let inputs = coming.iter().flat_map(|&count| critic_inputs(count, scale));
        made.critic_rows.push_longer(&made.rows, t, width, inputs);
    }
    made.arrivals.truncate(of.slots);
    Ok(made)
}

/// Generalised advantages (Schulman et al., 2016) from rewards and one more value. The paper's eq.
/// 11 omits the discount of the next value; this is the original.
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
    fn with_lambda_0_advantages_have_one_step() {
        let mut got = Vec::new();
        advantages(&[1.0, 1.0], &[5.0, 5.0, 5.0], 1.0, 0.0, &mut got);
        assert_eq!(got, [1.0, 1.0]);
    }
}
