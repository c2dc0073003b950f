//! Networks as ONNX graphs.
//!
//! A graph is opaque: it has no stages to stop between and no early exits, so such a variant is one
//! stage with one exit. Its card is short, because the file has most of the facts: [`OnnxSpec`] is
//! completed from the graph's inputs and outputs when a card is read, and fields that the card does
//! set must agree.
//!
//! - `fields` are the fields of a file; `lengths` checks that every field ends within its message
//! - `header` reads inputs, outputs and the size of the weights from the file
//! - `spec` is the card's part, completed from the header
//! - `model` is the graph as a network, on an `engine`: `session` is one of onnxruntime, which
//!   `library` finds at run time; `embedded`, `images` for convolutions, `linear` for transformers and
//!   `classic` for operators of `ai.onnx.ml` need no library; `runtime` chooses
//! - `cut` makes a file of some nodes of another
//! - `joined` makes one file of a graph whose values are in others
//! - `proto` has the messages of a file; `sketch` reads them without large weights
//! - `elements` are the numbers of raw tensors

mod classic;
mod cut;
mod elements;
mod embedded;
mod engine;
mod fields;
mod file;
mod header;
mod images;
mod joined;
mod lengths;
mod library;
mod linear;
mod model;
mod proto;
mod runtime;
mod session;
mod sketch;
mod spec;
#[cfg(test)]
mod testing;

pub(crate) use self::header::{ElementType, GraphHeader, GraphTensor, read_header, read_outline};
pub use self::joined::{copy_graph, value_files};
pub(crate) use self::model::open;
pub use self::runtime::{engine_name, engine_of, ready, use_library};
pub use self::spec::{OnnxScores, OnnxSpec};
