//! The protocol over gRPC, without sockets: Triton's `inference.GRPCInferenceService` and
//! `grpc.health.v1.Health`.
//!
//! In data order:
//! - [`Rpc`]: the call of a path; [`ClientTimeout`]: the time that the client gives it
//! - [`FramePrefix`]: where a message begins and ends in a body
//! - [`InferMessage`]: the bytes of an inference, scanned for the memory that their fields take, and read
//!   into a [`ModelInferRequest`](messages::inference::ModelInferRequest)
//! - [`decode_infer`]: from there to a [`DecodedRequest`](crate::DecodedRequest) that matches the app's
//!   inputs
//! - [`encode_infer`]: from an answer to the bytes of its message
//! - [`stage_parameters`], [`take_stages`]: ranges of stages in the parameters of an inference
//! - [`Status`]: the end of a call, from any [`RequestFailure`](crate::RequestFailure)
//! - [`describe`]: messages about the server, its apps and their statistics
//! - [`messages`]: the types of `proto/`, made by `cargo xtask protobuf`

mod contents;
mod decode;
pub mod describe;
mod encode;
mod frame;
pub mod messages;
mod parameters;
mod repository;
mod rpc;
mod scan;
mod stages;
mod status;
mod timeout;

pub use decode::decode_infer;
pub use encode::{Envelope, encode_infer};
pub use frame::{FramePrefix, PREFIX_BYTES, frame};
pub use repository::check_control;
pub use rpc::{CONTENT_TYPE_PREFIX, Rpc};
pub use scan::{InferMessage, first_model_name};
pub use stages::{stage_parameters, take_stages};
pub use status::{Code, Status};
pub use timeout::{ClientTimeout, TIMEOUT};
