//! From a text's tokens to one vector, as sentence-transformers does.
//!
//! The way is part of a model: another one gives vectors that look right and compare wrong. It is
//! read from the files that sentence-transformers writes, or said in the card, and never guessed.

use std::path::Path;

use candle_core::{DType, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::stated::{agree, json};
use crate::error::ModelError;

/// Least number of tokens that a mean is divided by, as in sentence-transformers.
const COUNT_MIN: f64 = 1e-9;

/// Least length that an embedding is divided by, as in PyTorch's `normalize`.
const LENGTH_MIN: f64 = 1e-12;

/// Added to tokens that are no part of a text before a maximum is taken.
const FAR_BELOW: f64 = 1e9;

/// The reason why a card without a way is refused.
const MISSING: &str = "missing: set it (pooling: mean, cls, max or last-token; normalise: true or false), or copy \
     modules.json and 1_Pooling/config.json of sentence-transformers next to the card";

/// One vector of the vectors of a text's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The first one, which is a special token.
    Cls,
    /// The largest value of each channel.
    Max,
    /// The last one.
    LastToken,
}

/// From tokens to an embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentencePooling {
    pub(super) pooling: Pooling,
    /// Whether an embedding is scaled to length 1.
    pub(super) normalise: bool,
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    /// Python's name of its class.
    r#type: String,
}

/// `1_Pooling/config.json`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingConfig {
    #[serde(rename = "pooling_mode_cls_token")]
    cls: bool,
    #[serde(rename = "pooling_mode_mean_tokens")]
    mean: bool,
    #[serde(rename = "pooling_mode_max_tokens")]
    max: bool,
    #[serde(rename = "pooling_mode_lasttoken")]
    last: bool,
    #[serde(rename = "pooling_mode_mean_sqrt_len_tokens")]
    mean_sqrt: bool,
    #[serde(rename = "pooling_mode_weightedmean_tokens")]
    weighted_mean: bool,
}

/// The settings in the files next to the card.
#[derive(Default)]
struct Stated {
    pooling: Option<Pooling>,
    normalise: Option<bool>,
}

// === impl SentencePooling ===

impl SentencePooling {
    /// Reads the files next to a card that says this.
    pub(super) fn read(
        card: &Path,
        pooling: Option<Pooling>,
        normalise: Option<bool>,
    ) -> std::result::Result<Self, ModelError> {
        let stated = Stated::read(card.parent().unwrap_or(Path::new(".")))?;
        Ok(Self {
            pooling: agree(card, "pooling", pooling, stated.pooling, MISSING)?,
            normalise: agree(card, "normalise", normalise, stated.normalise, MISSING)?,
        })
    }

    /// Hidden states `[batch, tokens, hidden]` and mask `[batch, tokens]` to `[batch, hidden]`.
    pub(super) fn forward(self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        // Sums over a text, and squares, exceed the range of half precision.
        let (hidden, mask) = (&hidden.to_dtype(DType::F32)?, mask.to_dtype(DType::F32)?);
        let pooled = match self.pooling {
            Pooling::Mean => {
                let count = mask.sum_keepdim(1)?.maximum(COUNT_MIN)?;
                weighted_sum(hidden, &mask)?.broadcast_div(&count)?
            }
            Pooling::Cls => hidden.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?,
            Pooling::Max => {
                let outside = mask.affine(FAR_BELOW, -FAR_BELOW)?.unsqueeze(2)?;
                hidden.broadcast_add(&outside)?.max(1)?
            }
            Pooling::LastToken => {
                let next = mask
                    .narrow(1, 1, mask.dim(1)? - 1)?
                    .pad_with_zeros(1, 0, 1)?;
                weighted_sum(hidden, &(mask - next)?)?
            }
        };
        if !self.normalise {
            return Ok(pooled);
        }
        let length = pooled.sqr()?.sum_keepdim(1)?.sqrt()?.maximum(LENGTH_MIN)?;
        pooled.broadcast_div(&length)
    }
}

