//! Proximal policy optimisation (Algorithm 1): collect, estimate advantages, move both networks
//! over the same trajectories several times.

use ppo_router_net::{Kind, Meta, Network, WeightsError};
use serde::{Deserialize, Serialize};
use switchyard_sim::random::{Purpose, Stream};
use switchyard_sim::{Scenario, SimError};

use crate::adam::Adam;
use crate::env::Slot;
use crate::heads::Heads;
use crate::mlp::{Mlp, Pass, Rows};
use crate::rollout::{CRITIC_MORE, Collect, PHASES, Reward, Trajectory, advantages, collect};
use crate::train::TrainError;
use crate::yard::Yard;

/// Rows that go through a network at once: their activations stay in the cache.
const CHUNK: usize = 500;

/// Weights of the policy's last layer at the beginning, over what they would be: the first
/// policy hardly depends on what it sees.
const FIRST_POLICY: f32 = 0.01;

/// The numbers of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Widths of the hidden layers, of both networks.
    pub hidden: Vec<usize>,
    /// Slots per update, T.
    pub slots: usize,
    /// Environments they are collected in.
    pub envs: usize,
    /// Slots of each environment that are not recorded.
    pub warm_up: usize,
    /// Passes over them.
    pub epochs: usize,
    /// Slots per gradient.
    pub minibatch: usize,
    /// Discount, gamma.
    pub gamma: f32,
    /// Of generalised advantages, lambda.
    pub lambda: f32,
    /// Clipping threshold, epsilon.
    pub clip: f32,
    /// Adam's rate at the first update and at the last; linear between.
    pub rate: (f32, f32),
    /// Deviation of the noise at the first update and at the last, sigma; linear between.
    pub sigma: (f64, f64),
    /// Weight of rejections (eq. 2), alpha.
    pub alpha: f64,
    /// Weight of accuracy (eq. 2), beta.
    pub beta: f64,
    /// Take the lowest accuracy off the reward per request: see [`Reward::per_request`].
    pub baseline: bool,
    /// Rewards are multiplied by this.
    pub reward_scale: f64,
    /// Weight of the batch heads' entropy.
    pub entropy: f32,
    /// Share of the slots with fewer arrivals than the mean that is learnt from, each so much
    /// the heavier: most slots are of the normal state and alike.
    pub thin: f64,
    /// How far advantages are brought to the same deviation in slots that follow few arrivals and
    /// in the others, 0 (not at all) to 1: what is learnt about the normal state does not drown in
    /// what is learnt about bursts.
    pub balance: f32,
    /// Advantages, once brought to a deviation of 1, are cut off here: a burst that begins is not
    /// to outweigh hundreds of slots in which none did. Infinite (or large) for no cut.
    pub advantage_max: f32,
    /// Take off the rewards, before anything else, what a parabola in the slot's arrivals explains
    /// of them, apart in slots that follow few arrivals and in the others (least squares).
    pub regress: bool,
    /// The critic's rate over the policy's.
    pub critic_rate: f32,
    /// Error of the critic, in rewards, beyond which its loss grows linearly (Huber). It may be
    /// any function of what no action changes: what it need not be is the mean.
    pub critic_error_max: f32,
    /// The first policy gives every instance its share of the service rate, not the same.
    pub proportional: bool,
}

/// Both networks and where their training is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learner {
    policy: Vec<f32>,
    value: Vec<f32>,
    adam_policy: Adam,
    adam_value: Adam,
    /// Updates made.
    pub updates: u64,
}

/// What one update saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Mean reward of a slot (eq. 2), without what was taken off.
    pub reward: f64,
    /// Counts by the phase in which a slot began.
    pub counts: [Slot; PHASES],
    /// Mean squared error of the values before the update, over their targets' variance.
    pub unexplained: f64,
    /// Share of the samples that the last epoch clipped.
    pub clipped: f64,
}

/// What an update is made for.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The instances.
    pub yard: &'a Yard,
    /// Under which workload.
    pub scenario: &'a Scenario,
    /// What is observed.
    pub kind: Kind,
    /// The method's numbers.
    pub settings: &'a Settings,
    /// Of the networks that are made of it.
    pub meta: &'a Meta,
    /// Of all draws.
    pub seed: u64,
}

