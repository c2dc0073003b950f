//! Between the contract's types and the core's, in native builds.

pub(crate) mod to_core;
pub(crate) mod to_raw;