/// `[batch, tokens, hidden]` and weights `[batch, tokens]` to `[batch, hidden]`.
fn weighted_sum(hidden: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let weights = weights.unsqueeze(1)?.contiguous()?;
    weights.matmul(&hidden.contiguous()?)?.squeeze(1)
}

// === impl Stated ===

impl Stated {
    fn read(dir: &Path) -> std::result::Result<Self, ModelError> {
        let file = dir.join("modules.json");
        let Some(modules) = json::<Vec<Module>>(&file)? else {
            let config = dir.join("1_Pooling").join("config.json");
            return Ok(Self {
                pooling: pooling(&config)?,
                normalise: None,
            });
        };
        let mut stated = Self {
            pooling: None,
            normalise: Some(false),
        };
        for (at, module) in modules.iter().enumerate() {
            let class = module.r#type.rsplit('.').next().unwrap_or_default();
            match class {
                "Transformer" => {}
                "Pooling" if Path::new(&module.path).file_name() == Some(module.path.as_ref()) => {
                    stated.pooling = pooling(&dir.join(&module.path).join("config.json"))?;
                }
                "Normalize" => stated.normalise = Some(true),
                _ => {
                    let reason = format!(
                        "`{}` at `{}` cannot be served: export the model to ONNX",
                        module.r#type, module.path
                    );
                    return Err(ModelError::field(&file, format!("[{at}].type"), reason));
                }
            }
        }
        Ok(stated)
    }
}

