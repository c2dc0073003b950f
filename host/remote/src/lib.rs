//! Workers on other machines: any server of the Open Inference Protocol over gRPC.
//!
//! In data order:
//! - [`address`]: the address of a server
//! - [`model`]: the names of variants on the far side; [`metadata`]: whether its models fit the apps
//! - `request`, `body`: from a batch to a message, whose tensors are not copied; `response`: back
//! - `channel`: one HTTP/2 connection and its calls
//! - [`executor`]: a server as an [`Executor`](switchyard_executor::Executor)
//!
//! Without tonic: hyper's client and the messages and frames of `switchyard-protocol`, which the gRPC
//! port uses too, are enough for three calls, and send tensors without a copy.

#![forbid(unsafe_code)]

pub mod address;
mod body;
mod channel;
pub mod executor;
pub mod metadata;
pub mod model;
mod request;
mod response;

pub use address::{RemoteAddress, WrongAddress};
pub use executor::{ConnectError, RemoteExecutor, RemoteOptions};
pub use metadata::Misfit;
pub use model::{RemoteModel, RemoteOutputs, RemoteTensor};
