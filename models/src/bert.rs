//! Text encoders of the BERT family with public weights, in Hugging Face's layout.
//!
//! A variant's folder holds `config.json`, `tokenizer.json` and `model.safetensors` as they are
//! published, and a `model.toml` beside them. `config.json` says which family it is (BERT,
//! RoBERTa, DistilBERT) and every size; the card repeats only what must be known without reading
//! it: layers, outputs and the longest text.
//!
//! candle-transformers' own `bert` is not used: its single layers cannot be called from outside,
//! so that it runs whole or not at all; its errors name a tensor without its file; and it has one
//! naming of the three.
//!
//! # Activations
//! Stage 0 takes token ids `[batch, tokens]`, i64, [`NO_TOKEN`](crate::tokens::NO_TOKEN) after
//! the end of a shorter text. Between stages goes `[batch, tokens, hidden + 1]`: the last channel
//! is 1 where there is a token and 0 where there is none, so that one tensor carries the
//! attention mask too. A batch is as long as its longest text, and costs as much for every row.
//! Batches of different lengths are joined by padding with zeros, which the mask reads as "none".

mod config;
mod embeddings;
mod head;
mod layer;
mod names;

use candle_core::{DType, Result, Tensor};
use serde::{Deserialize, Serialize};

use self::config::Config;
use self::embeddings::Embeddings;
use self::head::Head;
use self::layer::Layer;
use self::names::Names;
use crate::architecture::{BadHyperParameter, Spec, check_depth, check_size};
use crate::error::ModelError;
use crate::model::{StagedModel, in_slices};
use crate::params::Params;
use crate::tokens::Tokenizer;

/// Fewest tokens a text may be cut to: what surrounds it takes two.
const TOKENS_MIN: usize = 8;

/// Hyper-parameters of [`Bert`] that `config.json` does not hold or that the card repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertSpec {
    /// What is made of the last layer.
    pub head: HeadKind,
    /// Numbers per answer: classes, or the width of an embedding.
    pub outputs: usize,
    /// Encoder layers; as in `config.json`.
    pub layers: usize,
    /// Encoder layers per stage; the last stage may have fewer.
    #[serde(default = "two")]
    pub layers_per_stage: usize,
    /// Tokens that a text is cut to, special ones included.
    pub max_tokens: usize,
}

/// What is made of the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// The mean over a text's tokens, scaled to length 1, as sentence-transformers does.
    SentenceEmbedding,
    /// The family's classifier on the first token.
    SequenceClassification,
}

/// The network.
pub struct Bert {
    exits: Vec<usize>,
    layers_per_stage: usize,
    hidden: usize,
    /// Numbers per token in the widest place.
    intermediate: usize,
    classes: usize,
    tokenizer: Tokenizer,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    head: Head,
}

fn two() -> usize {
    2
}

// === impl BertSpec ===

impl BertSpec {
    fn stages(&self) -> usize {
        self.layers.div_ceil(self.layers_per_stage)
    }
}

impl Spec for BertSpec {
    fn samples(&self) -> usize {
        1
    }

    fn classes(&self) -> usize {
        match self.head {
            HeadKind::SentenceEmbedding => 1,
            HeadKind::SequenceClassification => self.outputs,
        }
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn embedding(&self) -> Option<usize> {
        (self.head == HeadKind::SentenceEmbedding).then_some(self.outputs)
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.stages()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_size("outputs", self.outputs)?;
        check_depth("layers", self.layers)?;
        check_depth("layers_per_stage", self.layers_per_stage)?;
        check_size("max_tokens", self.max_tokens)?;
        if self.max_tokens < TOKENS_MIN {
            return Err(BadHyperParameter {
                field: "max_tokens".to_owned(),
                reason: format!("{} is less than {TOKENS_MIN}", self.max_tokens),
            });
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(Bert::new(params, self)?))
    }
}

// === impl Bert ===

impl Bert {
    pub(crate) fn new(
        params: &mut Params,
        spec: &BertSpec,
    ) -> std::result::Result<Self, ModelError> {
        let config = Config::read(&params.beside("config.json")?, spec)?;
        let tokenizer = Tokenizer::open(
            &params.beside("tokenizer.json")?,
            spec.max_tokens,
            config.vocab_size,
        )?;
        let names = Names::new(config.family(), params);
        let embeddings = Embeddings::new(params, &names, &config)?;
        let layers = (0..spec.layers)
            .map(|i| Layer::new(params, &names, i, &config))
            .collect::<std::result::Result<_, _>>()?;
        let head = Head::new(params, &names, spec, config.hidden_size)?;
        params.ignore(|name| names.is_unneeded(name));
        Ok(Self {
            exits: vec![spec.stages()],
            layers_per_stage: spec.layers_per_stage,
            hidden: config.hidden_size,
            intermediate: config.intermediate_size.max(config.hidden_size),
            classes: spec.classes(),
            tokenizer,
            embeddings,
            layers,
            head,
        })
    }

    /// Takes activations apart: hidden states, and 1 or 0 per token.
    fn split(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let (_, _, channels) = x.dims3()?;
        if channels != self.hidden + 1 {
            candle_core::bail!(
                "activations have {channels} channels, the model takes {} and a mask",
                self.hidden
            );
        }
        let hidden = x.narrow(2, 0, self.hidden)?.contiguous()?;
        Ok((hidden, x.narrow(2, self.hidden, 1)?.squeeze(2)?))
    }
}

impl StagedModel for Bert {
    fn stages(&self) -> usize {
        self.exits[0]
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn answer_len(&self) -> usize {
        match self.head {
            Head::Embedding => self.hidden,
            Head::Classifier { .. } => self.classes,
        }
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let first = stage * self.layers_per_stage;
        let Some(layers) = self.layers.get(first..) else {
            candle_core::bail!("stage {stage} of {}", self.stages());
        };
        if layers.is_empty() {
            candle_core::bail!("stage {stage} of {}", self.stages());
        }
        let layers = &layers[..self.layers_per_stage.min(layers.len())];
        let tokens = x.dim(1)?;
        in_slices(x, tokens * self.intermediate, |x| {
            let (mut hidden, mask) = if stage == 0 {
                self.embeddings.forward(x)?
            } else {
                self.split(x)?
            };
            let bias = layer::attention_bias(&mask)?;
            for layer in layers {
                hidden = layer.forward(&hidden, &bias)?;
            }
            Tensor::cat(&[hidden, mask.unsqueeze(2)?], 2)
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        if exit != 0 {
            candle_core::bail!("exit {exit} of 1");
        }
        let (hidden, mask) = self.split(x)?;
        self.head.forward(&hidden, &mask)
    }

    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let answers = self.logits(exit, x)?.to_dtype(DType::F32)?;
        match self.head {
            Head::Embedding => Ok(answers),
            Head::Classifier { .. } => candle_nn::ops::softmax_last_dim(&answers),
        }
    }

    /// Pads every part to the longest.
    fn join(&self, parts: &[Tensor]) -> Result<Tensor> {
        let mut longest = 0;
        for part in parts {
            longest = longest.max(part.dim(1)?);
        }
        let padded = parts
            .iter()
            .map(|part| part.pad_with_zeros(1, 0, longest - part.dim(1)?))
            .collect::<Result<Vec<_>>>()?;
        Tensor::cat(&padded, 0)
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        Some(&self.tokenizer)
    }
}
