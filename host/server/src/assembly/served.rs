//! Variants and tensors as they are served.

use std::path::PathBuf;

use switchyard_executor::manifest::ManifestError;
use switchyard_models::card::{Task, TensorCard};
use switchyard_models::zoo::{ZooApp, ZooVariant};
use switchyard_models::{Architecture, Precision, onnx};

/// A variant as it is served.
#[derive(Clone, Copy, Debug)]
pub struct ServedVariant<'a> {
    /// Its app.
    pub app: &'a ZooApp,
    /// Its card and files.
    pub variant: &'a ZooVariant,
    /// The precision of its weights.
    pub precision: Precision,
    /// Its name, such as `cnn@int8`.
    pub name: &'a str,
}

/// The inputs and outputs of an app on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct AppTensors {
    /// The kind of its answers.
    pub task: Task,
    /// Inputs of one request.
    pub inputs: Vec<TensorCard>,
    /// Outputs of one answer.
    pub outputs: Vec<TensorCard>,
    /// Folders of its variants, in the catalog's order.
    pub folders: Vec<PathBuf>,
    /// Whether the quality of each variant is known, in the catalog's order.
    pub known_quality: Vec<bool>,
    /// Whether inputs may hold NaN and infinite numbers.
    pub non_finite: bool,
}

// === impl ServedVariant ===

impl ServedVariant<'_> {
    /// Checks that its runtime library is installed: the server refuses to start if it is not, so that
    /// no client gets the error.
    pub(super) fn can_run(&self) -> Result<(), ManifestError> {
        if !matches!(self.variant.card.architecture, Architecture::Onnx(_)) {
            return Ok(());
        }
        onnx::ready().map_err(|reason| ManifestError {
            field: format!("app {}, variant {}", self.app.card.name, self.name),
            reason,
        })
    }
}
