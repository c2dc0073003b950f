//! The Open Inference Protocol v2 over HTTP, on hyper directly.
//!
//! Read in data order: a connection (`server`) carries a request to one
//! `route`; its body is read under [`Limits`] (`body`), unpacked
//! (`encoding`), parsed once into typed tensors (`common` for what clients
//! usually send, `request` and `json_tensor` for the rest, `binary`) and
//! checked against the app (`decode`). What comes out is an [`InferCall`] for
//! the [`Backend`], the only thing the rest of the server has to provide. Its
//! [`InferAnswer`] goes back as JSON or binary (`response`). `metadata` answers
//! the questions clients ask before they infer.
//!
//! Source: kserve/open-inference-protocol, `inference_rest.md`, and Triton's
//! extensions `binary_tensor_data`, `schedule_policy`, `model_configuration`,
//! `statistics` and `model_repository`.

mod backend;
mod binary;
mod body;
mod common;
mod connections;
mod control;
mod decode;
mod encoding;
mod error;
mod infer;
mod json_tensor;
mod limits;
mod metadata;
mod parameters;
mod reply;
mod request;
mod response;
#[cfg(test)]
mod roundtrip;
mod route;
mod server;
mod service;
mod tensor;

pub use backend::{
    AppInfo, Backend, BatchStats, Control, InferAnswer, InferCall, InferError, OutputTensor,
    TensorSpec, Timing, VariantStats,
};
pub use decode::parse;
pub use error::ProtocolError;
pub use limits::Limits;
pub use route::{ENDPOINTS, Endpoint};
pub use server::{Drained, serve};
pub use tensor::{Datatype, Shape, Tensor, TensorData, WireElements};