/// Everything an update learns from.
#[derive(Debug, Default)]
struct Batch {
    rows: Rows,
    critic_rows: Rows,
    /// Rows that are slots: all but the ones after the last.
    slots: Vec<u32>,
    /// Positions of the slots that are learnt from, and what each counts, 1 in the mean.
    kept: Vec<u32>,
    weights: Vec<f32>,
    log_shares: Vec<f32>,
    pairs: Vec<u8>,
    log_probabilities: Vec<f32>,
    advantages: Vec<f32>,
    targets: Vec<f32>,
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self::paper()
    }
}

impl Settings {
    /// Section 5.1.4 and 5.1.5. Left open there: the environments (five here, of 10,000 slots,
    /// so that an update does not hang on three bursts), and how rewards are brought to a size
    /// that networks learn: what arrives is taken off, and the rest is scaled.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            hidden: vec![90, 60],
            slots: 50_000,
            envs: 5,
            warm_up: 3,
            epochs: 5,
            minibatch: 10_000,
            gamma: 0.99,
            lambda: 0.95,
            clip: 0.2,
            rate: (2.5e-4, 2.5e-4),
            sigma: (0.698, 0.698),
            alpha: 1.0,
            beta: 1.0,
            baseline: true,
            reward_scale: 0.1,
            entropy: 0.0,
            thin: 1.0,
            balance: 0.0,
            advantage_max: 1e6,
            regress: false,
            critic_rate: 1.0,
            critic_error_max: 1e6,
            proportional: false,
        }
    }

    /// What learns more from less: many small steps, noise and rate that fall, a horizon as long
    /// as an action's effects, a first policy that serves a burst, environments that begin in
    /// one, and of the slots of the normal state a quarter (state-balanced sampling).
    #[must_use]
    pub fn better() -> Self {
        Self {
            slots: 10_000,
            envs: 10,
            minibatch: 500,
            gamma: 0.3,
            lambda: 0.5,
            rate: (2e-3, 2e-4),
            sigma: (0.5, 0.2),
            entropy: 1e-3,
            thin: 0.25,
            balance: 1.0,
            advantage_max: 4.0,
            regress: true,
            critic_rate: 0.2,
            critic_error_max: 0.2,
            proportional: true,
            ..Self::paper()
        }
    }

    /// The same with some of the numbers replaced, given by name.
    ///
    /// # Errors
    /// A name that is none, or a value of another type.
    pub fn with(
        self,
        given: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, TrainError> {
        let wrong = |error: serde_json::Error| TrainError::Settings {
            field: "as given".to_owned(),
            reason: error.to_string(),
        };
        let mut all = serde_json::to_value(&self).map_err(wrong)?;
        if let Some(all) = all.as_object_mut() {
            all.extend(given);
        }
        serde_json::from_value(all).map_err(wrong)
    }

    fn check(&self) -> Result<(), TrainError> {
        let wrong = |field: &str, reason: &str| {
            Err(TrainError::Settings {
                field: field.to_owned(),
                reason: reason.to_owned(),
            })
        };
        let share = |x: f32| (0.0..=1.0).contains(&x);
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if self.hidden.contains(&0) {
            return wrong("hidden", "must be positive");
        }
        if self.envs == 0 || self.slots < self.envs {
            return wrong("slots", "must be one per environment at least");
        }
        if self.minibatch == 0 || self.epochs == 0 {
            return wrong("minibatch", "and epochs must be positive");
        }
        if !share(self.gamma) || !share(self.lambda) || !share(self.clip) {
            return wrong("gamma", "lambda and clip must be from 0 to 1");
        }
        if !(positive(self.sigma.0) && positive(self.sigma.1)) {
            return wrong("sigma", "must be positive");
        }
        if !(positive(f64::from(self.rate.0)) && positive(f64::from(self.rate.1))) {
            return wrong("rate", "must be positive");
        }
        if !share(self.balance) {
            return wrong("balance", "must be from 0 to 1");
        }
        let limits = [self.advantage_max, self.critic_error_max];
        if !limits.iter().all(|&limit| limit > 0.0) {
            return wrong("advantage_max", "and critic_error_max must be positive");
        }
        if !(positive(self.thin) && self.thin <= 1.0) {
            return wrong("thin", "must be above 0 and 1 at most");
        }
        if !positive(self.reward_scale) {
            return wrong("reward_scale", "must be positive");
        }
        Ok(())
    }

    fn reward(&self, yard: &Yard) -> Reward {
        let accuracies = yard.models.iter().map(|model| model.accuracy);
        let lowest = accuracies.fold(f64::INFINITY, f64::min);
        Reward {
            alpha: self.alpha,
            beta: self.beta,
            per_request: if self.baseline {
                self.beta * lowest
            } else {
                0.0
            },
            scale: self.reward_scale,
        }
    }
}

