//! The backend's answer to a call.

use std::sync::Arc;

use crate::app::OutputIndex;
use crate::tensor::Tensor;

/// Outputs of a request, and how they were computed.
#[derive(Clone, Debug)]
pub struct InferAnswer {
    /// Outputs of the app, in any order.
    pub outputs: Vec<OutputTensor>,
    /// Name of the variant that answered.
    pub variant: Arc<str>,
    /// Name of the exit that it left through.
    pub exit: Arc<str>,
    /// Policy that decided, with its version.
    pub policy: Arc<str>,
    /// Requests in its batch.
    pub batch_size: u32,
    /// Microseconds from arrival to the start of the batch.
    pub queue_us: u64,
    /// Microseconds that the batch computed.
    pub compute_us: u64,
    /// Whether the answer was ready before the deadline.
    pub deadline_met: bool,
    /// Whether it was answered from SneakPeek evidence, without the model.
    pub short_circuit: bool,
    /// Number of the scheduling window that decided, by which the admin port explains the choice.
    pub window: u64,
}

/// One output of an answer.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// Which output of the app.
    pub output: OutputIndex,
    /// Its values.
    pub tensor: Tensor,
}
