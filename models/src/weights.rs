//! Weights: the files that hold them, and their form in memory.
//!
//! - [`tensors`] reads and writes safetensors files, from the bytes of a [`mapped_file`]
//! - [`params`] hands the tensors of a file to an architecture, or draws them for training
//! - [`precision`] is the number of bits of a weight, [`product`] the weights of a matrix product
//!   in a precision, [`mode`] the way in which a network computes with them

pub(crate) mod mapped_file;
pub(crate) mod mode;
pub(crate) mod params;
pub(crate) mod precision;
pub(crate) mod product;
pub(crate) mod tensors;
