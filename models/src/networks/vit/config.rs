//! The fields of Hugging Face's `config.json` that the network depends on and the card lacks.

use std::path::Path;

use serde::Deserialize;

use super::spec::VitSpec;
use crate::error::ModelError;
use crate::regular_file;

#[derive(Deserialize)]
pub(super) struct VitConfig {
    pub(super) layer_norm_eps: f64,
    hidden_act: String,
    hidden_size: usize,
    num_attention_heads: usize,
}

// === impl VitConfig ===

impl VitConfig {
    /// Reads and checks a file.
    pub(super) fn read(file: &Path, spec: &VitSpec) -> Result<Self, ModelError> {
        let text =
            regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
        let mut json = serde_json::Deserializer::from_str(&text);
        let config: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            ModelError::field(file, error.path().to_string(), error.inner().to_string())
        })?;
        let refuse =
            |field: &str, reason: String| Err(ModelError::field(file, field.to_owned(), reason));
        if config.hidden_act != "gelu" {
            let reason = format!(
                "`{}`, only `gelu` is known: export the model to ONNX and run `switchyard add \
                 model.onnx`",
                config.hidden_act
            );
            return refuse("hidden_act", reason);
        }
        if !(config.layer_norm_eps > 0.0 && config.layer_norm_eps < 1.0) {
            let reason = format!("{} is not between 0 and 1", config.layer_norm_eps);
            return refuse("layer_norm_eps", reason);
        }
        for (field, found, name, stated) in [
            ("hidden_size", config.hidden_size, "hidden", spec.hidden),
            (
                "num_attention_heads",
                config.num_attention_heads,
                "heads",
                spec.heads,
            ),
        ] {
            if found != stated {
                let reason = format!("{found}, the card's architecture.{name} is {stated}");
                return refuse(field, reason);
            }
        }
        Ok(config)
    }
}
