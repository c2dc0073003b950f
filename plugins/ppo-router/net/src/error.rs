//! Errors of weights.

use thiserror::Error;

/// A fault of weights.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WeightsError {
    /// Not safetensors.
    #[error("weights: {reason}")]
    File {
        /// The fault.
        reason: String,
    },
    /// The metadata is invalid.
    #[error("weights: metadata: {field}: {reason}")]
    Metadata {
        /// The field at fault.
        field: String,
        /// The fault.
        reason: String,
    },
    /// A tensor is missing.
    #[error("weights: tensor {tensor} is missing")]
    Missing {
        /// Its name.
        tensor: String,
    },
    /// An unexpected tensor.
    #[error("weights: tensor {tensor} is unexpected")]
    Unexpected {
        /// Its name.
        tensor: String,
    },
    /// A tensor of another element type.
    #[error("weights: tensor {tensor} is {found}, not F32")]
    Type {
        /// Its name.
        tensor: String,
        /// The found type.
        found: String,
    },
    /// A tensor of another shape.
    #[error("weights: tensor {tensor} has shape {found:?}, not {expected:?}")]
    Shape {
        /// Its name.
        tensor: String,
        /// The expected shape.
        expected: Vec<usize>,
        /// The found shape.
        found: Vec<usize>,
    },
    /// A tensor's bytes are missing or have the wrong length.
    #[error("weights: tensor {tensor}: {reason}")]
    Bytes {
        /// Its name.
        tensor: String,
        /// The fault.
        reason: String,
    },
    /// NaN or an infinity.
    #[error("weights: tensor {tensor}: number {index} is {value}")]
    NotFinite {
        /// Its name.
        tensor: String,
        /// Index in row order.
        index: usize,
        /// `NaN`, `inf` or `-inf`.
        value: String,
    },
}
