//! Text encoders of the BERT family with public weights, in Hugging Face's layout.
//!
//! A variant's folder holds `config.json`, `tokenizer.json` and `model.safetensors` as they are
//! published, and a `model.toml`. `config.json` names the family (BERT, RoBERTa, DistilBERT) and
//! has every size; the card repeats only the fields that must be known without reading it: layers,
//! outputs and the longest text.
//!
//! candle-transformers' own `bert` is not used: its single layers cannot be called from outside, so
//! it runs whole or not at all; its errors name a tensor without its file; and it knows one naming
//! of the three.
//!
//! # Activations
//! Stage 0 takes token ids `[batch, tokens]`, i64, with [`NO_TOKEN`](super::tokens::NO_TOKEN) after
//! the end of a shorter text; of pairs `[batch, tokens, 2]`, with the segment of each token.
//! Activations between stages are `[batch, tokens, hidden + 1]`: the
//! last channel is 1 for a token and 0 for padding, so that one tensor carries the attention mask
//! too. A batch is as wide as its longest text. The kernels compute its tokens without padding
//! (`rows`), candle's operations in groups of texts of similar length (`lengths`).
//! Batches of different lengths are joined by padding with zeros, which the mask marks as padding.

mod config;
mod embeddings;
mod encoder;
mod head;
mod layers;
mod lengths;
mod names;
mod network;
mod pooling;
mod rows;
mod score;
mod spec;
mod stated;
pub(crate) mod tokenizer;

pub(crate) use self::config::knows;
pub use self::network::Bert;
pub use self::pooling::Pooling;
pub use self::score::ScoreActivation;
pub(crate) use self::score::{CROSS_ENCODER, StatedOutputs};
pub use self::spec::{BertHead, BertSpec};
