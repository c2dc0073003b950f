//! From the last hidden states to an answer.

use candle_core::{Result, Tensor};

use super::config::BertFamily;
use super::layers::BertLinear;
use super::names::TensorNames;
use super::pooling::SentencePooling;
use super::score::ScoreActivation;
use super::spec::{BertHead, BertSpec};
use crate::error::ModelError;
use crate::weights::params::Params;

/// The head on the last layer.
#[allow(clippy::large_enum_variant, reason = "there is one in a network")]
pub(super) enum AnswerHead {
    Embedding(SentencePooling),
    Classifier(FirstTokenClassifier),
    /// With the function of its single output.
    Score(FirstTokenClassifier, ScoreActivation),
}

/// Two layers on the first token.
pub(super) struct FirstTokenClassifier {
    /// BERT's pooler, RoBERTa's `classifier.dense`, DistilBERT's `pre_classifier`.
    inner: BertLinear,
    outer: BertLinear,
    family: BertFamily,
}

// === impl AnswerHead ===

impl AnswerHead {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        spec: &BertSpec,
        hidden: usize,
    ) -> std::result::Result<Self, ModelError> {
        let unread = |fields: &str| {
            let reason = format!("{fields} known only once the card is read");
            Err(ModelError::Training(reason))
        };
        if spec.head == BertHead::SentenceEmbedding {
            let (Some(pooling), Some(normalise)) = (spec.pooling, spec.normalise) else {
                return unread("pooling and normalise are");
            };
            return Ok(Self::Embedding(SentencePooling { pooling, normalise }));
        }
        let classifier = FirstTokenClassifier::new(params, names, [hidden, spec.outputs])?;
        match spec.activation {
            _ if !spec.is_score() => Ok(Self::Classifier(classifier)),
            Some(activation) => Ok(Self::Score(classifier, activation)),
            None => unread("activation is"),
        }
    }

    /// Hidden states `[batch, tokens, hidden]` and mask `[batch, tokens]` to `[batch, outputs]`.
    pub(super) fn forward(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        match self {
            Self::Embedding(pooling) => pooling.forward(hidden, mask),
            Self::Classifier(classifier) | Self::Score(classifier, _) => classifier.forward(hidden),
        }
    }
}

// === impl FirstTokenClassifier ===

impl FirstTokenClassifier {
    fn new(
        params: &mut Params,
        names: &TensorNames,
        [hidden, outputs]: [usize; 2],
    ) -> std::result::Result<Self, ModelError> {
        let (inner, outer) = match names.family {
            BertFamily::Bert => (names.encoder("pooler.dense"), "classifier"),
            BertFamily::Roberta => ("classifier.dense".to_owned(), "classifier.out_proj"),
            BertFamily::DistilBert => ("pre_classifier".to_owned(), "classifier"),
        };
        Ok(Self {
            inner: BertLinear::new(params, &inner, hidden, hidden)?,
            outer: BertLinear::new(params, outer, hidden, outputs)?,
            family: names.family,
        })
    }

    fn forward(&self, hidden: &Tensor) -> Result<Tensor> {
        let first = hidden.narrow(1, 0, 1)?.squeeze(1)?.contiguous()?;
        let inner = self.inner.forward(&first)?;
        self.outer.forward(&match self.family {
            BertFamily::Bert | BertFamily::Roberta => inner.tanh()?,
            BertFamily::DistilBert => inner.relu()?,
        })
    }
}
