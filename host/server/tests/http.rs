//! Behaviour of the HTTP port over real sockets, in front of a small backend.

#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

mod http {
    pub(crate) mod bench;

    mod codec;
    mod drain;
    mod errors;
    mod limits;
    mod metadata;
    mod openapi;
    mod scheduling;
}
