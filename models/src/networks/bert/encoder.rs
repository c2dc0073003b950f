//! One encoder layer: self-attention, then a feed-forward network, each with a residual and a
//! norm behind it (Vaswani et al., "Attention is all you need", 2017; Devlin et al., "BERT",
//! 2019).

use candle_core::Result;
use switchyard_kernels::Activation;

use super::config::{BertConfig, HiddenActivation};
use super::layers::{BertLinear, LayerNorm};
use super::names::TensorNames;
use crate::error::ModelError;
use crate::ops::attention::AttentionMask;
use crate::ops::flow::Flow;
use crate::weights::params::Params;

/// One encoder layer.
pub(super) struct EncoderLayer {
    heads: usize,
    activation: Activation,
    /// Query, key and value side by side: one product instead of three.
    qkv: BertLinear,
    attended: BertLinear,
    attention_norm: LayerNorm,
    up: BertLinear,
    down: BertLinear,
    output_norm: LayerNorm,
}

/// The part of a layer behind which a stage may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerHalf {
    /// Self-attention, residual and norm.
    Attention,
    /// The feed-forward network, residual and norm.
    FeedForward,
}

// === impl EncoderLayer ===

impl EncoderLayer {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        index: usize,
        config: &BertConfig,
    ) -> std::result::Result<Self, ModelError> {
        let (hidden, wide) = (config.hidden_size, config.intermediate_size);
        let parts = names.layer_names();
        let at = |part: &str| names.layer(index, part);
        let parts_of_qkv = [parts.query, parts.key, parts.value].map(at);
        let qkv = BertLinear::joined(params, &parts_of_qkv, [hidden, hidden])?;
        Ok(Self {
            heads: config.num_attention_heads,
            activation: config.hidden_act.into(),
            qkv,
            attended: BertLinear::new(params, &at(parts.attended), hidden, hidden)?,
            attention_norm: LayerNorm::new(params, names, &at(parts.attention_norm), config)?,
            up: BertLinear::new(params, &at(parts.up), hidden, wide)?,
            down: BertLinear::new(params, &at(parts.down), wide, hidden)?,
            output_norm: LayerNorm::new(params, names, &at(parts.output_norm), config)?,
        })
    }

    /// Hidden states of texts to those after one half of the layer.
    pub(super) fn forward(&self, half: LayerHalf, x: &Flow, mask: &AttentionMask) -> Result<Flow> {
        match half {
            LayerHalf::Attention => {
                let qkv = self.qkv.forward_onto(x, None, Activation::None)?;
                let mixed = mask.attend(&qkv, self.heads)?;
                drop(qkv);
                let attended = self
                    .attended
                    .forward_onto(&mixed, Some(x), Activation::None)?;
                self.attention_norm.forward(attended)
            }
            LayerHalf::FeedForward => {
                let wide = self.up.forward_onto(x, None, self.activation)?;
                let narrow = self.down.forward_onto(&wide, Some(x), Activation::None)?;
                self.output_norm.forward(narrow)
            }
        }
    }
}

// === impl HiddenActivation ===

impl From<HiddenActivation> for Activation {
    fn from(of: HiddenActivation) -> Self {
        match of {
            HiddenActivation::Gelu => Self::Gelu,
            HiddenActivation::GeluNew => Self::GeluTanh,
            HiddenActivation::Relu => Self::Relu,
            HiddenActivation::Silu => Self::Silu,
        }
    }
}
