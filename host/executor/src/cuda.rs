//! Cards, where this program is built for them; elsewhere the same names, without any.
//!
//! Everything here that is more than a call of a library has its decisions somewhere else, where
//! every machine tests them: `device`, `fault`, `memory`, `candle_executor`.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod driver;
#[cfg(feature = "cuda")]
mod staging;

#[cfg(not(feature = "cuda"))]
pub(crate) use absent::*;
#[cfg(feature = "cuda")]
pub(crate) use driver::*;
#[cfg(feature = "cuda")]
pub(crate) use staging::{Staged, Staging};
