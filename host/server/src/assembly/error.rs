//! The errors of an assembly.

use std::path::PathBuf;

use switchyard_executor::manifest::ManifestError;
use switchyard_models::ModelError;
use switchyard_profile::{MeasureError, ProfileError, ProfileFileError};
use thiserror::Error;

use crate::config::Origin;

use super::hardware::HardwareError;

/// Why a configuration cannot be served.
#[derive(Debug, Error)]
pub enum AssemblyError {
    /// The zoo cannot be used.
    #[error(
        "{origin}: app {app}: {error}{hint}; `--zoo`, or `zoo` in [[app]], is the folder that has the \
         folder {app}"
    )]
    Zoo {
        /// Where the app is named.
        origin: Origin,
        /// The app.
        app: String,
        /// The error in its folder.
        error: Box<ModelError>,
        /// The app of the zoo with the closest name, in words.
        hint: String,
    },
    /// The model that counts an app's evidence cannot be read.
    #[error("app {app}: {error}")]
    Evidence {
        /// The app.
        app: String,
        /// The error in its folder.
        error: Box<ModelError>,
    },
    /// The zoo has no such variant.
    #[error("{origin}: {field}: `{variant}`, not in {choice}")]
    Variant {
        /// Where the variant is named.
        origin: Origin,
        /// The field, such as `app[0].variants[1]`.
        field: String,
        /// The name.
        variant: String,
        /// The folder of its app, the variants in it and the closest of them, in words.
        choice: String,
    },
    /// A card of the zoo cannot be served as configured.
    #[error("{origin}: {error}")]
    Manifest {
        /// Where the app is named.
        origin: Origin,
        /// The field and the reason.
        error: ManifestError,
    },
    /// A worker needs a core, a device or memory that this machine does not have.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// A worker on another machine has other models than its pool.
    #[error("worker {worker}: remote.{reason}")]
    Remote {
        /// The worker.
        worker: String,
        /// The field and the reason.
        reason: String,
    },
    /// A worker cannot keep its pinned variants.
    #[error("worker {worker}: pin: {reason}")]
    Pin {
        /// The worker.
        worker: String,
        /// The reason.
        reason: String,
    },
    /// The profile that the configuration names cannot be used.
    #[error(
        "{error}; measure it again with `switchyard profile --out {}`, or leave out `file` in [profile]",
        file.display()
    )]
    ChosenProfile {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: ProfileError,
    },
    /// The profile cannot be used.
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
    /// Itself, or the errors that it has inside.
    pub(crate) fn each(self) -> Vec<Self> {
        match self {
            Self::Several(errors) => errors,
            one => vec![one],
        }
    }

    /// The app whose folder in the zoo cannot be used.
    pub(crate) fn app_without_folder(&self) -> Option<&str> {
        match self {
            Self::Zoo { app, .. } => Some(app),
            _ => None,
        }
    }

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
