//! From the last hidden states to an answer.

use candle_core::{DType, Result, Tensor};

use super::config::BertFamily;
use super::layers::BertLinear;
use super::names::TensorNames;
use super::spec::{BertHead, BertSpec};
use crate::error::ModelError;
use crate::weights::params::Params;

/// Least number of tokens that a mean is divided by, as in sentence-transformers.
const COUNT_MIN: f64 = 1e-9;

/// Least length that an embedding is divided by, as in PyTorch's `normalize`.
const LENGTH_MIN: f64 = 1e-12;

/// The head on the last layer.
#[allow(clippy::large_enum_variant, reason = "there is one in a network")]
pub(super) enum AnswerHead {
    Embedding,
    Classifier {
        /// On the first token: BERT's pooler, RoBERTa's `classifier.dense`, DistilBERT's
        /// `pre_classifier`.
        inner: BertLinear,
        outer: BertLinear,
        family: BertFamily,
    },
}

// === impl AnswerHead ===

impl AnswerHead {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        spec: &BertSpec,
        hidden: usize,
    ) -> std::result::Result<Self, ModelError> {
        if spec.head == BertHead::SentenceEmbedding {
            return Ok(Self::Embedding);
        }
        let (inner, outer) = match names.family {
            BertFamily::Bert => (names.encoder("pooler.dense"), "classifier"),
            BertFamily::Roberta => ("classifier.dense".to_owned(), "classifier.out_proj"),
            BertFamily::DistilBert => ("pre_classifier".to_owned(), "classifier"),
        };
        Ok(Self::Classifier {
            inner: BertLinear::new(params, &inner, hidden, hidden)?,
            outer: BertLinear::new(params, outer, hidden, spec.outputs)?,
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
                    BertFamily::Bert | BertFamily::Roberta => inner.tanh()?,
                    BertFamily::DistilBert => inner.relu()?,
                })
            }
        }
    }
}

/// Mean over the tokens, scaled to length 1.
fn embed(hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
    // Sums over a text, and squares, exceed the range of half precision.
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
