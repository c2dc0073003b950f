//! The cards of a folder as timm publishes it: weights and a `config.json` that names the network and
//! the way from an image to its tensor.

use std::path::Path;

use serde::Deserialize;

use super::statement::{Description, Statement};
use super::weights::{WeightsHints, describe_with};
use crate::error::ModelError;
use crate::images::{Filter, ImageCard};
use crate::networks::inverted::ImagePadding;
use crate::regular_file;

const WEIGHTS: &str = "model.safetensors";

/// Begins the names of networks with TensorFlow's padding.
const TENSORFLOW: &str = "tf_";

/// The fields of `config.json` that cards have.
#[derive(Deserialize)]
struct Config {
    architecture: String,
    pretrained_cfg: PretrainedConfig,
}

#[derive(Deserialize)]
struct PretrainedConfig {
    /// Channels, height and width.
    input_size: [usize; 3],
    interpolation: String,
    crop_pct: f64,
    crop_mode: Option<String>,
    mean: Vec<f32>,
    std: Vec<f32>,
}

/// Describes the folder `source` with this `config.json`.
pub(super) fn describe(
    source: &Path,
    config: &Path,
    statement: &Statement,
) -> Result<Description, ModelError> {
    let text =
        regular_file::read_to_string(config).map_err(|source| ModelError::io(config, source))?;
    let mut json = serde_json::Deserializer::from_str(&text);
    let read: Config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        ModelError::field(config, error.path().to_string(), error.inner().to_string())
    })?;
    let image = read.pretrained_cfg.image().map_err(|(field, reason)| {
        let reason = format!("{reason}: with `--image none` clients send tensors");
        ModelError::field(config, format!("pretrained_cfg.{field}"), reason)
    });
    let hints = WeightsHints {
        padding: Some(match read.architecture.starts_with(TENSORFLOW) {
            true => ImagePadding::Same,
            false => ImagePadding::Centred,
        }),
        size: Some(read.pretrained_cfg.input_size[2]),
        image: match statement.is_derived_image() {
            true => Some(image?),
            false => None,
        },
    };
    describe_with(&source.join(WEIGHTS), statement, hints)
}

// === impl PretrainedConfig ===

impl PretrainedConfig {
    /// The steps of timm's transform for inference.
    fn image(&self) -> Result<ImageCard, (&'static str, String)> {
        let filter = match self.interpolation.as_str() {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            other => return Err(("interpolation", format!("`{other}` is unknown"))),
        };
        if let Some(mode) = self.crop_mode.as_ref().filter(|mode| *mode != "center") {
            return Err(("crop_mode", format!("`{mode}`, only `center` is known")));
        }
        if !(self.crop_pct > 0.0 && self.crop_pct <= 1.0) {
            return Err((
                "crop_pct",
                format!("{} is not above 0 and up to 1", self.crop_pct),
            ));
        }
        let [_, height, width] = self.input_size;
        if height != width {
            return Err(("input_size", format!("{height} x {width} is not square")));
        }
        Ok(ImageCard {
            size: [height, width],
            resize: Some((height as f64 / self.crop_pct).floor() as usize),
            filter,
            mean: self.mean.clone(),
            deviation: self.std.clone(),
            ..ImageCard::default()
        })
    }
}
