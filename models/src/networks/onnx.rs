//! Networks as ONNX graphs, run by onnxruntime.
//!
//! A graph is opaque: it has no stages to stop between and no early exits, so such a variant is one
//! stage with one exit. Its card is short, because the file has most of the facts: [`OnnxSpec`] is
//! completed from the graph's inputs and outputs when a card is read, with or without onnxruntime,
//! and fields that the card does set must agree.
//!
//! - `header` reads inputs, outputs and the size of the weights from the file
//! - `spec` is the card's part, completed from the header
//! - `library` finds onnxruntime, which is loaded at run time and only on request (feature `ort`);
//!   `session` runs a graph with it; `runtime` is the interface of both

mod header;
#[cfg(feature = "ort")]
mod library;
mod runtime;
#[cfg(feature = "ort")]
mod session;
mod spec;

pub(crate) use self::header::read_header;
pub(crate) use self::runtime::open;
pub use self::runtime::{ready, use_library};
pub use self::spec::{OnnxScores, OnnxSpec};
