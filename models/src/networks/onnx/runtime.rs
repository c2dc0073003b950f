//! The interface to onnxruntime, with or without the feature `ort`.

use std::path::Path;
use std::sync::Arc;

use super::spec::OnnxSpec;
use crate::error::ModelError;
use crate::networks::staged::StagedModel;

/// The reason why graphs cannot be served.
#[cfg(not(feature = "ort"))]
const ABSENT: &str = "this program was built without onnxruntime: build it with `--features ort`";

/// Sets the file from which onnxruntime is loaded; it takes precedence over `ORT_DYLIB_PATH`. Has
/// no effect without the feature `ort`.
pub fn use_library(file: &Path) {
    #[cfg(feature = "ort")]
    super::library::prefer(file);
    #[cfg(not(feature = "ort"))]
    let _ = file;
}

/// Whether ONNX variants can be served: loads onnxruntime unless it is loaded.
///
/// # Errors
/// This was built without the feature `ort`, or the library is missing or cannot be used; the text
/// names the reason.
pub fn ready() -> Result<(), String> {
    #[cfg(feature = "ort")]
    return super::library::environment().map(|_| ());
    #[cfg(not(feature = "ort"))]
    Err(ABSENT.to_owned())
}

/// Opens the graph in `file` as a network; `card` is the file that `spec` was read from.
///
/// # Errors
/// onnxruntime cannot be loaded, or refuses the graph.
#[cfg(feature = "ort")]
pub(crate) fn open(
    file: &Path,
    card: &Path,
    spec: &OnnxSpec,
) -> Result<Arc<dyn StagedModel>, ModelError> {
    Ok(Arc::new(super::session::GraphSession::open(
        file, card, spec,
    )?))
}

/// The error that this was built without onnxruntime.
#[cfg(not(feature = "ort"))]
pub(crate) fn open(
    file: &Path,
    _: &Path,
    _: &OnnxSpec,
) -> Result<Arc<dyn StagedModel>, ModelError> {
    Err(ModelError::weights(file, ABSENT))
}
