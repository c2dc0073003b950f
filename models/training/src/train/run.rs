//! One training run: its recipe, its streams of random values, its validation set.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use switchyard_models::ModelError;
use switchyard_models::card::{AppCard, SneakPeekCard};

use super::cards;
use super::options::TrainOptions;
use super::progress::Progress;
use super::recipe::{AppFacts, Recipe, TrainingScale};
use crate::data::{Generator, Mix, Sample, stratified};

/// Streams drawn from the run's seed; no sample belongs to two of them.
#[derive(Clone, Copy)]
pub(super) enum RandomStream {
    Training = 1,
    Validation = 2,
    Evidence = 3,
    Weights = 4,
    Prepare = 5,
}

/// One run: its recipe, its options and its validation set.
pub(super) struct TrainingRun<'a> {
    pub(super) recipe: &'a dyn Recipe,
    pub(super) facts: AppFacts,
    pub(super) options: &'a TrainOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) scale: TrainingScale,
    pub(super) validation: Vec<Sample>,
}

// === impl TrainingRun ===

impl<'a> TrainingRun<'a> {
    pub(super) fn new(
        recipe: &'a dyn Recipe,
        options: &'a TrainOptions,
        progress: &'a dyn Progress,
    ) -> Self {
        let scale = recipe.scale();
        let scale = if options.quick { scale.quick() } else { scale };
        let seed = stream_seed(options.seed, RandomStream::Validation);
        Self {
            recipe,
            facts: recipe.facts(),
            options,
            progress,
            scale,
            validation: stratified(recipe.data(), seed, scale.validation_per_class),
        }
    }

    /// Training samples with these class weights.
    pub(super) fn training_data(&self, weights: &[f64]) -> Result<Generator<'a>, ModelError> {
        let seed = self.seed(RandomStream::Training);
        Ok(Generator::new(
            self.recipe.data(),
            seed,
            Mix::try_new(weights)?,
        ))
    }

    /// The seed of one of the run's streams.
    pub(super) fn seed(&self, stream: RandomStream) -> u64 {
        stream_seed(self.options.seed, stream)
    }

    /// The stream that initial weights are drawn from.
    pub(super) fn weights_rng(&self) -> Pcg64 {
        Pcg64::seed_from_u64(self.seed(RandomStream::Weights))
    }

    /// The card of the application.
    pub(super) fn app_card(&self, sneakpeek: Option<SneakPeekCard>) -> AppCard {
        let seed = self.seed(RandomStream::Validation);
        cards::app(&self.facts, self.validation.len(), seed, sneakpeek)
    }
}

/// A seed per stream; streams of one run and of neighbouring seeds do not overlap.
fn stream_seed(seed: u64, stream: RandomStream) -> u64 {
    // Fits i64, the only integer TOML has.
    (seed.wrapping_mul(8) ^ stream as u64) & (i64::MAX as u64)
}