// === impl Learner ===

impl Learner {
    /// Random networks.
    ///
    /// # Errors
    /// Settings that make no sense.
    pub fn try_new(task: &Task<'_>) -> Result<Self, TrainError> {
        task.settings.check()?;
        let mut random = Stream::new(task.seed, Purpose::Learning, u64::MAX);
        let mut policy = Mlp::new(&task.meta.layers, FIRST_POLICY, &mut random);
        if task.settings.proportional {
            let shares = task.yard.proportional().shares;
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

    /// Whether its networks are of this task's shape.
    #[must_use]
    pub fn fits(&self, task: &Task<'_>) -> bool {
        let parameters =
            |widths: &[usize]| -> usize { widths.windows(2).map(|w| (w[0] + 1) * w[1]).sum() };
        self.policy.len() == parameters(&task.meta.layers)
            && self.value.len() == parameters(&value_widths(task.meta))
    }

    /// The policy as it is served.
    ///
    /// # Errors
    /// The training diverged: some weight is not finite.
    pub fn network(&self, task: &Task<'_>) -> Result<Network, WeightsError> {
        let policy = Mlp::of(&task.meta.layers, self.policy.clone());
        Network::try_new(task.meta.clone(), policy.layers())
    }

    /// One update; `progress` from 0 to 1 says how far the training is.
    ///
    /// # Errors
    /// The simulator's, or the training diverged.
    pub fn update(&mut self, task: &Task<'_>, progress: f64) -> Result<Seen, TrainError> {
        let settings = task.settings;
        let network = self.network(task)?;
        let batches = &task.meta.batches;
        let heads = Heads::new(task.yard.instances(), task.yard.models.len(), batches);
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
        let (mut batch, mut seen) = Batch::of(&trajectories, &value, settings, &is_few);
        let counts = seen.counts.iter();
        let rewards = counts.map(|slot| slot.reward(settings.alpha, settings.beta));
        seen.reward = rewards.sum::<f64>() / batch.slots.len() as f64;
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
        seen.clipped = clipped;
        Ok(seen)
    }

    fn collect(
        &self,
        task: &Task<'_>,
        network: &Network,
        heads: &Heads,
        sigma: f64,
        seed: u64,
    ) -> Result<Vec<Trajectory>, SimError> {
        let settings = task.settings;
        collect(&Collect {
            yard: task.yard,
            scenario: task.scenario,
            kind: task.kind,
            network,
            heads,
            sigma,
            envs: settings.envs,
            slots: settings.slots / settings.envs,
            warm_up: settings.warm_up,
            reward: settings.reward(task.yard),
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

// === impl Batch ===

impl Batch {
    /// Joins trajectories and estimates what their actions were worth.
    fn of(
        trajectories: &[Trajectory],
        value: &Mlp,
        settings: &Settings,
        is_few: &[bool],
    ) -> (Self, Seen) {
        let (mut batch, mut seen) = (Self::default(), Seen::default());
        let mut pass = Pass::default();
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
            for (all, one) in seen.counts.iter_mut().zip(&one.counts) {
                all.add(one);
            }
        }
        let count = batch.targets.len().max(1) as f64;
        let variance = squares / count - (sum / count).powi(2);
        seen.unexplained = errors / count / variance.max(f64::MIN_POSITIVE);
        batch.normalise(is_few, settings);
        (batch, seen)
    }

    /// Brings advantages to mean 0 and deviation 1, all together or, as far as `balance` says,
    /// apart for slots that follow one with few arrivals and for the others.
    fn normalise(&mut self, is_few: &[bool], settings: &Settings) {
        normalise(&mut self.advantages);
        let limit = settings.advantage_max;
        // What is cut off makes the deviation smaller, and is cut off once more.
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

    /// Leaves out some of the slots with few arrivals and lets the others count for them.
    fn thin(&mut self, trajectories: &[Trajectory], share: f64, random: &mut Stream) {
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

/// Whether each slot follows one with fewer arrivals than the mean.
fn after_few(trajectories: &[Trajectory]) -> Vec<bool> {
    let arrivals = || trajectories.iter().flat_map(|one| &one.arrivals);
    let total: u64 = arrivals().map(|&count| u64::from(count)).sum();
    let mean = total as f64 / arrivals().count().max(1) as f64;
    let before = trajectories.iter().flat_map(|one| {
        let first = std::iter::once(&one.arrivals_before);
        first.chain(&one.arrivals).take(one.arrivals.len())
    });
    before.map(|&count| f64::from(count) < mean).collect()
}

/// Takes off what a parabola in the arrivals explains, in each group; slots whose arrivals are
/// few and many have one each, so that the slots in which bursts begin bend nobody else's.
fn regress(trajectories: &mut [Trajectory], is_few: &[bool]) {
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

/// Least squares of y by 1, x, x^2, a little drawn to 0 so that few points have one too.
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
    // Gauss and Jordan; the matrix is positive definite.
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

/// Mean 0, deviation 1.
fn normalise(numbers: &mut [f32]) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let squares = numbers.iter().map(|&x| (f64::from(x) - mean).powi(2));
    let deviation = libm::sqrt(squares.sum::<f64>() / count).max(1e-8);
    for x in numbers {
        *x = ((f64::from(*x) - mean) / deviation) as f32;
    }
}

/// For each epoch the positions in another order (Fisher and Yates).
fn orders(kept: &[u32], epochs: usize, random: &mut Stream) -> Vec<Vec<u32>> {
    let shuffled = |_| {
        let mut order = kept.to_vec();
        for i in (1..order.len()).rev() {
            order.swap(i, (random.uniform() * (i + 1) as f64) as usize);
        }
        order
    };
    (0..epochs).map(shuffled).collect()
}

/// Eq. 10, and the share of samples that the last epoch clipped.
#[allow(clippy::too_many_arguments)] // One argument per part of the formula.
fn improve_policy(
    mut policy: Mlp,
    adam: &mut Adam,
    batch: &Batch,
    orders: &[Vec<u32>],
    heads: &Heads,
    settings: &Settings,
    sigma: f64,
    rate: f32,
) -> (Mlp, f64) {
    let (n, models) = (
        heads.instances,
        batch.pairs.len() / batch.slots.len().max(1),
    );
    let outputs = heads.outputs();
    let mut gradient = vec![0.0; policy.parameters.len()];
    let (mut pass, mut slopes, mut picks) = (Pass::default(), Vec::new(), Vec::new());
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
                    // The minimum of eq. 10 has no slope where clipping holds it back.
                    let held = match advantage > 0.0 {
                        true => ratio > 1.0 + settings.clip,
                        false => ratio < 1.0 - settings.clip,
                    };
                    clipped += usize::from(held);
                    let scale = if held {
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

/// The mean squared error of the values (Algorithm 1, line 7).
fn improve_value(
    mut value: Mlp,
    adam: &mut Adam,
    batch: &Batch,
    orders: &[Vec<u32>],
    settings: &Settings,
    rate: f32,
) -> Mlp {
    let mut gradient = vec![0.0; value.parameters.len()];
    let (mut pass, mut slopes, mut picks) = (Pass::default(), Vec::new(), Vec::new());
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
    fn what_arrives_is_taken_off_and_what_is_done_stays() {
        // Rewards are a line in the arrivals, and 1 more where something good was done.
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
