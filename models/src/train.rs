//! Training: from a seed to a folder of the zoo.
//!
//! A [`Recipe`] says what an application is and which networks to fit; [`train`] is the same run
//! for all of them. Every step draws fresh inputs from the generator, so there is no training set
//! to overfit and no epoch; accuracies are measured on a validation set from a seed of its own.

mod cards;
mod evaluate;
mod fit;
mod recipe;
mod recipes;
mod run;
mod sneakpeek;
mod validate;

use std::path::PathBuf;

use indicatif::ProgressBar;

pub use recipe::{AppFacts, EvidenceRecipe, Prepare, Recipe, Scale, VariantRecipe};
pub use recipes::{APPS, recipe};
pub use run::{SNEAKPEEK, parts, train};
pub use validate::validate;

/// What a training run is asked for.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Folder of the application, for example `models/zoo/heart`; made when missing.
    pub out: PathBuf,
    /// Seed of weights and data.
    pub seed: u64,
    /// A run of seconds that exercises every step and yields poor models; for tests.
    pub quick: bool,
    /// What to train: names of variants, and `sneakpeek` for the evidence. Everything when `None`.
    /// The card of the application is written in either case; what is not trained stays as it is.
    pub variants: Option<Vec<String>>,
}

/// What a training run made.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainReport {
    /// One entry per trained variant.
    pub variants: Vec<TrainedVariant>,
    /// Accuracy of the nearest-neighbour evidence on the validation set, when it was trained.
    pub sneakpeek_accuracy: Option<f64>,
}

/// One trained variant.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedVariant {
    /// Its name.
    pub name: String,
    /// Trained numbers.
    pub parameters: u64,
    /// Accuracy on the validation set per exit, shallowest first.
    pub exit_accuracies: Vec<f64>,
    /// Mean training loss over the first tenth of the steps, in nats.
    pub first_loss: f64,
    /// Mean training loss over the last tenth.
    pub last_loss: f64,
}

/// Watches a training run.
pub trait Progress: Sync {
    /// A phase of `steps` steps begins.
    fn begin(&self, phase: &str, steps: u64);
    /// One step is done; `note` says how it went.
    fn step(&self, note: &str);
    /// The phase is over.
    fn end(&self);
}

/// Watches nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _phase: &str, _steps: u64) {}
    fn step(&self, _note: &str) {}
    fn end(&self) {}
}

impl Progress for ProgressBar {
    fn begin(&self, phase: &str, steps: u64) {
        self.reset();
        self.set_length(steps);
        self.set_prefix(phase.to_owned());
    }

    fn step(&self, note: &str) {
        self.set_message(note.to_owned());
        self.inc(1);
    }

    fn end(&self) {
        self.finish();
    }
}
