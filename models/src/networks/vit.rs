//! Vision transformers with public weights, in Hugging Face's, timm's or torchvision's naming
//! (Dosovitskiy et al., "An image is worth 16x16 words", 2021).
//!
//! An image is cut into patches, each a token. A class token is put before them, positions are
//! added, and encoder layers with their norms in front follow; the head reads the class token.
//! Activations between stages are `[batch, tokens, hidden]`.

mod config;
mod layer;
mod names;
mod network;
mod spec;

pub use self::spec::{VitNaming, VitSpec};
