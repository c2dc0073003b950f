//! The Open Inference Protocol v2 over HTTP and gRPC, on hyper directly.
//!
//! This module has the sockets; [`switchyard_protocol`] turns bytes into calls and answers into
//! bytes. In data order: `port` has the listeners; the thread of `accepting` accepts connections of HTTP,
//! and answers health checks in a flood; `server` serves as many as `connections` and the share of each
//! client (`clients`) allow; `protocols` takes a connection through the handshake of TLS (`client_stream`) to its
//! requests, in the version of HTTP that its `preface` names; `watched_stream` counts their progress in `connection_state`; `http` routes
//! each request and `grpc` each call, on the parts that both share in `service`; `body` reads a body under
//! [`Limits`] and its share of `memory`; `infer` decodes it, waits for the [`Backend`], which is the rest
//! of the server and may be replaced between requests (`backends`), and encodes the answer; a `turnstile`
//! before and after it lets other work through a flood; `reply` makes HTTP responses.

mod accepting;
mod backend;
mod backends;
mod body;
mod client_stream;
mod clients;
mod connection_state;
mod connections;
mod grpc;
mod http;
mod infer;
mod limits;
mod memory;
mod port;
mod preface;
mod protocols;
mod reply;
mod server;
mod service;
mod turnstile;
mod watched_stream;

pub use backend::{Backend, ConnectionLife};
pub use backends::{Backends, Replaced};
pub use limits::Limits;
pub use port::Ports;
pub use server::{Drained, serve};
pub use service::ANY_VARIANT;
pub use switchyard_protocol::{
    AppIndex, AppInfo, BatchStats, BytesContent, Control, Datatype, ENDPOINTS, Endpoint,
    InferAnswer, InferCall, InferError, OutputIndex, OutputTensor, ProtocolError, Shape, StageCall,
    StageWork, Tensor, TensorData, TensorSpec, Timing, VariantIndex, VariantStats, WireElements,
    parse,
};
