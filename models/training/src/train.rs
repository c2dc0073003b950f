//! Training: from a seed to a folder of the zoo.
//!
//! A [`Recipe`] holds the facts of an application and the networks to fit; [`train()`] is the same
//! run for all applications. Every step draws fresh inputs from the generator, so there is no
//! training set to overfit and no epoch; accuracies are measured on a validation set from a seed of
//! its own.
//!
//! - `recipe` defines recipes, `recipes` lists those of the shipped applications
//! - `run` is one training run: its seeds, its data, its validation set
//! - `variant` trains one variant in a run, `evidence` the evidence, both by `fit`; `application`
//!   trains all that was asked for and writes the card
//! - `evaluate` measures, also for [`validate()`]; `useful` leaves poor exits out; `cards` writes the
//!   results down

mod application;
mod cards;
mod evaluate;
mod evidence;
mod fit;
mod inputs;
mod options;
mod progress;
mod recipe;
mod recipes;
mod run;
mod useful;
mod validate;
mod variant;

pub use self::application::{parts, train};
pub use self::evidence::SNEAKPEEK;
pub use self::options::{TrainOptions, TrainReport, TrainedVariant};
pub use self::progress::{Progress, Silent};
pub use self::recipe::{AppFacts, EvidenceRecipe, Prepare, Recipe, TrainingScale, VariantRecipe};
pub use self::recipes::{APPS, recipe};
pub use self::useful::USEFUL_SHARE;
pub use self::validate::validate;
