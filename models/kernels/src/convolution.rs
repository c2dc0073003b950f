//! Convolutions on packed weights.
//!
//! - [`driver`] is the code that all of them share: it checks shapes, has the kernel prepare its
//!   input, cuts the output into blocks and shares these among threads
//! - `dense` convolves over all channels, in `f32` or bf16; `winograd` does so with fewer
//!   products, `int8` in bytes; `depthwise` convolves each channel on its own
//! - `panels` holds weights in the order in which `tile`, the innermost loop, reads them, `parts` cuts their
//!   rows, and `geometry` has the addresses of the windows

mod dense;
mod depthwise;
mod driver;
mod geometry;
mod int8;
mod packed;
pub(crate) mod panels;
mod parts;
pub(crate) mod tile;
mod winograd;

pub use self::packed::{PackedConv, PackedDepthwise, PackedLinear, WeightFormat};
