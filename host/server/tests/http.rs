//! Behaviour of the HTTP port over real sockets, in front of a backend without models.

#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

mod http {
    mod codec;
    mod control;
    mod drain;
    mod errors;
    mod grpc;
    mod http2;
    mod limits;
    mod memory;
    mod metadata;
    mod openapi;
    mod scheduling;
    mod slow;
    pub(crate) mod test_bed;
    mod tls;
}
