//! Proximal policy optimisation (Algorithm 1): collect trajectories, estimate advantages, train
//! both networks on them for several epochs.

use ppo_router_net::{Kind, Meta, Network, WeightsError};
use serde::{Deserialize, Serialize};
use switchyard_sim::random::{Purpose, Stream};
use switchyard_sim::{Scenario, SimError};

use crate::adam::Adam;
use crate::batch::{UpdateBatch, after_few, orders, regress};
use crate::error::TrainError;
use crate::heads::Heads;
use crate::mlp::{CHUNK, Mlp, PassBuffers};
use crate::rollout::{CRITIC_MORE, RolloutConfig, Trajectory, collect};
use crate::settings::TrainSettings;
use crate::stats::UpdateStats;
use crate::test_bed::TestBed;

/// Factor of the initial weights of the policy's last layer, so that the first policy hardly
/// depends on the observation.
const FIRST_POLICY: f32 = 0.01;

/// Both networks and the state of their optimisers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learner {
    policy: Vec<f32>,
    value: Vec<f32>,
    adam_policy: Adam,
    adam_value: Adam,
    /// Number of updates so far.
    pub updates: u64,
}

/// The inputs of an update.
#[derive(Clone, Copy, Debug)]
pub struct UpdateTask<'a> {
    /// The instances and their service times.
    pub test_bed: &'a TestBed,
    /// The workload.
    pub scenario: &'a Scenario,
    /// The observation.
    pub kind: Kind,
    /// The hyperparameters.
    pub settings: &'a TrainSettings,
    /// The metadata of the networks.
    pub meta: &'a Meta,
    /// Seed of all draws.
    pub seed: u64,
}

// === impl Learner ===

impl Learner {
    /// A learner with random networks.
    ///
    /// # Errors
    /// A hyperparameter out of range.
    pub fn try_new(task: &UpdateTask<'_>) -> Result<Self, TrainError> {
        task.settings.check()?;
        let mut random = Stream::new(task.seed, Purpose::Learning, u64::MAX);
        let mut policy = Mlp::new(&task.meta.layers, FIRST_POLICY, &mut random);
        if task.settings.proportional {
            let shares = task.test_bed.proportional().shares;
            let biases = policy.parameters.len() - task.meta.outputs();
            for (bias, share) in policy.parameters[biases..].iter_mut().zip(shares) {
                *bias = libm::log(share) as f32;
            }
        }
        let last = if task.settings.regress {
            FIRST_POLICY
        } else {
            1.0
        };
        let value = Mlp::new(&value_widths(task.meta), last, &mut random);
        Ok(Self {
            adam_policy: Adam::new(policy.parameters.len()),
            adam_value: Adam::new(value.parameters.len()),
            policy: policy.parameters,
            value: value.parameters,
            updates: 0,
        })
    }

    /// Whether its networks have the task's shape.
    #[must_use]
    pub fn fits(&self, task: &UpdateTask<'_>) -> bool {
        let parameters =
            |widths: &[usize]| -> usize { widths.windows(2).map(|w| (w[0] + 1) * w[1]).sum() };
        self.policy.len() == parameters(&task.meta.layers)
            && self.value.len() == parameters(&value_widths(task.meta))
    }

    /// The policy for serving.
    ///
    /// # Errors
    /// The training diverged: a weight is not finite.
    pub fn network(&self, task: &UpdateTask<'_>) -> Result<Network, WeightsError> {
        let policy = Mlp::of(&task.meta.layers, self.policy.clone());
        Network::try_new(task.meta.clone(), policy.layers())
    }