/// The pooling of a `config.json`, if there is one.
fn pooling(file: &Path) -> std::result::Result<Option<Pooling>, ModelError> {
    let Some(config) = json::<PoolingConfig>(file)? else {
        return Ok(None);
    };
    let modes = [
        (config.mean, "pooling_mode_mean_tokens", Some(Pooling::Mean)),
        (config.cls, "pooling_mode_cls_token", Some(Pooling::Cls)),
        (config.max, "pooling_mode_max_tokens", Some(Pooling::Max)),
        (
            config.last,
            "pooling_mode_lasttoken",
            Some(Pooling::LastToken),
        ),
        (config.mean_sqrt, "pooling_mode_mean_sqrt_len_tokens", None),
        (
            config.weighted_mean,
            "pooling_mode_weightedmean_tokens",
            None,
        ),
    ];
    let set: Vec<_> = modes.into_iter().filter(|(is_set, ..)| *is_set).collect();
    match set.as_slice() {
        [(_, _, Some(pooling))] => Ok(Some(*pooling)),
        [(_, field, None)] => {
            let reason = "cannot be served: export the model to ONNX";
            Err(ModelError::field(file, (*field).to_owned(), reason))
        }
        [] => Err(ModelError::field(file, "pooling_mode", "none is true")),
        several => {
            let names: Vec<_> = several.iter().map(|(_, name, _)| *name).collect();
            let reason = format!("{} at once cannot be served", names.join(" and "));
            Err(ModelError::field(file, "pooling_mode", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::Device;

    use super::*;

    const MEAN: &str = r#"{"word_embedding_dimension": 2, "pooling_mode_mean_tokens": true}"#;

    fn read(
        dir: &tempfile::TempDir,
        pooling: Option<Pooling>,
        normalise: Option<bool>,
    ) -> std::result::Result<SentencePooling, String> {
        let card = dir.path().join("model.toml");
        SentencePooling::read(&card, pooling, normalise).map_err(|error| error.to_string())
    }

    fn folder(modules: &[&str], pooling: Option<&str>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let entries = modules.iter().map(|class| {
            let path = if *class == "Pooling" { "1_Pooling" } else { "" };
            serde_json::json!({"idx": 0, "path": path,
                               "type": format!("sentence_transformers.models.{class}")})
        });
        let entries: Vec<_> = entries.collect();
        if !entries.is_empty() {
            let text = serde_json::to_string(&entries).unwrap();
            std::fs::write(dir.path().join("modules.json"), text).unwrap();
        }
        if let Some(text) = pooling {
            std::fs::create_dir(dir.path().join("1_Pooling")).unwrap();
            std::fs::write(dir.path().join("1_Pooling/config.json"), text).unwrap();
        }
        dir
    }

    /// Two texts of two channels, of three and of two tokens.
    fn pooled(pooling: Pooling, normalise: bool) -> Vec<Vec<f32>> {
        let hidden = [
            [[3.0_f32, 4.0], [-1.0, 0.0], [1.0, -7.0]],
            [[-2.0, -2.0], [-4.0, -6.0], [9.0, 9.0]],
        ];
        let hidden = Tensor::new(&hidden, &Device::Cpu).unwrap();
        let mask = Tensor::new(&[[1.0_f32, 1.0, 1.0], [1.0, 1.0, 0.0]], &Device::Cpu).unwrap();
        let pooling = SentencePooling { pooling, normalise };
        pooling.forward(&hidden, &mask).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn tokens_beyond_a_text_do_not_count() {
        assert_eq!(pooled(Pooling::Mean, false), [[1.0, -1.0], [-3.0, -4.0]]);
        assert_eq!(pooled(Pooling::Cls, false), [[3.0, 4.0], [-2.0, -2.0]]);
        assert_eq!(pooled(Pooling::Max, false), [[3.0, 4.0], [-2.0, -2.0]]);
        assert_eq!(
            pooled(Pooling::LastToken, false),
            [[1.0, -7.0], [-4.0, -6.0]]
        );
        assert_eq!(pooled(Pooling::Cls, true)[0], [0.6, 0.8]);
    }

    #[test]
    fn the_models_own_files_decide() {
        let dir = folder(&["Transformer", "Pooling", "Normalize"], Some(MEAN));
        let way = read(&dir, None, None).unwrap();
        assert_eq!((way.pooling, way.normalise), (Pooling::Mean, true));
        let dir = folder(
            &["Transformer", "Pooling"],
            Some(r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#),
        );
        let way = read(&dir, None, None).unwrap();
        assert_eq!((way.pooling, way.normalise), (Pooling::Cls, false));
        let refused = read(&dir, Some(Pooling::Mean), None).unwrap_err();
        assert!(
            refused.contains(r#""mean", the model's own files say "cls""#),
            "{refused}"
        );
    }

    #[test]
    fn a_way_that_is_not_known_is_refused() {
        let none = folder(&[], None);
        let refused_none = read(&none, None, Some(true)).unwrap_err();
        assert!(
            refused_none.contains("architecture.pooling`: missing"),
            "{refused_none}"
        );
        let half = folder(&[], Some(MEAN));
        let refused_half = read(&half, None, None).unwrap_err();
        assert!(
            refused_half.contains("architecture.normalise`: missing"),
            "{refused_half}"
        );
        let said = read(&half, None, Some(true)).unwrap();
        assert_eq!(said.pooling, Pooling::Mean);
        for (modules, config, reason) in [
            (
                &["Transformer", "Dense"][..],
                MEAN,
                "models.Dense` at `` cannot be served",
            ),
            (
                &["Pooling"],
                r#"{"pooling_mode_weightedmean_tokens": true}"#,
                "weightedmean",
            ),
            (
                &["Pooling"],
                r#"{"pooling_mode_mean_tokens": 3}"#,
                "pooling_mode_mean_tokens",
            ),
            (&["Pooling"], "{}", "none is true"),
            (
                &["Pooling"],
                r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}"#,
                "at once cannot be served",
            ),
        ] {
            let text = read(&folder(modules, Some(config)), None, Some(true)).unwrap_err();
            assert!(text.contains(reason), "{text}");
        }
    }
}
