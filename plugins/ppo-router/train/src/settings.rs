//! The hyperparameters, published and improved.

use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::rollout::Reward;
use crate::test_bed::TestBed;

/// The hyperparameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSettings {
    /// Widths of the hidden layers of both networks.
    pub hidden: Vec<usize>,
    /// Slots per update, T.
    pub slots: usize,
    /// Number of environments.
    pub envs: usize,
    /// Slots of each environment before the recorded ones.
    pub warm_up: usize,
    /// Passes over the slots of an update.
    pub epochs: usize,
    /// Slots per gradient.
    pub minibatch: usize,
    /// Discount, gamma.
    pub gamma: f32,
    /// Lambda of generalised advantages.
    pub lambda: f32,
    /// Clipping threshold, epsilon.
    pub clip: f32,
    /// Adam's learning rate at the first and the last update; linear between.
    pub rate: (f32, f32),
    /// Standard deviation of the noise, sigma, at the first and the last update; linear between.
    pub sigma: (f64, f64),
    /// Weight of rejections (eq. 2), alpha.
    pub alpha: f64,
    /// Weight of accuracy (eq. 2), beta.
    pub beta: f64,
    /// Subtracts the lowest accuracy per request from the reward: see [`Reward::per_request`].
    pub baseline: bool,
    /// Factor of the rewards.
    pub reward_scale: f64,
    /// Weight of the batch heads' entropy.
    pub entropy: f32,
    /// Share of slots with fewer arrivals than the mean that is used, each weighted by its inverse:
    /// most slots are of the normal state and similar.
    pub thin: f64,
    /// How far advantages are normalised separately in slots after few arrivals and in the others,
    /// 0 to 1, so that bursts do not drown the normal state.
    pub balance: f32,
    /// Normalised advantages are clamped to this, so that the start of a burst does not outweigh
    /// hundreds of slots. Infinite for no limit.
    pub advantage_max: f32,
    /// Subtracts from the rewards the least-squares parabola in the slot's arrivals, separately for
    /// slots after few arrivals and for the others.
    pub regress: bool,
    /// The critic's learning rate over the policy's.
    pub critic_rate: f32,
    /// Error of the critic, in rewards, beyond which its loss is linear (Huber). A baseline need
    /// not be the mean.
    pub critic_error_max: f32,
    /// The first policy has shares in proportion to the service rates, instead of equal ones.
    pub proportional: bool,
}

// === impl TrainSettings ===

impl Default for TrainSettings {
    fn default() -> Self {
        Self::paper()
    }
}

impl TrainSettings {
    /// Sections 5.1.4 and 5.1.5. Open in the paper: the environments (five of 10,000 slots, so that
    /// an update has more than three bursts), and the scale of rewards.
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

    /// Better results from fewer slots: many small steps, falling noise and rate, a horizon as long
    /// as an action's effects, a proportional first policy, short environments that begin in a
    /// burst, and a quarter of the normal state's slots (state-balanced sampling).
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

    /// Replaces hyperparameters by name.
    ///
    /// # Errors
    /// An unknown name, or a value of another type.
    pub fn with(
        self,
        given: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, TrainError> {
        let wrong = |error: serde_json::Error| TrainError::Settings {
            field: "JSON".to_owned(),
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
            return wrong("hidden", "must be above 0");
        }
        if self.envs == 0 || self.slots < self.envs {
            return wrong("slots", "must be at least one per environment");
        }
        if self.minibatch == 0 || self.epochs == 0 {
            return wrong("minibatch", "and epochs must be above 0");
        }
        if !share(self.gamma) || !share(self.lambda) || !share(self.clip) {
            return wrong("gamma", "lambda and clip must be 0 to 1");
        }
        if !(positive(self.sigma.0) && positive(self.sigma.1)) {
            return wrong("sigma", "must be above 0");
        }
        if !(positive(f64::from(self.rate.0)) && positive(f64::from(self.rate.1))) {
            return wrong("rate", "must be above 0");
        }
        if !share(self.balance) {
            return wrong("balance", "must be 0 to 1");
        }
        let limits = [self.advantage_max, self.critic_error_max];
        if !limits.iter().all(|&limit| limit > 0.0) {
            return wrong("advantage_max", "and critic_error_max must be above 0");
        }
        if !(positive(self.thin) && self.thin <= 1.0) {
            return wrong("thin", "must be above 0 and at most 1");
        }
        if !positive(self.reward_scale) {
            return wrong("reward_scale", "must be above 0");
        }
        Ok(())
    }

    pub(crate) fn reward(&self, test_bed: &TestBed) -> Reward {
        let accuracies = test_bed.models.iter().map(|model| model.accuracy);
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
