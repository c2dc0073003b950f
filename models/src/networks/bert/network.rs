//! The network of a text encoder.

use std::sync::Arc;

use candle_core::{D, DType, Result, Tensor};

use super::config::BertConfig;
use super::embeddings::{TokenEmbeddings, token_ids};
use super::encoder::{EncoderLayer, LayerHalf};
use super::head::AnswerHead;
use super::lengths::in_length_groups;
use super::names::TensorNames;
use super::rows::{TextRows, TextSlice, masked, tensor};
use super::spec::{BertHead, BertSpec};
use super::tokenizer;
use crate::error::ModelError;
use crate::networks::slices::{PACKED_SLICE_ACTIVATIONS, in_slices};
use crate::networks::spec::{BadHyperParameter, Spec, check_depth, check_range, check_size};
use crate::networks::staged::{StagedModel, check_only_exit, no_stage};
use crate::networks::task::Task;
use crate::networks::tokens::{NO_TOKEN, Tokenizer};
use crate::ops::attention::AttentionMask;
use crate::ops::flow::Flow;
use crate::ops::tensors::with_values;
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Fewest tokens that a text may be cut to: the special tokens around it take two.
const TOKENS_MIN: usize = 8;

/// Most texts of one request: a pair.
const TEXTS_MAX: usize = 2;

/// The network.
pub struct Bert {
    mode: ComputeMode,
    exits: Vec<usize>,
    halves_per_stage: usize,
    hidden: usize,
    /// Values per token at the widest point.
    intermediate: usize,
    classes: usize,
    tokenizer: Arc<Tokenizer>,
    typical_tokens: usize,
    embeddings: TokenEmbeddings,
    layers: Vec<EncoderLayer>,
    head: AnswerHead,
}

// === impl BertSpec ===

