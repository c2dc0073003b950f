//! The instructions of x86-64 processors.
#![allow(
    unsafe_code,
    reason = "instructions beyond the target's may only run on machines that have them; a token of \
              this module proves that"
)]

pub(super) mod bytes;
pub(super) mod products;
pub(super) mod vectors;
