//! Options and results of a training run.

use std::path::PathBuf;

/// Options of a training run.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// Folder of the application, for example `models/zoo/heart`; made when missing.
    pub out: PathBuf,
    /// Seed of weights and data.
    pub seed: u64,
    /// A run of seconds that exercises every step and yields poor models; for tests.
    pub quick: bool,
    /// Parts to train: names of variants, and `sneakpeek` for the evidence; `None` for all of them.
    /// The card of the application is written in either case; the other parts stay unchanged.
    pub variants: Option<Vec<String>>,
}

/// Result of a training run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainReport {
    /// One entry per trained variant.
    pub variants: Vec<TrainedVariant>,
    /// Accuracy of the nearest-neighbour evidence on the validation set, if it was trained.
    pub sneakpeek_accuracy: Option<f64>,
}

/// One trained variant.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedVariant {
    /// Its name.
    pub name: String,
    /// Trained values.
    pub parameters: u64,
    /// Accuracy on the validation set per exit, shallowest first.
    pub exit_accuracies: Vec<f64>,
    /// Mean training loss over the first tenth of the steps, in nats.
    pub first_loss: f64,
    /// Mean training loss over the last tenth.
    pub last_loss: f64,
}
