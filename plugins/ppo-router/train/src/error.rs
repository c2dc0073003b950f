//! Errors of a training.

use std::path::PathBuf;

use ppo_router_net::WeightsError;
use switchyard_sim::{SimError, WorkloadError};
use thiserror::Error;

use crate::test_bed::TestBedError;

/// An error of a training.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The test bed is invalid.
    #[error(transparent)]
    TestBed(#[from] TestBedError),
    /// The workload is invalid.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A hyperparameter is out of range.
    #[error("settings: {field}: {reason}")]
    Settings {
        /// The hyperparameter.
        field: String,
        /// The allowed range.
        reason: String,
    },
    /// An error of the simulator.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Training diverged: weights are not finite.
    #[error("training diverged: {0}")]
    Diverged(#[from] WeightsError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The checkpoint is damaged or of another training.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
}
