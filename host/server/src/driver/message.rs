//! What reaches a pool's driver thread, and what it sends back.

use std::sync::Arc;

use crossbeam_channel::Sender;
use metrics::Counter;
use smallvec::SmallVec;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId};
use switchyard_core::policy::{Policy, WindowFields};
use switchyard_core::request::{Evidence, Outcome};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;
use switchyard_executor::{InputTensor, LoadedModel, WorkerEvent};
use switchyard_policy::recording::PolicyRecord;
use tokio::sync::oneshot;

use super::models::LoadEnd;
use super::status::PoolStatus;

/// Names a call until it ends: given by the handle, so that a client that goes away can name
/// what the driver has not numbered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// How a call ends: one answer per row, in order, or what happened to the first row that got
/// none.
pub type CallEnd = Result<SmallVec<[RowAnswer; 1]>, CallError>;

/// What the driver thread takes.
pub enum Message {
    /// A call from a client.
    Submit(Call),
    /// The client of a call went away.
    Cancel(Ticket),
    /// Something from a worker's thread.
    Worker(WorkerEvent),
    /// Neighbour counts of a request.
    Evidence {
        /// The request.
        request: RequestId,
        /// One count per class.
        counts: Evidence,
    },
    /// A policy to switch to; answered with the time the switch took.
    Install(Box<dyn Policy>, PolicyRecord, Sender<Micros>),
    /// The policy's file is gone.
    RemovePolicy,
    /// Somebody looks at decisions; none: nobody does any more.
    Watch(Option<Watch>),
    /// The last windows, oldest first, at most this many.
    Windows(usize, Sender<Vec<Window>>),
    /// The decision of one window, if it is still kept.
    Decision(u64, oneshot::Sender<Option<Arc<Decision>>>),
    /// How the pool is doing.
    Status(oneshot::Sender<PoolStatus>),
    /// Make an app's variants resident where there is room, and serve it.
    Load(AppId, LoadEnd),
    /// Let an app's variants go once its requests have ended; answered when this is known.
    Unload(AppId, oneshot::Sender<()>),
    /// Run a variant on other weights from the next batch on: each worker on its own.
    Replace(VariantId, Vec<Arc<LoadedModel>>),
    /// Accept nothing new; answered when nothing is left inside.
    Drain(oneshot::Sender<()>),
    /// End everything that is left, then the thread.
    Stop,
}

impl Message {
    /// Whether it is of what happens to requests all the time, which is handled in no time and
    /// leaves the pool as it is.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Submit(_)
                | Self::Cancel(_)
                | Self::Evidence { .. }
                | Self::Worker(WorkerEvent::Finished(_))
        )
    }
}

/// Who looks at a pool's decisions.
pub struct Watch {
    /// What windows show beside what the policy wants.
    pub shows: WindowFields,
    /// Where decisions go.
    pub decisions: Sender<Arc<Decision>>,
    /// Counts those that do not fit in.
    pub dropped: Counter,
}

/// One client call: rows that share an app and a deadline.
#[derive(Debug)]
pub struct Call {
    /// Its name.
    pub ticket: Ticket,
    /// The app asked for.
    pub app: AppId,
    /// The variant the client insists on.
    pub pinned: Option<VariantId>,
    /// When it was accepted.
    pub arrival: Time,
    /// When its answer loses worth.
    pub deadline: Time,
    /// 0 = unspecified, 1 = highest, larger = lower.
    pub priority: u32,
    /// The accuracy asked for at least, 0 for none.
    pub min_accuracy: f32,
    /// The inputs of each row.
    pub rows: SmallVec<[RowInput; 1]>,
    /// Where the end goes.
    pub reply: oneshot::Sender<CallEnd>,
}

/// The input of one row.
#[derive(Debug)]
pub struct RowInput {
    /// One tensor per input of the app.
    pub tensors: Vec<InputTensor>,
    /// A copy of the first tensor for the evidence thread, where somebody wants it.
    pub peek: Option<Vec<f32>>,
}

/// The answer to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAnswer {
    /// Class probabilities: of the exit's head, or the posterior of the evidence.
    pub probabilities: Vec<f32>,
    /// Variant and exit that ran; none when evidence alone answered.
    pub ran: Option<(VariantId, ExitId)>,
    /// Label of who decided.
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

/// What kept a call from being answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// How the first unanswered row ended.
    pub outcome: Outcome,
    /// From its arrival to then.
    pub waited: Micros,
}
