//! From token ids to the first hidden states.

use candle_core::{D, Result, Tensor};
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
    /// `[positions, hidden]`: the positions of a text, with the embedding of its only segment
    /// added.
    positions: Tensor,
    norm: LayerNorm,
}

// === impl TokenEmbeddings ===

impl TokenEmbeddings {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        config: &BertConfig,
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
        let first = config.first_position();
        let positions = positions
            .narrow(0, first, config.max_position_embeddings - first)
            .and_then(|positions| match &segments {
                Some(segments) => positions.broadcast_add(&segments.narrow(0, 0, 1)?),
                None => positions.contiguous(),
            })
            .map_err(ModelError::compute("position embeddings"))?;
        Ok(Self {
            words,
            positions,
            norm: LayerNorm::new(
                params,
                names,
                &names.encoder("embeddings.LayerNorm"),
                config,
            )?,
        })
    }

    /// `[batch, tokens]` ids to hidden states `[batch, tokens, hidden]` and the mask
    /// `[batch, tokens]`.
    pub(super) fn forward(&self, ids: &Tensor) -> Result<(Flow, Tensor)> {
        let (batch, tokens) = ids.dims2()?;
        self.check(tokens)?;
        let mask = ids.ge(0i64)?.to_dtype(self.words.dtype())?;
        let looked_up = ids.maximum(0i64)?.flatten_all()?;
        let words = self.words.index_select(&looked_up, 0)?;
        let hidden = words
            .reshape((batch, tokens, self.words.dim(D::Minus1)?))?
            .broadcast_add(&self.positions.narrow(0, 0, tokens)?)?;
        Ok((self.norm.forward(Flow::Graph(hidden))?, mask))
    }

    /// The ids of texts to their hidden states, one text after the other.
    pub(super) fn forward_rows(&self, texts: &[&[i64]]) -> Result<Flow> {
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
        self.norm.forward(Flow::Packed(rows))
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
