//! One encoder layer: self-attention, then a feed-forward network, each with a residual and a
//! norm behind it (Vaswani et al., "Attention is all you need", 2017; Devlin et al., "BERT",
//! 2019).

use candle_core::{DType, Result, Tensor};

use super::config::{Activation, Config};
use super::names::Names;
use crate::error::ModelError;
use crate::layers::Linear;
use crate::params::{Init, Params};

/// Added to the scores of positions without a token. Their weight after the softmax is exactly
/// 0, and nothing overflows where a row has no token at all.
const MASKED: f64 = -1e9;

/// The same in half precision, which ends at 65,504.
const MASKED_HALF: f64 = -6e4;

pub(super) struct Layer {
    heads: usize,
    activation: Activation,
    /// Query, key and value side by side: one product in the place of three.
    qkv: Dense,
    attended: Dense,
    attention_norm: Norm,
    up: Dense,
    down: Dense,
    output_norm: Norm,
}

/// `[rows, in]` to `[rows, out]`.
pub(super) struct Dense(Linear);

/// Layer normalisation over the last dimension.
pub(super) struct Norm {
    scale: Tensor,
    shift: Tensor,
    eps: f32,
}

/// What is added to attention scores `[batch, heads, tokens, tokens]`, from a mask
/// `[batch, tokens]`.
pub(super) fn attention_bias(mask: &Tensor) -> Result<Tensor> {
    let masked = match mask.dtype() {
        DType::F16 => MASKED_HALF,
        _ => MASKED,
    };
    // 0 where there is a token.
    ((mask - 1.0)? * -masked)?.unsqueeze(1)?.unsqueeze(1)
}

/// A table of embeddings.
pub(super) fn table(
    params: &mut Params,
    name: &str,
    rows: usize,
    width: usize,
) -> std::result::Result<Tensor, ModelError> {
    params.get(name, &[rows, width], Init::Zero)
}

// === impl Layer ===

impl Layer {
    pub(super) fn new(
        params: &mut Params,
        names: &Names,
        index: usize,
        config: &Config,
    ) -> std::result::Result<Self, ModelError> {
        let (hidden, wide) = (config.hidden_size, config.intermediate_size);
        let parts = names.layer_names();
        let at = |part: &str| names.layer(index, part);
        let parts_of_qkv = [parts.query, parts.key, parts.value].map(at);
        let qkv = Dense::beside(params, &parts_of_qkv, [hidden, hidden])?;
        Ok(Self {
            heads: config.num_attention_heads,
            activation: config.hidden_act,
            qkv,
            attended: Dense::new(params, &at(parts.attended), hidden, hidden)?,
            attention_norm: Norm::new(params, names, &at(parts.attention_norm), config)?,
            up: Dense::new(params, &at(parts.up), hidden, wide)?,
            down: Dense::new(params, &at(parts.down), wide, hidden)?,
            output_norm: Norm::new(params, names, &at(parts.output_norm), config)?,
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

// === impl Activation ===

impl Activation {
    fn forward(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu => x.gelu_erf(),
            Self::GeluNew => x.gelu(),
            Self::Relu => x.relu(),
            Self::Silu => x.silu(),
        }
    }
}

// === impl Dense ===

impl Dense {
    pub(super) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        output: usize,
    ) -> std::result::Result<Self, ModelError> {
        Self::beside(params, &[name.to_owned()], [input, output])
    }

    /// Several layers of the same input as one.
    fn beside(
        params: &mut Params,
        names: &[String],
        [input, output]: [usize; 2],
    ) -> std::result::Result<Self, ModelError> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for name in names {
            weights.push(params.get(&format!("{name}.weight"), &[output, input], Init::Zero)?);
            biases.push(params.get(&format!("{name}.bias"), &[output], Init::Zero)?);
        }
        let joined = names.join(" beside ");
        let failed = |error| ModelError::compute(&joined)(error);
        let join = |parts: &[Tensor]| Tensor::cat(parts, 0);
        // Published as `[out, in]`.
        let weight = join(&weights).and_then(|weight| weight.t()?.contiguous());
        let weight = params.narrow(&joined, weight.map_err(failed)?)?;
        let bias = join(&biases).map_err(failed)?;
        let linear = Linear::with_mode(weight, bias, params.mode());
        linear.map(Self).map_err(failed)
    }

    /// Of the last dimension, whatever is before it.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut shape = x.dims().to_vec();
        let input = shape.pop().unwrap_or_default();
        let rows = self.0.forward(&x.reshape(((), input))?)?;
        shape.push(rows.dim(1)?);
        rows.reshape(shape)
    }
}

// === impl Norm ===

impl Norm {
    pub(super) fn new(
        params: &mut Params,
        names: &Names,
        name: &str,
        config: &Config,
    ) -> std::result::Result<Self, ModelError> {
        let width = config.hidden_size;
        let (scale, shift) = names.norm();
        Ok(Self {
            scale: params.get(&format!("{name}.{scale}"), &[width], Init::Zero)?,
            shift: params.get(&format!("{name}.{shift}"), &[width], Init::Zero)?,
            eps: config.layer_norm_eps as f32,
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(x, &self.scale, &self.shift, self.eps)
    }
}
