//! A request that has passed every check.

use crate::trace_parent::TraceParent;
use smallvec::SmallVec;

use crate::app::{AppIndex, OutputIndex, VariantIndex};
use crate::stages::StageCall;
use crate::tensor::Tensor;

/// The part of a request that the backend serves.
#[derive(Clone, Debug, PartialEq)]
pub struct InferCall {
    /// The app of the URL.
    pub app: AppIndex,
    /// The variant that the URL pins with `/versions/`; `None` leaves the choice to the policy.
    pub variant: Option<VariantIndex>,
    /// Rows in every input, at least 1.
    pub rows: usize,
    /// One tensor per [`AppInfo::inputs`](crate::AppInfo::inputs), in that order.
    pub inputs: Vec<Tensor>,
    /// Microseconds from arrival to the deadline; `None` for the app's default.
    pub timeout_us: Option<u64>,
    /// Microseconds that it waited since it was read: part of its time to the deadline.
    pub waited_us: u64,
    /// The client's span, if it names one and the server traces requests.
    pub parent: Option<TraceParent>,
    /// 0 is the default, 1 the highest, larger is lower.
    pub priority: u32,
    /// The least accuracy that the client accepts, from 0 to 1.
    pub min_accuracy: Option<f32>,
    /// Of a scheduler: some stages of a batch.
    pub stages: Option<StageCall>,
}

/// A call, and the parts of the request that only its answer needs.
#[derive(Debug)]
pub struct DecodedRequest {
    /// For the backend.
    pub call: InferCall,
    /// Echoed in the answer.
    pub id: Option<String>,
    /// Outputs that the client wants.
    pub wanted: WantedOutputs,
}

/// Outputs that the client wants, in its order. Four fit without an allocation.
pub type WantedOutputs = SmallVec<[WantedOutput; 4]>;

/// One output that the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedOutput {
    /// Which output of the app.
    pub output: OutputIndex,
    /// As a blob instead of JSON.
    pub binary: bool,
    /// The number of classes of each row, best first, that replace its values; 0: the values.
    pub classes: usize,
}
