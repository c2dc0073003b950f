//! Behaviour of the gRPC port, in front of the same backend.

mod calls;
mod cancel;
mod client;
mod drain;
mod errors;
mod health;
mod infer;
mod limits;
mod statistics;
mod stream;
