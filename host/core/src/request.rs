//! A request as the core sees it (never its payload), and how it can end.

use smallvec::SmallVec;

use crate::cost::Cost;
use crate::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use crate::time::Time;

/// Label counts of the nearest neighbours, one per class of the app.
pub type Evidence = SmallVec<[u32; 8]>;

/// A request at its arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// From the driver; never used twice.
    pub id: RequestId,
    /// The app asked for.
    pub app: AppId,
    /// When it was accepted.
    pub arrival: Time,
    /// When its answer loses worth.
    pub deadline: Time,
    /// 0 = unspecified, 1 = highest, larger = lower.
    pub priority: u32,
    /// Least accuracy that the client asks for, 0 to 1; 0 asks for none.
    pub min_accuracy: f32,
    /// The variant that the client pinned. The host places such a request, and no window shows it
    /// as pending.
    pub pinned: Option<VariantId>,
    /// Its share of a batch's time.
    pub cost: Cost,
}

/// The stages that a parked request has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The worker that holds its activations.
    pub worker: WorkerId,
    /// The variant it must go on with.
    pub variant: VariantId,
    /// Stages it has run.
    pub stages_run: u32,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A batch answered it.
    Answered {
        /// The variant that answered.
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
    /// Ended at its deadline, or once no variant could answer it in time, in an app that drops such
    /// requests.
    Dropped(DroppedFrom),
    /// The executor could not run it.
    Failed(String),
    /// The client went away.
    Cancelled,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// `pending_max` requests are pending, or no worker has room for a pinned one.
    PendingFull,
    /// The lane drawn for it was full.
    LaneFull,
    /// The policy refused it.
    ByPolicy,
    /// No worker has the memory for it, or none of those that have was up in time.
    NoWorker,
    /// The requests ahead of it leave no time for it.
    Overloaded,
    /// Its app asks for more than its fair share of the workers, and has its short queue full.
    AboveShare,
    /// Even the fastest variant on an idle worker takes longer than its deadline allows.
    DeadlineTooShort,
    /// The scheduler is shutting down.
    Draining,
}

/// Where a request was when it was dropped.
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
    /// All names in metrics.
    pub const LABELS: [&str; 16] = [
        "in_time",
        "late",
        "short_circuit",
        "short_circuit_late",
        "queue_full",
        "rejected_by_policy",
        "no_worker",
        "overloaded",
        "above_share",
        "deadline_too_short",
        "draining",
        "dropped_pending",
        "dropped_queued",
        "dropped_between_stages",
        "failed",
        "cancelled",
    ];

    /// Name in metrics, one of [`LABELS`](Self::LABELS).
    pub fn label(&self) -> &'static str {
        match self {
            Self::Answered { in_time: true, .. } => "in_time",
            Self::Answered { in_time: false, .. } => "late",
            Self::ShortCircuited { in_time: true } => "short_circuit",
            Self::ShortCircuited { in_time: false } => "short_circuit_late",
            Self::Rejected(Rejection::PendingFull | Rejection::LaneFull) => "queue_full",
            Self::Rejected(Rejection::ByPolicy) => "rejected_by_policy",
            Self::Rejected(Rejection::NoWorker) => "no_worker",
            Self::Rejected(Rejection::Overloaded) => "overloaded",
            Self::Rejected(Rejection::AboveShare) => "above_share",
            Self::Rejected(Rejection::DeadlineTooShort) => "deadline_too_short",
            Self::Rejected(Rejection::Draining) => "draining",
            Self::Dropped(DroppedFrom::Pending) => "dropped_pending",
            Self::Dropped(DroppedFrom::Queue) => "dropped_queued",
            Self::Dropped(DroppedFrom::BetweenStages) => "dropped_between_stages",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_listed_label() {
        let rejected = [
            Rejection::PendingFull,
            Rejection::LaneFull,
            Rejection::ByPolicy,
            Rejection::NoWorker,
            Rejection::Overloaded,
            Rejection::AboveShare,
            Rejection::DeadlineTooShort,
            Rejection::Draining,
        ];
        let dropped = [
            DroppedFrom::Pending,
            DroppedFrom::Queue,
            DroppedFrom::BetweenStages,
        ];
        let answered = [true, false].into_iter().flat_map(|in_time| {
            let (variant, exit) = (VariantId(0), ExitId(0));
            [
                Outcome::Answered {
                    variant,
                    exit,
                    in_time,
                },
                Outcome::ShortCircuited { in_time },
            ]
        });
        let ends = answered
            .chain(rejected.map(Outcome::Rejected))
            .chain(dropped.map(Outcome::Dropped))
            .chain([Outcome::Failed(String::new()), Outcome::Cancelled]);
        let mut labels: Vec<&str> = ends.map(|end| end.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        let mut listed = Outcome::LABELS.to_vec();
        listed.sort_unstable();
        assert_eq!(labels, listed);
    }
}
