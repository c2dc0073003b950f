//! From token ids to the first hidden states.

use candle_core::{D, DType, Result, Tensor};
use switchyard_kernels::FeatureMap;

use super::config::{BertConfig, BertFamily};
use super::layers::LayerNorm;
use super::names::TensorNames;
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::tensors::with_values;
use crate::weights::params::{Init, Params};

/// Sum of the embeddings of a token, its position and its text, normalised.
pub(super) struct TokenEmbeddings {
    /// `[vocabulary, hidden]`.
    words: Tensor,
    /// `[positions, hidden]`: the positions of a text, with the embedding of segment 0 added unless
    /// there are `segments`.
    positions: Tensor,
    /// `[segments, hidden]`, if texts are pairs and the family tells their tokens apart.
    segments: Option<Tensor>,
    /// Texts of one request.
    texts: usize,
    norm: LayerNorm,
}

// === impl TokenEmbeddings ===

impl TokenEmbeddings {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        config: &BertConfig,
        texts: usize,
    ) -> std::result::Result<Self, ModelError> {
        let hidden = config.hidden_size;
        let mut read = |part: &str, rows: usize| {
            let name = names.encoder(&format!("embeddings.{part}.weight"));
            params.get(&name, &[rows, hidden], Init::Zero)
        };
        let words = read("word_embeddings", config.vocab_size)?;
        let positions = read("position_embeddings", config.max_position_embeddings)?;
        let segments = match names.family {
            BertFamily::Bert | BertFamily::Roberta => {
                Some(read("token_type_embeddings", config.type_vocab_size)?)
            }
            BertFamily::DistilBert => None,
        };
        // RoBERTa's tokenizers give both texts of a pair segment 0.
        let tells_apart = texts > 1 && names.family == BertFamily::Bert;
        let (segments, only) = match tells_apart {
            true => (segments, None),
            false => (None, segments),
        };
        let first = config.first_position();
        let positions = positions
            .narrow(0, first, config.max_position_embeddings - first)
            .and_then(|positions| match &only {
                Some(only) => positions.broadcast_add(&only.narrow(0, 0, 1)?),
                None => positions.contiguous(),
            })
            .map_err(ModelError::compute("position embeddings"))?;
        Ok(Self {
            words,
            positions,
            segments,
            texts,
            norm: LayerNorm::new(
                params,
                names,
                &names.encoder("embeddings.LayerNorm"),
                config,
            )?,
        })
    }

    /// `[batch, tokens]` ids, or `[batch, tokens, 2]` ids and segments of pairs, to hidden states
    /// `[batch, tokens, hidden]` and the mask `[batch, tokens]`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<(Flow, Tensor)> {
        self.check_ids(x)?;
        let ids = &token_ids(x)?;
        let (batch, tokens) = ids.dims2()?;
        self.check(tokens)?;
        let mask = ids.ge(0i64)?.to_dtype(self.words.dtype())?;
        let looked_up = ids.maximum(0i64)?.flatten_all()?;
        let mut words = self.words.index_select(&looked_up, 0)?;
        if let Some(segments) = &self.segments {
            let of_token = x.narrow(2, 1, 1)?.flatten_all()?;
            words = (words + segments.index_select(&of_token, 0)?)?;
        }
        let hidden = words
            .reshape((batch, tokens, self.words.dim(D::Minus1)?))?
            .broadcast_add(&self.positions.narrow(0, 0, tokens)?)?;
        Ok((self.norm.forward(Flow::Graph(hidden))?, mask))
    }

    /// The ids of texts, and the segments of pairs, to their hidden states, one text after the other.
    pub(super) fn forward_rows(&self, texts: &[&[i64]], kinds: &[&[i64]]) -> Result<Flow> {
        let (known, hidden) = self.words.dims2()?;
        let tokens = texts.iter().map(|text| text.len()).sum();
        let mut rows = FeatureMap::new([tokens, 1, 1, hidden]);
        let mut sums = rows.values.chunks_exact_mut(hidden);
        for text in texts {
            self.check(text.len())?;
        }
        with_values(&self.words, |words| {
            with_values(&self.positions, |positions| {
                for text in texts {
                    let positions = positions.chunks_exact(hidden);
                    for ((id, position), sum) in text.iter().zip(positions).zip(&mut sums) {
                        // Padding stands for a text without tokens.
                        let id = usize::try_from(*id).unwrap_or_default();
                        if id >= known {
                            candle_core::bail!("token id {id}, the model knows 0 to {}", known - 1);
                        }
                        let word = &words[id * hidden..][..hidden];
                        for ((sum, word), position) in sum.iter_mut().zip(word).zip(position) {
                            *sum = word + position;
                        }
                    }
                }
                Ok(())
            })
        })???;
        if let Some(segments) = &self.segments {
            let known = segments.dim(0)?;
            let mut sums = rows.values.chunks_exact_mut(hidden);
            with_values(segments, |segments| {
                for (kind, sum) in kinds.iter().copied().flatten().zip(&mut sums) {
                    let kind = usize::try_from(*kind).unwrap_or_default();
                    if kind >= known {
                        candle_core::bail!("segment {kind}, the model knows 0 to {}", known - 1);
                    }
                    let segment = &segments[kind * hidden..][..hidden];
                    for (sum, segment) in sum.iter_mut().zip(segment) {
                        *sum += segment;
                    }
                }
                Ok(())
            })??;
        }
        self.norm.forward(Flow::Packed(rows))
    }

    /// Refuses anything but `[texts, tokens]` ids, or `[pairs, tokens, 2]` ids and segments.
    pub(super) fn check_ids(&self, x: &Tensor) -> Result<()> {
        if x.dtype() != DType::I64 || x.rank() != 1 + self.texts {
            candle_core::bail!(
                "token ids are {:?} {:?}, the model takes I64 of texts by {}",
                x.dtype(),
                x.dims(),
                self.texts
            );
        }
        Ok(())
    }

    /// Refuses a text that is too long.
    fn check(&self, tokens: usize) -> Result<()> {
        let positions = self.positions.dim(0)?;
        if !(1..=positions).contains(&tokens) {
            candle_core::bail!("a text of {tokens} tokens, the model takes 1 to {positions}");
        }
        Ok(())
    }
}

/// The ids of texts or of pairs, `[batch, tokens]`.
pub(super) fn token_ids(x: &Tensor) -> Result<Tensor> {
    match x.rank() {
        3 => x.narrow(2, 0, 1)?.squeeze(2)?.contiguous(),
        _ => Ok(x.clone()),
    }
}
