//! A queue with the batch that it would get.

use crate::exits::PossibleBatch;

/// A queue with the batch that would be served next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Index of the queue.
    pub(crate) queue: usize,
    pub(crate) batch: PossibleBatch,
    /// The wait of its most urgent task, in microseconds.
    pub(crate) longest_us: f64,
}
