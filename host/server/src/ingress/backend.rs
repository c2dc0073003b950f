//! The one trait between the protocol and the rest of the server.

use std::future::Future;
use std::sync::Arc;

use thiserror::Error;

use super::tensor::{Datatype, Tensor};

/// What the ingress needs from the server behind it.
///
/// An *app* is the protocol's model, a *variant* is its version; both are
/// indices here, names on the wire.
pub trait Backend: Send + Sync + 'static {
    /// All apps; the position is the app's id and does not change while serving.
    fn apps(&self) -> &[AppInfo];

    /// The id of the app of that name.
    fn app_index(&self, name: &str) -> Option<usize>;

    /// Whether requests would be served now: every app ready.
    ///
    /// # Errors
    /// The reason why not, for the operator who reads the probe's answer.
    fn server_ready(&self) -> Result<(), String>;

    /// Whether this app, or this variant of it, would be served now.
    ///
    /// # Errors
    /// The reason why not.
    fn app_ready(&self, app: usize, variant: Option<usize>) -> Result<(), String>;

    /// The state of a variant in the words of the repository index, and why it is not `READY`.
    fn app_state(&self, app: usize, variant: usize) -> (&'static str, String) {
        match self.app_ready(app, Some(variant)) {
            Ok(()) => ("READY", String::new()),
            Err(reason) => ("UNAVAILABLE", reason),
        }
    }

    /// Loads an app, which is ready when this ends well, or unloads it: then none of its
    /// requests is taken any more, and those that were are answered.
    ///
    /// # Errors
    /// Why it is not loaded.
    fn control(
        &self,
        app: usize,
        verb: Control,
    ) -> impl Future<Output = Result<(), InferError>> + Send;

    /// Schedules and runs one request.
    ///
    /// The future is dropped when the client goes away; an implementation may
    /// take that as leave to skip the work.
    ///
    /// # Errors
    /// Why the request ended without an answer.
    fn infer(
        &self,
        call: InferCall,
    ) -> impl Future<Output = Result<InferAnswer, InferError>> + Send;

    /// Counters of one variant since the start.
    fn stats(&self, app: usize, variant: usize) -> VariantStats;

    /// Told of each request the ingress itself refused as wrong, which the
    /// scheduler never saw, with the HTTP status the client got.
    fn on_refused(&self, _app: Option<usize>, _status: u16) {}
}

/// What the repository is asked to do with an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Make it ready.
    Load,
    /// Free its memory.
    Unload,
}

/// What an app takes and gives, as its metadata tells it.
#[derive(Clone, Debug)]
pub struct AppInfo {
    /// Name in the URL.
    pub name: String,
    /// Variant names; the position is the variant's id.
    pub variants: Vec<String>,
    /// Platform string of the metadata, such as `candle`.
    pub platform: String,
    /// Inputs, in the order of [`InferCall::inputs`].
    pub inputs: Vec<TensorSpec>,
    /// Outputs; [`OutputTensor::spec`] points here.
    pub outputs: Vec<TensorSpec>,
    /// Rows one request may carry.
    pub max_batch_rows: usize,
}

/// Name, type and shape of one input or output.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name on the wire.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions of one row, without the batch dimension; -1 is variable.
    pub shape: Vec<i64>,
}

/// One decoded and checked request.
#[derive(Clone, Debug, PartialEq)]
pub struct InferCall {
    /// App id.
    pub app: usize,
    /// The variant pinned by the URL's `/versions/`, if any.
    pub variant: Option<usize>,
    /// Rows in every input, at least 1.
    pub rows: usize,
    /// One tensor per [`AppInfo::inputs`], in that order.
    pub inputs: Vec<Tensor>,
    /// Microseconds from arrival to the deadline; none: the app's own.
    pub timeout_us: Option<u64>,
    /// 0 is the default, 1 the highest, larger is lower.
    pub priority: u32,
    /// The least accuracy the client accepts, from 0 to 1.
    pub min_accuracy: Option<f32>,
}

/// What came of a request, and why it came out so.
#[derive(Clone, Debug)]
pub struct InferAnswer {
    /// Outputs, in the order they are to be sent.
    pub outputs: Vec<OutputTensor>,
    /// Name of the variant that answered.
    pub variant: Arc<str>,
    /// Name of the exit it left through.
    pub exit: Arc<str>,
    /// Policy that decided, with its version.
    pub policy: Arc<str>,
    /// Requests in the batch it ran in.
    pub batch_size: u32,
    /// Microseconds from arrival to the start of the batch.
    pub queue_us: u64,
    /// Microseconds the batch ran.
    pub compute_us: u64,
    /// Whether the answer was ready before the deadline.
    pub deadline_met: bool,
    /// Whether it was answered from SneakPeek evidence, without the model.
    pub short_circuit: bool,
    /// The window that decided, for "why this variant".
    pub window: u64,
}

/// One output of an answer.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    /// Index into [`AppInfo::outputs`].
    pub spec: usize,
    /// Its values.
    pub tensor: Tensor,
}

/// Why an accepted or arriving request ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InferError {
    /// A bounded queue is full. HTTP 429.
    #[error("queue full: {queue}")]
    QueueFull {
        /// Which queue, with its bound.
        queue: String,
        /// Seconds after which trying again makes sense.
        retry_after_s: u32,
    },
    /// The app or variant cannot serve now. HTTP 503.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The server is shutting down. HTTP 503.
    #[error("draining: the server is shutting down")]
    Draining,
    /// The policy rejected it. HTTP 503.
    #[error("refused by the policy: {0}")]
    RefusedByPolicy(String),
    /// Its deadline passed and it was dropped unserved. HTTP 504.
    #[error("dropped: its deadline passed after {waited_us} us in the queue")]
    DeadlineDropped {
        /// Microseconds since arrival.
        waited_us: u64,
    },
    /// The backend failed on it. HTTP 500.
    #[error("failed: {0}")]
    Failed(String),
}

/// A count and the time it took, as Triton's statistics pair them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many.
    pub count: u64,
    /// Nanoseconds in all.
    pub ns: u64,
}

/// Counters of one variant since the start.
#[derive(Clone, Debug, Default)]
pub struct VariantStats {
    /// Unix milliseconds of the last inference; 0 for none.
    pub last_inference_ms: u64,
    /// Rows answered.
    pub inference_count: u64,
    /// Batches run.
    pub execution_count: u64,
    /// Requests answered, arrival to answer.
    pub success: Timing,
    /// Requests that failed, arrival to failure.
    pub fail: Timing,
    /// Time in queues.
    pub queue: Timing,
    /// Time assembling batches.
    pub compute_input: Timing,
    /// Time running them.
    pub compute_infer: Timing,
    /// Time taking them apart.
    pub compute_output: Timing,
    /// The same per batch size, ascending.
    pub batches: Vec<BatchStats>,
}

/// Batches of one size.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchStats {
    /// Rows per batch.
    pub batch_size: u64,
    /// Time assembling them.
    pub compute_input: Timing,
    /// Time running them.
    pub compute_infer: Timing,
    /// Time taking them apart.
    pub compute_output: Timing,
}
