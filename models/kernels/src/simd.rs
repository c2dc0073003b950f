//! Vector instructions: which ones the machine has, and code that is compiled for all of them.
//!
//! - [`instructions`] knows the instruction sets and chooses one for the process
//! - [`vectors`], [`products`] and [`bytes`] are the operations of one set, as traits, with plain
//!   code that runs everywhere: `f32`, words of weights, bytes
//! - `x86` implements them with AVX2 and AVX-512
//! - [`dispatch`](mod@dispatch) runs an operation with the chosen set
//!
//! `x86` and [`dispatch`](mod@dispatch) hold all unsafe code of the module.

pub(crate) mod bytes;
mod dispatch;
mod instructions;
pub(crate) mod products;
pub(crate) mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use self::dispatch::{
    byte_shape, dispatch, dispatch_bytes, dispatch_pairs, lanes, pair_steps, registers,
};
pub use self::instructions::Instructions;
