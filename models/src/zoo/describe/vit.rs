//! The cards of a vision transformer as Hugging Face publishes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::export;
use super::labels::labels;
use super::statement::{Description, Statement};
use super::vision::{VisionModel, describe_images};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::inverted::COLOURS;
use crate::networks::vit::{VitNaming, VitSpec};
use crate::regular_file;

/// Values of `model_type` in `config.json`.
pub(super) const MODEL_TYPES: [&str; 1] = ["vit"];

const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";
const LAYERS_PER_STAGE: usize = 2;

/// The fields of `config.json` that cards have.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    architectures: Vec<String>,
    image_size: usize,
    patch_size: usize,
    num_channels: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default)]
    id2label: BTreeMap<String, String>,
}

pub(super) fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let file = source.join(CONFIG);
    let text =
        regular_file::read_to_string(&file).map_err(|source| ModelError::io(&file, source))?;
    let mut json = serde_json::Deserializer::from_str(&text);
    let config: Config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        ModelError::field(&file, error.path().to_string(), error.inner().to_string())
    })?;
    let is_classifier = |name: &String| name == "ViTForImageClassification";
    if !config.architectures.iter().any(is_classifier) {
        let reason = format!(
            "{:?}, only ViTForImageClassification is known. {}",
            config.architectures,
            export::FOLDER
        );
        return Err(ModelError::field(&file, "architectures", reason));
    }
    if config.num_channels != COLOURS {
        let reason = format!(
            "{}, only {COLOURS} are known. {}",
            config.num_channels,
            export::FOLDER
        );
        return Err(ModelError::field(&file, "num_channels", reason));
    }
    let labels = labels(&file, &config.id2label)?;
    let classes = match labels.len() {
        // Files leave the names out if they are numbers.
        0 => statement.classes.len(),
        labels => labels,
    };
    let architecture = Architecture::Vit(VitSpec {
        size: config.image_size,
        patch: config.patch_size,
        classes,
        hidden: config.hidden_size,
        layers: config.num_hidden_layers,
        heads: config.num_attention_heads,
        wide: config.intermediate_size,
        layout: VitNaming::HuggingFace,
        layers_per_stage: LAYERS_PER_STAGE,
    });
    // Before its sizes are used.
    if classes > 0 {
        architecture
            .check()
            .map_err(|bad| ModelError::field(&file, bad.field, bad.reason))?;
    }
    describe_images(
        &source.join(WEIGHTS),
        statement,
        VisionModel {
            name: "vit".to_owned(),
            architecture,
            is_size_known: true,
            size: None,
            image: None,
            labels,
            further: vec![(file, PathBuf::from(CONFIG))],
            notes: Vec::new(),
        },
    )
}
