//! One encoder layer: self-attention, then a feed-forward network, each with a residual and a
//! norm behind it (Vaswani et al., "Attention is all you need", 2017; Devlin et al., "BERT",
//! 2019).

use candle_core::{DType, Result, Tensor};

use super::config::{BertConfig, HiddenActivation};
use super::layers::{BertLinear, LayerNorm};
use super::names::TensorNames;
use crate::error::ModelError;
use crate::weights::params::Params;

/// Added to the scores of padding. Its weight after the softmax is exactly 0, and nothing overflows
/// in a row of padding only.
const MASKED: f64 = -1e9;

/// The same in half precision, whose largest value is 65,504.
const MASKED_HALF: f64 = -6e4;

/// One encoder layer.
pub(super) struct EncoderLayer {
    heads: usize,
    activation: HiddenActivation,
    /// Query, key and value side by side: one product instead of three.
    qkv: BertLinear,
    attended: BertLinear,
    attention_norm: LayerNorm,
    up: BertLinear,
    down: BertLinear,
    output_norm: LayerNorm,
}

/// The term added to attention scores `[batch, heads, tokens, tokens]`, from a mask `[batch,
/// tokens]`.
pub(super) fn attention_bias(mask: &Tensor) -> Result<Tensor> {
    let masked = match mask.dtype() {
        DType::F16 => MASKED_HALF,
        _ => MASKED,
    };
    // 0 for a token.
    ((mask - 1.0)? * -masked)?.unsqueeze(1)?.unsqueeze(1)
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
            activation: config.hidden_act,
            qkv,
            attended: BertLinear::new(params, &at(parts.attended), hidden, hidden)?,
            attention_norm: LayerNorm::new(params, names, &at(parts.attention_norm), config)?,
            up: BertLinear::new(params, &at(parts.up), hidden, wide)?,
            down: BertLinear::new(params, &at(parts.down), wide, hidden)?,
            output_norm: LayerNorm::new(params, names, &at(parts.output_norm), config)?,
        })
    }

    /// Hidden states `[batch, tokens, hidden]` to the next ones; `bias` is [`attention_bias`].
    pub(super) fn forward(&self, hidden: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let attended = self.attend(hidden, bias)?;
        let x = self.attention_norm.forward(&(hidden + attended)?)?;
        let wide = self.activation.forward(&self.up.forward(&x)?)?;
        let narrow = self.down.forward(&wide)?;
        self.output_norm.forward(&(x + narrow)?)
    }

    fn attend(&self, hidden: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let (batch, tokens, width) = hidden.dims3()?;
        let depth = width / self.heads;
        let qkv = self
            .qkv
            .forward(hidden)?
            .reshape((batch, tokens, 3, self.heads, depth))?
            .permute((2, 0, 3, 1, 4))?
            .contiguous()?;
        let part = |i| qkv.narrow(0, i, 1)?.squeeze(0);
        let (query, key, value) = (part(0)?, part(1)?, part(2)?);
        let scores = (query.matmul(&key.t()?)? * (depth as f64).sqrt().recip())?;
        let shares = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(bias)?)?;
        let mixed = shares
            .matmul(&value)?
            .transpose(1, 2)?
            .reshape((batch, tokens, width))?;
        self.attended.forward(&mixed)
    }
}

// === impl HiddenActivation ===

impl HiddenActivation {
    fn forward(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu => x.gelu_erf(),
            Self::GeluNew => x.gelu(),
            Self::Relu => x.relu(),
            Self::Silu => x.silu(),
        }
    }
}
