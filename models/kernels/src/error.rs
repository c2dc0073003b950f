//! The error of this crate.

/// The reason why a kernel refused its weights or inputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// An image with its padding is smaller than a window.
    #[error(
        "a {height} by {width} image is smaller than its {kernel_height} by {kernel_width} window"
    )]
    ImageTooSmall {
        /// Lines of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
        /// Lines of the window.
        kernel_height: usize,
        /// Columns of the window.
        kernel_width: usize,
    },
    /// Shapes of weights, inputs or a residual do not fit each other.
    #[error("{0}")]
    Shape(String),
    /// An output has more weights than its sum can hold.
    #[error("{rows} weights of an output in 8 bits, at most {max} fit a 32-bit sum")]
    TooManyWeights {
        /// Weights of one output.
        rows: usize,
        /// Most weights of one output.
        max: usize,
    },
}
