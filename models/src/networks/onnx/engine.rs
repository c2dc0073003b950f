//! The seam between a graph and the library that computes it.

use candle_core::Result;

use crate::networks::graph::{NamedTensor, RawTensor};

/// A graph that is ready to run. Any number of batches may run at the same time, each with the threads
/// of the pool that it is called in.
pub(super) trait Engine: Send + Sync {
    /// Runs a batch: every input of the graph by name, and the outputs that are wanted, or all.
    ///
    /// # Errors
    /// An input does not fit, or the computation failed.
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>>;
}

/// The engine of this program that suits a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OwnEngine {
    #[default]
    Embedded,
    /// Most of it is convolutions.
    Images,
    /// It has large linear maps.
    Linear,
    /// It has operators of `ai.onnx.ml`.
    Classic,
}