impl Spec for BertSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.texts]
    }

    fn classes(&self) -> usize {
        match self.task() {
            Task::Classify => self.outputs,
            _ => 1,
        }
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn embedding(&self) -> Option<usize> {
        (self.head == BertHead::SentenceEmbedding).then_some(self.outputs)
    }

    fn task(&self) -> Task {
        match (self.head, self.is_score(), self.texts) {
            (BertHead::SentenceEmbedding, ..) => Task::Embed,
            (_, true, 1) => Task::Regress,
            (_, true, _) => Task::Score,
            _ => Task::Classify,
        }
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.stages()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_size("outputs", self.outputs)?;
        check_range("texts", self.texts, TEXTS_MAX)?;
        if self.texts > 1 && self.head == BertHead::SentenceEmbedding {
            return Err(BadHyperParameter {
                field: "texts".to_owned(),
                reason: "an embedding is of 1 text".to_owned(),
            });
        }
        check_depth("layers", self.layers)?;
        self.check_stages()?;
        check_size("max_tokens", self.max_tokens)?;
        if self.max_tokens < TOKENS_MIN {
            return Err(BadHyperParameter {
                field: "max_tokens".to_owned(),
                reason: format!("{} is less than {TOKENS_MIN}", self.max_tokens),
            });
        }
        check_size("typical_tokens", self.typical_tokens)?;
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
        let config_file = params.sibling("config.json")?;
        let config = BertConfig::read(&config_file, spec)?;
        let tokenizer = tokenizer::open(spec, &config_file)?;
        let names = TensorNames::new(config.family(), params);
        let embeddings = TokenEmbeddings::new(params, &names, &config, spec.texts)?;
        let layers = (0..spec.layers)
            .map(|i| EncoderLayer::new(params, &names, i, &config))
            .collect::<std::result::Result<_, _>>()?;
        let head = AnswerHead::new(params, &names, spec, config.hidden_size)?;
        params.ignore(|name| names.is_unneeded(name));
        Ok(Self {
            mode: params.mode(),
            exits: vec![spec.stages()],
            halves_per_stage: spec.halves_per_stage(),
            hidden: config.hidden_size,
            intermediate: config.intermediate_size.max(config.hidden_size),
            classes: spec.classes(),
            typical_tokens: spec.typical_tokens.min(spec.max_tokens),
            tokenizer,
            embeddings,
            layers,
            head,
        })
    }

    /// The half layers of a stage; none past the last stage.
    fn halves(&self, stage: usize) -> impl Iterator<Item = (&EncoderLayer, LayerHalf)> + Clone {
        let halves = self.layers.iter().flat_map(|layer| {
            [LayerHalf::Attention, LayerHalf::FeedForward].map(|half| (layer, half))
        });
        let first = stage.saturating_mul(self.halves_per_stage);
        halves.skip(first).take(self.halves_per_stage)
    }

    /// Runs a stage on the tokens of all texts, without padding.
    fn run_packed(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let channels = self.hidden + 1;
        let most = PACKED_SLICE_ACTIVATIONS / self.intermediate;
        let (texts, width) = (x.dim(0)?, x.dim(1)?);
        let count = texts * width;
        let run = |slice: &TextSlice<'_>, mut rows: Flow, to: &mut Vec<f32>| -> Result<()> {
            let mask = AttentionMask::Lengths(slice.lengths.to_vec());
            for (layer, half) in self.halves(stage) {
                rows = layer.forward(half, &rows, &mask)?;
            }
            slice.put(rows.as_map()?, to, channels);
            Ok(())
        };
        let activations = if stage == 0 {
            self.embeddings.check_ids(x)?;
            let ids = token_ids(x)?.flatten_all()?.to_vec1::<i64>()?;
            let kinds = match x.rank() {
                3 => x.narrow(2, 1, 1)?.flatten_all()?.to_vec1::<i64>()?,
                _ => Vec::new(),
            };
            let rows = TextRows::of_ids(&ids, width)?;
            let mask = ids.iter().map(|id| f32::from(u8::from(*id > NO_TOKEN)));
            let mut activations = masked(mask, count, channels);
            for slice in rows.slices(most) {
                let hidden = self
                    .embeddings
                    .forward_rows(&slice.ids(&ids), &slice.ids(&kinds))?;
                run(&slice, hidden, &mut activations)?;
            }
            activations
        } else {
            self.check_channels(x)?;
            with_values(x, |values| -> Result<Vec<f32>> {
                let rows = TextRows::of_activations(values, width, channels)?;
                let mask = values.iter().skip(self.hidden).step_by(channels).copied();
                let mut activations = masked(mask, count, channels);
                for slice in rows.slices(most) {
                    let hidden = Flow::Packed(slice.hidden(values, channels));
                    run(&slice, hidden, &mut activations)?;
                }
                Ok(activations)
            })??
        };
        tensor(activations, texts, channels)
    }

    /// Tokens of each text or pair of ids, or of activations.
    fn lengths(&self, stage: usize, x: &Tensor) -> Result<Vec<usize>> {
        let is_token = match stage {
            0 => token_ids(x)?.ne(NO_TOKEN)?,
            _ => x.narrow(2, self.hidden, 1)?.squeeze(2)?.ne(0.0)?,
        };
        let lengths = is_token
            .to_dtype(DType::U32)?
            .sum(D::Minus1)?
            .to_vec1::<u32>()?;
        Ok(lengths.into_iter().map(|tokens| tokens as usize).collect())
    }

    fn check_channels(&self, x: &Tensor) -> Result<()> {
        let (_, _, channels) = x.dims3()?;
        if channels != self.hidden + 1 {
            candle_core::bail!(
                "activations have {channels} channels, the model takes {} and a mask",
                self.hidden
            );
        }
        Ok(())
    }

    /// Splits activations into hidden states, and 1 or 0 per token.
    fn split(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        self.check_channels(x)?;
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
            AnswerHead::Embedding(_) => self.hidden,
            AnswerHead::Classifier(_) => self.classes,
            AnswerHead::Score(..) => 1,
        }
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        if self.halves(stage).next().is_none() {
            return no_stage(stage, self.stages());
        }
        if self.mode == ComputeMode::Packed {
            return self.run_packed(stage, x);
        }
        let compute = |x: &Tensor| {
            in_slices(x, x.dim(1)? * self.intermediate, |x| {
                let (mut hidden, mask) = if stage == 0 {
                    self.embeddings.forward(x)?
                } else {
                    let (hidden, mask) = self.split(x)?;
                    (Flow::Graph(hidden), mask)
                };
                let attention = AttentionMask::of_tokens(&mask)?;
                for (layer, half) in self.halves(stage) {
                    hidden = layer.forward(half, &hidden, &attention)?;
                }
                Tensor::cat(&[hidden.as_tensor()?, &mask.unsqueeze(2)?], 2)
            })
        };
        match x.dim(0)? {
            1 => compute(x),
            _ => in_length_groups(x, &self.lengths(stage, x)?, compute),
        }
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        let (hidden, mask) = self.split(x)?;
        self.head.forward(&hidden, &mask)
    }

    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let answers = self.logits(exit, x)?.to_dtype(DType::F32)?;
        match &self.head {
            AnswerHead::Embedding(_) => Ok(answers),
            AnswerHead::Classifier(_) => candle_nn::ops::softmax_last_dim(&answers),
            AnswerHead::Score(_, activation) => activation.apply(&answers),
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

    fn typical_tokens(&self) -> usize {
        self.typical_tokens
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        Some(&self.tokenizer)
    }
}
