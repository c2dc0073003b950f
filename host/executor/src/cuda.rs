//! GPUs, in programs that are built for them. Other programs have the same names, without a GPU.
//!
//! This module only calls CUDA's libraries. The decisions are in `device`, `fault`, `memory` and
//! `candle_executor`, where every machine can test them.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
#[allow(
    unsafe_code,
    reason = "candle and cudarc offer these calls of CUDA as unsafe functions only"
)]
mod driver;
#[cfg(feature = "cuda")]
#[allow(
    unsafe_code,
    reason = "candle and cudarc offer these calls of CUDA as unsafe functions only"
)]
mod staging;

#[cfg(not(feature = "cuda"))]
pub(crate) use absent::*;
#[cfg(feature = "cuda")]
pub(crate) use driver::*;
#[cfg(feature = "cuda")]
pub(crate) use staging::{Staged, Staging};
