//! The errors of an assembly.

use std::path::PathBuf;

use switchyard_executor::manifest::ManifestError;
use switchyard_models::ModelError;
use switchyard_profile::{MeasureError, ProfileError, ProfileFileError};
use thiserror::Error;

use super::hardware::HardwareError;

/// Why a configuration cannot be served.
#[derive(Debug, Error)]
pub enum AssemblyError {
    /// The zoo cannot be used.
    #[error(
        "app {app}: {error}; `--zoo`, or `zoo` in [[app]], is the folder that has the folder {app}"
    )]
    Zoo {
        /// The app.
        app: String,
        /// The error in its folder.
        error: Box<ModelError>,
    },
    /// The zoo has no such variant, or its card cannot be served.
    #[error("{config}: {error}")]
    Manifest {
        /// The configuration.
        config: PathBuf,
        /// The field and the reason.
        error: ManifestError,
    },
    /// A worker needs a core, a device or memory that this machine does not have.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// A worker cannot keep its pinned variants.
    #[error("worker {worker}: pin: {reason}")]
    Pin {
        /// The worker.
        worker: String,
        /// The reason.
        reason: String,
    },
    /// The configured profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The measured profile cannot be saved.
    #[error(transparent)]
    Keep(#[from] ProfileFileError),
    /// The measurement failed or was cancelled.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// Several apps or pools cannot be served; one line each.
    #[error("{}", lines(.0))]
    Several(Vec<Self>),
}

// === impl AssemblyError ===

impl AssemblyError {
    /// All errors as one; none is no error.
    pub(super) fn all(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Self::Several(errors)),
        }
    }
}

fn lines(errors: &[AssemblyError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
