//! The Open Inference Protocol v2 without sockets.
//!
//! Every function here is pure, from bytes to values or back; the server adds listeners, bodies
//! that arrive in pieces, time limits and the backend. In data order:
//! - [`Route`]: the endpoint of a method and a path
//! - [`BodyFormat`]: the layout and coding of a body, from its headers; [`decompress`]
//! - [`decode`]: from the bytes of a body to an [`InferCall`] that matches the app's inputs; JSON
//!   in `json`, blobs in `binary`
//! - [`encode`]: from an [`InferAnswer`] to the bytes of its body; [`compress`]
//! - [`RequestFailure`]: every way in which a request fails, with its status and body
//! - [`TraceParent`]: the client's span, from its header
//! - [`metadata`]: bodies of the answers to everything but inference
//! - [`grpc`]: the same protocol as protobuf messages
//!
//! Source: kserve/open-inference-protocol, `inference_rest.md`, and Triton's extensions
//! `binary_tensor_data`, `schedule_policy`, `model_configuration`, `statistics` and
//! `model_repository`.

#![forbid(unsafe_code)]

mod answer;
mod app;
mod binary;
mod call;
mod coding;
mod datatype;
mod decode;
mod encode;
mod error;
mod excerpt;
mod format;
mod framing;
pub mod grpc;
mod json;
pub mod metadata;
mod origin;
mod repository;
#[cfg(test)]
mod roundtrip;
mod route;
mod stages;
mod stats;
mod tensor;
mod trace_parent;

pub use answer::{InferAnswer, OutputTensor};
pub use app::{AppIndex, AppInfo, BodySizes, BytesContent, OutputIndex, TensorSpec, VariantIndex};
pub use call::{DecodedRequest, InferCall, WantedOutput, WantedOutputs};
pub use coding::{ContentCoding, compress, decompress};
pub use datatype::Datatype;
pub use decode::{DecodeTarget, decode, parse};
pub use encode::{EncodedAnswer, encode};
pub use error::{InferError, ProtocolError, RequestFailure};
pub use format::BodyFormat;
pub use framing::{BodyFraming, JSON_LENGTH};
pub use origin::check_origin;
pub use repository::{Control, IndexQuery};
pub use route::{AppAction, ENDPOINTS, Endpoint, Route};
pub use stages::{STAGE_RANGES, StageCall, StageWork};
pub use stats::{BatchStats, Timing, VariantStats};
pub use tensor::{Shape, Tensor, TensorData, WireElements, element_count};
pub use trace_parent::TraceParent;
