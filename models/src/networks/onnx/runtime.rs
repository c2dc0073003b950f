//! The engine that runs graphs: the machine's onnxruntime where there is one, otherwise the one inside
//! this program.

use std::path::Path;
use std::sync::Once;

use bytes::Bytes;

use super::engine::{Engine, OwnEngine};
use super::file::GraphFile;
use super::header::GraphHeader;
use super::session::GraphSession;
use super::spec::OnnxSpec;
use super::{classic, embedded, images, library, linear};
use crate::error::ModelError;
use crate::networks::graph::Port;

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

/// The name of the engine that runs graphs of neural networks.
pub fn engine_name() -> &'static str {
    match library::environment() {
        Ok(_) => "onnxruntime",
        Err(_) => embedded::NAME,
    }
}

/// The name of the engine that runs a graph.
pub fn engine_of(spec: &OnnxSpec) -> &'static str {
    match library::environment() {
        Ok(_) => engine_name(),
        Err(_) => match spec.engine {
            OwnEngine::Embedded => embedded::NAME,
            OwnEngine::Images => images::NAME,
            OwnEngine::Linear => linear::NAME,
            OwnEngine::Classic => classic::NAME,
        },
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
        Err(_) => own_engine(file, card, spec),
    }
}

/// The engine inside this program that fits the graph.
fn own_engine(file: &Path, card: &Path, spec: &OnnxSpec) -> Result<Box<dyn Engine>, ModelError> {
    let bytes = GraphFile::open(file)?.read()?;
    // The card was completed from an earlier read of the file.
    let header = GraphHeader::parse(file, &bytes)?;
    spec.completes_again(card, &header)?;
    let bytes = Bytes::from(bytes);
    let (inputs, outputs) = (&spec.inputs, &spec.outputs);
    let packs = !header.convolves;
    match header.engine {
        OwnEngine::Images => {
            if let Some(graph) = images::read(file, &bytes, outputs)? {
                return Ok(Box::new(graph));
            }
        }
        OwnEngine::Linear => {
            let wanted = outputs.iter().filter(|port| spec.wants(&port.name));
            let wanted: Vec<Port> = wanted.cloned().collect();
            if let Some(graph) = linear::read(file, &bytes, inputs, &wanted, packs)? {
                return Ok(Box::new(graph));
            }
        }
        OwnEngine::Classic => return Ok(Box::new(read_classic(file, bytes, spec)?)),
        OwnEngine::Embedded => {}
    }
    let graph = embedded::read(file, bytes.into(), inputs, outputs, packs)?;
    Ok(Box::new(graph))
}

fn read_classic(
    file: &Path,
    bytes: Bytes,
    spec: &OnnxSpec,
) -> Result<classic::ClassicGraph, ModelError> {
    let graph = classic::read(bytes, &spec.inputs, &spec.outputs).map_err(|error| {
        let way_out = embedded::WAY_OUT;
        let reason = format!("the engine in this program cannot run it: {error}; {way_out}");
        ModelError::weights(file, reason)
    })?;
    tracing::debug!(file = %file.display(), bytes = graph.bytes(), "read");
    Ok(graph)
}
