//! Operations on images.

use switchyard_kernels::Window2d;

use super::convolution::Convolution;
use super::function::{Affine, Function};
use super::node::Extent;

/// The kind of an operation.
pub(super) enum Kind<'a> {
    /// With a second input, that is added to the sums.
    Conv(Convolution<'a>),
    /// Values times a factor per channel, plus a summand.
    Affine(Affine<'a>),
    Unweighted(Unweighted),
}

/// An operation without weights.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unweighted {
    /// A function of each value.
    Each(Function),
    /// The sum of two images.
    Plus,
    /// The product of two images.
    Times,
    /// An image times a factor per channel, which is another image of one position.
    Scale,
    /// The mean over all positions.
    Mean,
    Max(Window2d),
    /// The channels of several images one after the other.
    Join,
    /// As many channels from one on.
    Part {
        from: usize,
        len: usize,
    },
    /// Each position several times, along both axes.
    Enlarge([usize; 2]),
}

/// An operation on images.
pub(super) struct Operation<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) inputs: Vec<usize>,
    pub(super) output: usize,
}

/// An operation that a node stands for: its kind, images, and the extent of its result.
pub(super) type Found<'a> = Option<(Kind<'a>, Vec<usize>, Extent)>;

/// The same, with the name of the result.
pub(super) type Made<'a> = (Kind<'a>, Vec<usize>, Extent, &'a str);

// === impl Kind ===

impl Kind<'_> {
    /// Values of its weights.
    pub(super) fn weights(&self) -> usize {
        match self {
            Self::Conv(conv) => conv.weights(),
            _ => 0,
        }
    }
}
