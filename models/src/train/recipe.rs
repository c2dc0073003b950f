//! What an application's training is made of; the run in `run` is the same for all of them.

use std::collections::BTreeMap;

use candle_core::Var;

use crate::architecture::Architecture;
use crate::card::{Penalty, TensorCard};
use crate::data::{Data, Sample};
use crate::error::ModelError;
use crate::features::Features;

/// The recipe of one application.
pub trait Recipe: Sync {
    /// What the application is.
    fn facts(&self) -> AppFacts;

    /// Where its samples come from.
    fn data(&self) -> &dyn Data;

    /// Its variants, fastest first.
    fn variants(&self) -> Vec<VariantRecipe>;

    /// The variant whose weights `variant` starts from instead of random ones, wherever a tensor
    /// of the same name and shape exists. It has to be trained before.
    fn starts_from(&self, _variant: &str) -> Option<&'static str> {
        None
    }

    /// Its nearest-neighbour evidence.
    fn evidence(&self) -> EvidenceRecipe;

    /// How large a full run is.
    fn scale(&self) -> Scale;
}

/// What the application card says and training does not measure.
#[derive(Clone, Debug)]
pub struct AppFacts {
    /// Name of its folder.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Class names, by label.
    pub classes: Vec<String>,
    /// Default time from arrival to deadline, in milliseconds.
    pub slo_ms: f64,
    /// Shape of the penalty for a late answer.
    pub penalty: Penalty,
    /// Share of each class in the workload; sums to 1.
    pub workload_mix: Vec<f64>,
    /// Input tensors of one request, in the order in which [`Data::draw`] makes them.
    pub inputs: Vec<TensorCard>,
}

/// One variant to train.
pub struct VariantRecipe {
    /// Name of its folder.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// The network.
    pub architecture: Architecture,
    /// The application's inputs that it reads; all of them when `None`.
    pub inputs: Option<Vec<&'static str>>,
    /// Largest batch it may be given.
    pub max_batch: usize,
    /// Class weights of its training data.
    pub mix: Vec<f64>,
    /// Optimiser steps relative to [`Scale::steps`]: small networks are cheap and slow to settle.
    pub steps_factor: f64,
    /// Learning rate after the warm-up.
    pub peak_rate: f64,
    /// Sets parameters that follow from data and are not trained, before the first step. The
    /// samples hold what the variant reads, nothing else.
    pub prepare: Option<Prepare>,
}

/// See [`VariantRecipe::prepare`].
pub type Prepare = fn(&BTreeMap<String, Var>, &[Sample]) -> Result<(), ModelError>;

/// How the evidence of an application is trained.
#[derive(Clone, Debug)]
pub struct EvidenceRecipe {
    /// What of a request is embedded.
    pub features: Features,
    /// Dimensions of the embedding.
    pub dimensions: usize,
    /// Class weights of the data that the embedding is trained on.
    pub mix: Vec<f64>,
}

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Optimiser steps of a variant whose factor is 1.
    pub steps: u64,
    /// Optimiser steps of the evidence.
    pub evidence_steps: u64,
    /// Samples per step.
    pub batch: usize,
    /// Validation samples of each class.
    pub validation_per_class: usize,
    /// Evidence points of each class.
    pub points_per_class: usize,
}

// === impl Scale ===

impl Scale {
    /// A run of seconds that exercises every step.
    pub(super) fn quick(self) -> Self {
        Self {
            steps: 30,
            evidence_steps: 60,
            validation_per_class: 20,
            points_per_class: 20,
            batch: self.batch.min(32),
        }
    }
}
