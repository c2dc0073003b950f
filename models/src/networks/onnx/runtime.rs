//! The engine that runs graphs: the machine's onnxruntime where there is one, otherwise the one inside
//! this program.

use std::path::Path;
use std::sync::Once;

use super::engine::Engine;
use super::session::GraphSession;
use super::spec::OnnxSpec;
use super::{embedded, library};
use crate::error::ModelError;

/// The log has the engine once.
static SAID: Once = Once::new();

/// Sets the file from which onnxruntime is loaded; it takes precedence over `ORT_DYLIB_PATH`.
pub fn use_library(file: &Path) {
    library::prefer(file);
}

/// Whether ONNX variants can be served: loads onnxruntime if there is one.
///
/// # Errors
/// A setting names a library that is missing or cannot be used; the text names the reason.
pub fn ready() -> Result<(), String> {
    match library::environment() {
        Err(error) if library::is_chosen() => Err(error),
        _ => {
            SAID.call_once(|| tracing::info!(engine = engine_name(), "ONNX graphs can run"));
            Ok(())
        }
    }
}

/// The name of the engine that runs graphs.
pub fn engine_name() -> &'static str {
    match library::environment() {
        Ok(_) => "onnxruntime",
        Err(_) => embedded::NAME,
    }
}

/// Opens the graph in `file`; `card` is the file that `spec` was read from.
///
/// # Errors
/// The engine refuses the graph.
pub(super) fn engine(
    file: &Path,
    card: &Path,
    spec: &OnnxSpec,
) -> Result<Box<dyn Engine>, ModelError> {
    match library::environment() {
        Ok(_) => Ok(Box::new(GraphSession::open(file, card, spec)?)),
        Err(error) if library::is_chosen() => Err(ModelError::weights(file, error)),
        Err(_) => Ok(Box::new(embedded::open(file, card, spec)?)),
    }
}
