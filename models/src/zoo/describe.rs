//! Cards from a model's own files: an ONNX graph, a folder as Hugging Face publishes it, or a file of
//! weights.
//!
//! A fact that the files do not have is asked for in a [`Statement`], and never guessed: whether
//! numbers are scores of classes, for example. Quality is declared by the model's owner.

mod encoder;
mod export;
mod graph;
mod image;
mod labels;
mod statement;
mod timm;
mod vision;
mod vit;
mod weights;

use std::path::Path;

use serde::Deserialize;

pub use self::image::Preprocessing;
pub use self::statement::{Description, Statement};
use crate::error::ModelError;
use crate::networks::bert;
use crate::regular_file;

/// The field of a folder's `config.json` that names its family.
#[derive(Deserialize)]
struct Family {
    model_type: Option<String>,
    /// Of timm, instead of a `model_type`.
    pretrained_cfg: Option<serde_json::Value>,
}

/// Describes the model in `source`: a file `*.onnx` or `*.safetensors`, or a folder with
/// `config.json` and `model.safetensors`, and for texts `tokenizer.json`.
///
/// # Errors
/// The source is none of them, cannot be read, or lacks a fact; the text says which option has it.
pub fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let extension = source.extension().unwrap_or_default();
    if extension == "onnx" {
        return graph::describe(source, statement);
    }
    if extension == "safetensors" {
        return weights::describe(source, statement);
    }
    let config = source.join("config.json");
    if config.is_file() {
        return folder(source, &config, statement);
    }
    let reason = format!(
        "is neither a file `*.onnx` or `*.safetensors` nor a folder with config.json and \
         model.safetensors. {}",
        export::WEIGHTS
    );
    Err(ModelError::weights(source, reason))
}

/// Describes a folder of Hugging Face.
fn folder(source: &Path, config: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let text =
        regular_file::read_to_string(config).map_err(|source| ModelError::io(config, source))?;
    let family: Family = serde_json::from_str(&text)
        .map_err(|error| ModelError::weights(config, error.to_string()))?;
    if family.pretrained_cfg.is_some() {
        return timm::describe(source, config, statement);
    }
    let model_type = family.model_type.unwrap_or_default();
    if vit::MODEL_TYPES.contains(&model_type.as_str()) {
        return vit::describe(source, statement);
    }
    if !encoder::MODEL_TYPES.contains(&model_type.as_str()) {
        let known = [&encoder::MODEL_TYPES[..], &vit::MODEL_TYPES].concat();
        let reason = format!(
            "`{model_type}` is unknown here; known: {}. {}",
            known.join(", "),
            export::FOLDER
        );
        return Err(ModelError::field(config, "model_type", reason));
    }
    if let Preprocessing::File(_) = statement.preprocessing {
        let reason = "takes no images: --image is for networks over images";
        return Err(ModelError::weights(source, reason));
    }
    encoder::describe(source, statement)
}

/// Whether the folder of a model with this `model_type` in its `config.json` is described. Other
/// models are exported to ONNX.
pub fn reads_model_type(model_type: &str) -> bool {
    bert::knows(model_type) || vit::MODEL_TYPES.contains(&model_type)
}
