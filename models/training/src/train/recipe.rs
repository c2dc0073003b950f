//! The parts of an application's training; the run is the same for all applications.

use std::collections::BTreeMap;

use candle_core::Var;
use switchyard_models::Architecture;
use switchyard_models::ModelError;
use switchyard_models::card::{Penalty, TensorCard};
use switchyard_models::features::Features;

use crate::data::{Data, Sample};

/// The recipe of one application.
pub trait Recipe: Sync {
    /// The facts of the application.
    fn facts(&self) -> AppFacts;

    /// The generator of its samples.
    fn data(&self) -> &dyn Data;

    /// Its variants, fastest first.
    fn variants(&self) -> Vec<VariantRecipe>;

    /// The variant whose weights `variant` starts from instead of random ones, for every tensor of
    /// the same name and shape. It has to be trained before.
    fn starts_from(&self, _variant: &str) -> Option<&'static str> {
        None
    }

    /// Its nearest-neighbour evidence.
    fn evidence(&self) -> EvidenceRecipe;

    /// Size of a full run.
    fn scale(&self) -> TrainingScale;
}

/// The facts on the application card that training does not measure.
#[derive(Clone, Debug)]
pub struct AppFacts {
    /// Name of its folder.
    pub name: &'static str,
    /// Summary in one line.
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
    /// Summary in one line.
    pub summary: &'static str,
    /// The network.
    pub architecture: Architecture,
    /// The application's inputs that it reads; all of them for `None`.
    pub inputs: Option<Vec<&'static str>>,
    /// Largest batch it may be given.
    pub max_batch: usize,
    /// Class weights of its training data.
    pub mix: Vec<f64>,
    /// Optimiser steps relative to [`TrainingScale::steps`]: small networks are cheap and need more
    /// steps.
    pub steps_factor: f64,
    /// Learning rate after the warm-up.
    pub peak_rate: f64,
    /// Sets parameters that follow from data and are not trained, before the first step. The
    /// samples hold only the inputs that the variant reads.
    pub prepare: Option<Prepare>,
}

/// See [`VariantRecipe::prepare`].
pub type Prepare = fn(&BTreeMap<String, Var>, &[Sample]) -> Result<(), ModelError>;

/// Settings of an application's evidence.
#[derive(Clone, Debug)]
pub struct EvidenceRecipe {
    /// The features of a request that are embedded.
    pub features: Features,
    /// Dimensions of the embedding.
    pub dimensions: usize,
    /// Class weights of the data that the embedding is trained on.
    pub mix: Vec<f64>,
}

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub struct TrainingScale {
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

// === impl VariantRecipe ===

impl VariantRecipe {
    /// A variant that reads all inputs and takes batches of 32, trained on classes as frequent as
    /// `mix`, for `steps_factor` of the recipe's steps at `peak_rate`.
    pub(super) fn new(
        name: &'static str,
        summary: &'static str,
        architecture: Architecture,
        mix: Vec<f64>,
        (steps_factor, peak_rate): (f64, f64),
    ) -> Self {
        Self {
            name,
            summary,
            architecture,
            inputs: None,
            max_batch: 32,
            mix,
            steps_factor,
            peak_rate,
            prepare: None,
        }
    }
}

// === impl TrainingScale ===

impl TrainingScale {
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
