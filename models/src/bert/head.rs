//! From the last hidden states to an answer.

use candle_core::{DType, Result, Tensor};

use super::config::Family;
use super::layer::Dense;
use super::names::Names;
use super::{BertSpec, HeadKind};
use crate::error::ModelError;
use crate::params::Params;

/// Least number of tokens a mean is taken over, as sentence-transformers has it.
const COUNT_MIN: f64 = 1e-9;

/// Least length an embedding is divided by, as PyTorch's `normalize` has it.
const LENGTH_MIN: f64 = 1e-12;

#[allow(clippy::large_enum_variant)] // There is one in a network.
pub(super) enum Head {
    Embedding,
    Classifier {
        /// On the first token: BERT's pooler, RoBERTa's `classifier.dense`, DistilBERT's
        /// `pre_classifier`.
        inner: Dense,
        outer: Dense,
        family: Family,
    },
}

// === impl Head ===

impl Head {
    pub(super) fn new(
        params: &mut Params,
        names: &Names,
        spec: &BertSpec,
        hidden: usize,
    ) -> std::result::Result<Self, ModelError> {
        if spec.head == HeadKind::SentenceEmbedding {
            return Ok(Self::Embedding);
        }
        let (inner, outer) = match names.family {
            Family::Bert => (names.encoder("pooler.dense"), "classifier"),
            Family::Roberta => ("classifier.dense".to_owned(), "classifier.out_proj"),
            Family::DistilBert => ("pre_classifier".to_owned(), "classifier"),
        };
        Ok(Self::Classifier {
            inner: Dense::new(params, &inner, hidden, hidden)?,
            outer: Dense::new(params, outer, hidden, spec.outputs)?,
            family: names.family,
        })
    }

    /// Hidden states `[batch, tokens, hidden]` and mask `[batch, tokens]` to `[batch, outputs]`.
    pub(super) fn forward(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        match self {
            Self::Embedding => embed(hidden, mask),
            Self::Classifier {
                inner,
                outer,
                family,
            } => {
                let first = hidden.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
                let inner = inner.forward(&first)?;
                outer.forward(&match family {
                    Family::Bert | Family::Roberta => inner.tanh()?,
                    Family::DistilBert => inner.relu()?,
                })
            }
        }
    }
}

/// Mean over the tokens there are, scaled to length 1.
fn embed(hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
    // Sums over a text, and squares, leave half precision's range.
    let (hidden, mask) = (&hidden.to_dtype(DType::F32)?, mask.to_dtype(DType::F32)?);
    let sums = mask
        .unsqueeze(1)?
        .contiguous()?
        .matmul(hidden)?
        .squeeze(1)?;
    let count = mask.sum_keepdim(1)?.maximum(COUNT_MIN)?;
    let mean = sums.broadcast_div(&count)?;
    let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?.maximum(LENGTH_MIN)?;
    mean.broadcast_div(&length)
}