    /// One update; `progress` is that of the training, 0 to 1.
    ///
    /// # Errors
    /// An error of the simulator, or the training diverged.
    pub fn update(
        &mut self,
        task: &UpdateTask<'_>,
        progress: f64,
    ) -> Result<UpdateStats, TrainError> {
        let settings = task.settings;
        let network = self.network(task)?;
        let batches = &task.meta.batches;
        let heads = Heads::new(
            task.test_bed.instances(),
            task.test_bed.models.len(),
            batches,
        );
        let sigma = settings.sigma.0 + (settings.sigma.1 - settings.sigma.0) * progress;
        let rate = settings.rate.0 + (settings.rate.1 - settings.rate.0) * progress as f32;
        let seed = task
            .seed
            .wrapping_add(self.updates.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut trajectories = self.collect(task, &network, &heads, sigma, seed)?;
        let is_few = after_few(&trajectories);
        if settings.regress {
            regress(&mut trajectories, &is_few);
        }
        let value = Mlp::of(&value_widths(task.meta), std::mem::take(&mut self.value));
        let (mut batch, mut stats) = UpdateBatch::of(&trajectories, &value, settings, &is_few);
        let counts = stats.counts.iter();
        let rewards = counts.map(|slot| slot.reward(settings.alpha, settings.beta));
        stats.reward = rewards.sum::<f64>() / batch.slots.len() as f64;
        let policy = Mlp::of(&task.meta.layers, std::mem::take(&mut self.policy));
        let mut order = Stream::new(seed, Purpose::Learning, u64::MAX - 1);
        batch.thin(&trajectories, settings.thin, &mut order);
        let orders = orders(&batch.kept, settings.epochs, &mut order);
        let Self {
            adam_policy,
            adam_value,
            ..
        } = self;
        let ((policy, clipped), value) = rayon::join(
            || {
                improve_policy(
                    policy,
                    adam_policy,
                    &batch,
                    &orders,
                    &heads,
                    settings,
                    sigma,
                    rate,
                )
            },
            || {
                improve_value(
                    value,
                    adam_value,
                    &batch,
                    &orders,
                    settings,
                    rate * settings.critic_rate,
                )
            },
        );
        self.policy = policy.parameters;
        self.value = value.parameters;
        self.updates += 1;
        stats.clipped = clipped;
        Ok(stats)
    }

    fn collect(
        &self,
        task: &UpdateTask<'_>,
        network: &Network,
        heads: &Heads,
        sigma: f64,
        seed: u64,
    ) -> Result<Vec<Trajectory>, SimError> {
        let settings = task.settings;
        collect(&RolloutConfig {
            test_bed: task.test_bed,
            scenario: task.scenario,
            kind: task.kind,
            network,
            heads,
            sigma,
            envs: settings.envs,
            slots: settings.slots / settings.envs,
            warm_up: settings.warm_up,
            reward: settings.reward(task.test_bed),
            seed,
        })
    }
}

fn value_widths(meta: &Meta) -> Vec<usize> {
    let mut widths = meta.layers.clone();
    widths[0] += CRITIC_MORE;
    let last = widths.len() - 1;
    widths[last] = 1;
    widths
}

/// Maximises eq. 10; returns the policy and the share of samples that the last epoch clipped.
#[allow(clippy::too_many_arguments)] // One argument per part of the formula.
fn improve_policy(
    mut policy: Mlp,
    adam: &mut Adam,
    batch: &UpdateBatch,
    orders: &[Vec<u32>],
    heads: &Heads,
    settings: &TrainSettings,
    sigma: f64,
    rate: f32,
) -> (Mlp, f64) {
    let (n, models) = (
        heads.instances,
        batch.pairs.len() / batch.slots.len().max(1),
    );
    let outputs = heads.outputs();
    let mut gradient = vec![0.0; policy.parameters.len()];
    let (mut pass, mut slopes, mut picks) = (PassBuffers::default(), Vec::new(), Vec::new());
    let mut clipped = 0;
    for order in orders {
        clipped = 0;
        for minibatch in order.chunks(settings.minibatch) {
            gradient.fill(0.0);
            let per_sample = 1.0 / minibatch.len() as f32;
            for chunk in minibatch.chunks(CHUNK) {
                picks.clear();
                picks.extend(chunk.iter().map(|&at| batch.slots[at as usize]));
                let out = policy.forward(&batch.rows, &picks, &mut pass);
                slopes.clear();
                slopes.resize(out.len(), 0.0);
                let samples = out
                    .chunks_exact(outputs)
                    .zip(slopes.chunks_exact_mut(outputs));
                for (&at, (out, slopes)) in chunk.iter().zip(samples) {
                    let at = at as usize;
                    let log_shares = &batch.log_shares[at * n..][..n];
                    let pairs = &batch.pairs[at * models..][..models];
                    let log = heads.log_probability(out, log_shares, pairs, sigma);
                    let ratio = libm::exp(log - f64::from(batch.log_probabilities[at])) as f32;
                    let advantage = batch.advantages[at];
                    let per_sample = per_sample * batch.weights[at];
                    // The minimum of eq. 10 has no gradient where it is clipped.
                    let is_clipped = match advantage > 0.0 {
                        true => ratio > 1.0 + settings.clip,
                        false => ratio < 1.0 - settings.clip,
                    };
                    clipped += usize::from(is_clipped);
                    let scale = if is_clipped {
                        0.0
                    } else {
                        -ratio * advantage * per_sample
                    };
                    let entropy = -settings.entropy * per_sample;
                    heads.add_gradient(out, log_shares, pairs, sigma, scale, entropy, slopes);
                }
                policy.backward(&batch.rows, &picks, &slopes, &mut pass, &mut gradient);
            }
            adam.step(rate, &gradient, &mut policy.parameters);
        }
    }
    (policy, clipped as f64 / batch.kept.len().max(1) as f64)
}

/// Minimises the mean squared error of the values (Algorithm 1, line 7).
fn improve_value(
    mut value: Mlp,
    adam: &mut Adam,
    batch: &UpdateBatch,
    orders: &[Vec<u32>],
    settings: &TrainSettings,
    rate: f32,
) -> Mlp {
    let mut gradient = vec![0.0; value.parameters.len()];
    let (mut pass, mut slopes, mut picks) = (PassBuffers::default(), Vec::new(), Vec::new());
    for order in orders {
        for minibatch in order.chunks(settings.minibatch) {
            gradient.fill(0.0);
            let per_sample = 2.0 / minibatch.len() as f32;
            for chunk in minibatch.chunks(CHUNK) {
                picks.clear();
                picks.extend(chunk.iter().map(|&at| batch.slots[at as usize]));
                let out = value.forward(&batch.critic_rows, &picks, &mut pass);
                slopes.clear();
                for (&at, v) in chunk.iter().zip(out) {
                    let at = at as usize;
                    let limit = settings.critic_error_max;
                    let error = (v - batch.targets[at]).clamp(-limit, limit);
                    slopes.push(per_sample * batch.weights[at] * error);
                }
                value.backward(
                    &batch.critic_rows,
                    &picks,
                    &slopes,
                    &mut pass,
                    &mut gradient,
                );
            }
            adam.step(rate, &gradient, &mut value.parameters);
        }
    }
    value
}
