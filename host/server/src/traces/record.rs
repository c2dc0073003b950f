//! The trace of one request, with the ids and times of the core.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::time::{Micros, Time};

/// The place of a call in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTrace {
    /// Of all spans of the trace.
    pub trace_id: u128,
    /// The client's span.
    pub parent: Option<u64>,
    /// The span of the request.
    pub span_id: u64,
}

/// A request that has ended. A call of several rows is traced by its first row.
pub struct RequestTrace {
    /// Its place in the trace.
    pub call: CallTrace,
    /// Its pool.
    pub pool: Arc<str>,
    /// Names the ids below.
    pub catalog: Arc<Catalog>,
    /// Its id, as explanations of decisions take it.
    pub request: RequestId,
    /// Its app.
    pub app: AppId,
    /// Rows of its call.
    pub rows: usize,
    /// When it was accepted.
    pub arrival: Time,
    /// When its answer loses worth.
    pub deadline: Time,
    /// When it ended.
    pub ended: Time,
    /// Its outcome, as in metrics.
    pub outcome: &'static str,
    /// It has an answer.
    pub is_answered: bool,
    /// Label of the policy that decided, if a decision was made.
    pub policy: Option<Arc<str>>,
    /// The variant and the exit that answered.
    pub ran: Option<(VariantId, ExitId)>,
    /// The windows whose plans name it.
    pub windows: Vec<WindowTrace>,
    /// The batches that it was in.
    pub batches: Vec<BatchTrace>,
}

/// A window whose plan names the request.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowTrace {
    /// Its number.
    pub id: u64,
    /// Label of the policy that made the plan.
    pub by: Arc<str>,
    /// The policy's words about the request.
    pub reason: Option<String>,
    /// When it was opened.
    pub opened: Time,
    /// When its plan was applied.
    pub closed: Time,
}

/// A batch that the request was in.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchTrace {
    /// Its id.
    pub batch: BatchId,
    /// The worker that ran it.
    pub worker: WorkerId,
    /// The variant that ran.
    pub variant: VariantId,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit whose head answered.
    pub exit: Option<ExitId>,
    /// Requests in it.
    pub size: usize,
    /// Time of the load that it waited for.
    pub load: Micros,
    /// When the worker computed; until its end is known, when it got the batch.
    pub began: Time,
    /// `None`: its worker was lost.
    pub ended: Option<Time>,
}
