//! A request as the core sees it (never its payload), and how it can end.

use smallvec::SmallVec;

use crate::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use crate::time::Time;

/// Label counts of the nearest neighbours, one per class of the app.
pub type Evidence = SmallVec<[u32; 8]>;

/// What the ingress knows of a request when it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Given by the driver; never used twice.
    pub id: RequestId,
    /// The app asked for.
    pub app: AppId,
    /// When it was accepted.
    pub arrival: Time,
    /// When its answer loses worth.
    pub deadline: Time,
    /// 0 = unspecified, 1 = highest, larger = lower.
    pub priority: u32,
    /// The accuracy the client asks for at least, 0 when it does not care.
    pub min_accuracy: f32,
    /// The variant the client insists on. Such a request never reaches the policy: there is
    /// nothing left to decide but its place.
    pub pinned: Option<VariantId>,
}

/// How far a partly run request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where its activations are parked.
    pub worker: WorkerId,
    /// The variant it must go on with.
    pub variant: VariantId,
    /// Stages it has run.
    pub stages_run: u32,
}

/// The one end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A batch answered it.
    Answered {
        /// The variant that ran.
        variant: VariantId,
        /// The exit that answered.
        exit: ExitId,
        /// Not after the deadline.
        in_time: bool,
    },
    /// Its evidence answered it (SneakPeek's short-circuit).
    ShortCircuited {
        /// Not after the deadline.
        in_time: bool,
    },
    /// Refused.
    Rejected(Rejection),
    /// Dropped after its deadline, by an app that drops.
    Dropped(DroppedFrom),
    /// The executor could not run it.
    Failed(String),
    /// The client went away.
    Cancelled,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// As many requests are pending as the scheduler holds.
    PendingFull,
    /// The lane drawn for it was full.
    LaneFull,
    /// The policy said so.
    ByPolicy,
    /// No worker can ever run it.
    NoWorker,
    /// The scheduler is shutting down.
    Draining,
}

/// Where a request was when its deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DroppedFrom {
    /// Waiting to be dispatched.
    Pending,
    /// In a worker's queue or a lane.
    Queue,
    /// Parked between stages.
    BetweenStages,
}

// === impl Outcome ===

impl Outcome {
    /// Name in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Answered { in_time: true, .. } => "in_time",
            Self::Answered { in_time: false, .. } => "late",
            Self::ShortCircuited { in_time: true } => "short_circuit",
            Self::ShortCircuited { in_time: false } => "short_circuit_late",
            Self::Rejected(Rejection::PendingFull | Rejection::LaneFull) => "queue_full",
            Self::Rejected(Rejection::ByPolicy) => "rejected_by_policy",
            Self::Rejected(Rejection::NoWorker) => "no_worker",
            Self::Rejected(Rejection::Draining) => "draining",
            Self::Dropped(DroppedFrom::Pending) => "dropped_pending",
            Self::Dropped(DroppedFrom::Queue) => "dropped_queued",
            Self::Dropped(DroppedFrom::BetweenStages) => "dropped_between_stages",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}
