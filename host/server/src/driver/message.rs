//! The messages to a pool's driver, and its replies.

use std::sync::Arc;

use crossbeam_channel::Sender;
use smallvec::SmallVec;
use switchyard_core::cost::Cost;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::policy::{Policy, WindowFields};
use switchyard_core::request::{Evidence, Outcome};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;
use switchyard_core::worker::Decided;
use switchyard_executor::{LoadedModel, RowTensors, WorkerEvent};
use switchyard_models::NamedTensor;
use switchyard_policy::recording::PolicyRecord;
use tokio::sync::oneshot;

use super::models::LoadEnd;
use super::recent::RecentReport;
use super::restarts::{Restarted, StartNumber};
use super::status::PoolStatus;
use crate::recorder::Recorder;
use crate::telemetry::Counter;
use crate::traces::CallTrace;

/// Names a call until it ends. The handle gives it, so that a call can be cancelled before the
/// driver has numbered its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The end of a call: one answer per row, in order, or the error of the first row without an
/// answer.
pub type CallEnd = Result<SmallVec<[RowAnswer; 1]>, CallError>;

/// A message to the driver.
pub enum Message {
    /// A call from a client.
    Submit(SubmittedCall),
    /// The client of a call went away.
    Cancel(Ticket),
    /// An event of a worker, and the start of the worker that reports it.
    Worker(StartNumber, WorkerEvent),
    /// A worker was started anew, or could not be.
    Restarted(WorkerId, StartNumber, Restarted),
    /// Neighbour counts of a request.
    Evidence {
        /// The request.
        request: RequestId,
        /// One count per class.
        counts: Evidence,
    },
    /// A policy to switch to; answered with the time the switch took.
    Install(Box<dyn Policy>, PolicyRecord, Sender<Micros>),
    /// The active policy in other code; answered with the time the change took.
    Recompiled(Box<dyn Policy>, PolicyRecord, Sender<Micros>),
    /// Record windows and plans from now on.
    Record(Recorder),
    /// Record no longer. Dropping the recorder waits for the disk.
    TakeRecorder(Sender<Option<Recorder>>),
    /// The policy's file is gone.
    RemovePolicy,
    /// Sends decisions to this watch from now on; `None`: to none.
    Watch(Option<Watch>),
    /// The last windows, oldest first, at most this many.
    Windows(usize, Sender<Vec<Window>>),
    /// The decision of one window, if it is still kept.
    Decision(u64, oneshot::Sender<Option<Arc<Decision>>>),
    /// The last decision that names a request, if it is still kept.
    DecisionAbout(RequestId, oneshot::Sender<Option<Arc<Decision>>>),
    /// The status of the pool.
    Status(oneshot::Sender<PoolStatus>),
    /// Ends and batches of the last seconds.
    Recent(oneshot::Sender<RecentReport>),
    /// Make an app's variants resident where there is room, and serve it.
    Load(AppId, LoadEnd),
    /// Let an app's variants go once its requests have ended; answered when this is known.
    Unload(AppId, oneshot::Sender<()>),
    /// Run a variant on other weights from the next batch on: each worker on its own.
    Replace(VariantId, Vec<Arc<LoadedModel>>),
    /// Accept no further call; answered when no request is left inside.
    Drain(oneshot::Sender<()>),
}

impl Message {
    /// Whether an inline turn may handle it: it belongs to a request, is handled in microseconds
    /// and leaves models and policy as they are.
    pub(super) fn is_inline(&self) -> bool {
        matches!(
            self,
            Self::Submit(_)
                | Self::Cancel(_)
                | Self::Evidence { .. }
                | Self::Worker(_, WorkerEvent::Finished(_))
        )
    }
}

/// A receiver of a pool's decisions.
pub struct Watch {
    /// Fields that windows show in addition to those that the policy wants.
    pub shows: WindowFields,
    /// The receiver.
    pub decisions: Sender<Arc<Decision>>,
    /// Counts the decisions that found no room.
    pub dropped: Counter,
}

/// One client call: rows that share an app and a deadline.
#[derive(Debug)]
pub struct PoolCall {
    /// The app of all rows.
    pub app: AppId,
    /// The variant that the client insists on.
    pub pinned: Option<VariantId>,
    /// When it was accepted.
    pub arrival: Time,
    /// When its answer loses worth.
    pub deadline: Time,
    /// 0 = unspecified, 1 = highest, larger = lower.
    pub priority: u32,
    /// The lowest accuracy that the client accepts, 0 for any.
    pub min_accuracy: f32,
    /// The inputs of each row.
    pub rows: SmallVec<[RowInput; 1]>,
    /// Its place in a trace, if it is traced.
    pub trace: Option<Box<CallTrace>>,
}

/// A call on its way to the driver.
#[derive(Debug)]
pub struct SubmittedCall {
    /// Its name.
    pub ticket: Ticket,
    /// The call.
    pub call: PoolCall,
    /// Takes the end.
    pub reply: oneshot::Sender<CallEnd>,
}

/// The input of one row.
#[derive(Debug)]
pub struct RowInput {
    /// One tensor per input of the app.
    pub tensors: RowTensors,
    /// A copy of all tensors for the evidence thread, if the policy sees evidence.
    pub peek: Option<Vec<f32>>,
    /// Its share of a batch's time.
    pub cost: Cost,
}

/// The answer to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAnswer {
    /// Class probabilities: of the exit's head, or the posterior of the evidence.
    pub probabilities: Vec<f32>,
    /// The outputs of a graph without classes.
    pub tensors: Vec<NamedTensor>,
    /// Variant and exit that ran; `None` when evidence alone answered.
    pub ran: Option<(VariantId, ExitId)>,
    /// Label of the policy that decided.
    pub policy: Arc<str>,
    /// The window that decided, 0 for none.
    pub window: u64,
    /// Requests in its batch, 0 without one.
    pub batch_size: u32,
    /// From arrival to the start of the batch that answered, or to the answer without one.
    pub queue: Micros,
    /// Time its batches computed.
    pub compute: Micros,
    /// Not after the deadline.
    pub in_time: bool,
}

/// Why a call was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// How the first unanswered row ended.
    pub outcome: Outcome,
    /// From its arrival to then.
    pub waited: Micros,
    /// The policy and window that decided, if a decision was made.
    pub decided: Option<Decided>,
}
