//! The numbers of the method, as published and as they are better.

use serde::{Deserialize, Serialize};

use crate::rollout::Reward;
use crate::train::TrainError;
use crate::yard::Yard;

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

    pub(crate) fn check(&self) -> Result<(), TrainError> {
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

    pub(crate) fn reward(&self, yard: &Yard) -> Reward {
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
