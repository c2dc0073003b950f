//! From the last hidden states to an answer.

use candle_core::{Result, Tensor};

use super::config::BertFamily;
use super::layers::BertLinear;
use super::names::TensorNames;
use super::pooling::SentencePooling;
use super::spec::{BertHead, BertSpec};
use crate::error::ModelError;
use crate::weights::params::Params;

/// The head on the last layer.
#[allow(clippy::large_enum_variant, reason = "there is one in a network")]
pub(super) enum AnswerHead {
    Embedding(SentencePooling),
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
            let (Some(pooling), Some(normalise)) = (spec.pooling, spec.normalise) else {
                let reason = "pooling and normalise are known only once the card is read";
                return Err(ModelError::Training(reason.to_owned()));
            };
            return Ok(Self::Embedding(SentencePooling { pooling, normalise }));
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
            Self::Embedding(pooling) => pooling.forward(hidden, mask),
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
