//! Cards from a model's own files: an ONNX graph, or a text encoder as Hugging Face publishes it.
//!
//! A fact that the files do not have is asked for in a [`Statement`], and never guessed: whether
//! numbers are scores of classes, for example. Quality is declared by the model's owner.

mod encoder;
mod export;
mod graph;
mod image;
mod labels;
mod statement;

use std::path::Path;

pub use self::image::Preprocessing;
pub use self::statement::{Description, Statement};
use crate::error::ModelError;

/// Describes the model in `source`: a file `*.onnx`, or a folder with `config.json`,
/// `model.safetensors` and `tokenizer.json`.
///
/// # Errors
/// The source is neither, cannot be read, or lacks a fact; the text says which option has it.
pub fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let is_graph = source
        .extension()
        .is_some_and(|extension| extension == "onnx");
    if is_graph {
        return graph::describe(source, statement);
    }
    if let Preprocessing::File(_) = statement.preprocessing {
        let reason = "takes no images: --image is for a file `*.onnx`";
        return Err(ModelError::weights(source, reason));
    }
    if source.join("config.json").is_file() {
        return encoder::describe(source, statement);
    }
    let reason = "is neither a file `*.onnx` nor a folder with config.json, model.safetensors and \
                  tokenizer.json; export other models to ONNX";
    Err(ModelError::weights(source, reason))
}
