//! Events go into the scheduler, commands come out.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::cost::Cost;
use crate::decision::Decision;
use crate::guard::Faulted;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::policy::{Policy, PolicyFault, WindowFields};
use crate::request::{Evidence, Outcome, Request};
use crate::residents::Soon;
use crate::time::{Micros, Time};
use crate::worker::{Decided, Members};

/// An event. One that names a request that has ended, or a batch that is unknown or has ended, is
/// ignored: it may have been under way.
pub enum Event {
    /// A request was accepted. Ids must grow from request to request.
    Arrived(Request),
    /// The neighbours of a request were counted.
    Evidence {
        /// The request.
        request: RequestId,
        /// One count per class of its app.
        counts: Evidence,
    },
    /// The client went away.
    Cancelled(RequestId),
    /// A worker ended its batch.
    Finished {
        /// The worker.
        worker: WorkerId,
        /// The batch of its [`Launch`].
        batch: BatchId,
        /// How it ended.
        end: BatchEnd,
    },
    /// A worker's models changed.
    Residency {
        /// The worker.
        worker: WorkerId,
        /// The variants it holds now.
        resident: Vec<VariantId>,
        /// Memory left, in bytes.
        free_bytes: u64,
    },
    /// A worker is gone, with its running batch and the activations parked there.
    WorkerDown {
        /// The worker.
        worker: WorkerId,
        /// The reason, for the requests of the running batch that are not tried again.
        reason: String,
    },
    /// A worker takes no more batches; the running one may still end.
    WorkerLeaving(WorkerId),
    /// A worker is back, empty: a batch that it had before is unknown.
    WorkerUp(WorkerId),
    /// A loaded, configured and tried policy takes over.
    PolicyChanged(Box<dyn Policy>),
    /// The active policy in other code: takes its place and its state, and its routes stay. Ignored if
    /// a policy with another label is active, or none.
    PolicyRecompiled(Box<dyn Policy>),
    /// The policy's file is gone: the native fallback takes over.
    PolicyRemoved,
    /// Apps, variants, workers or the profile changed. Ids keep their meaning; lists only grow.
    CatalogChanged(Arc<Catalog>),
    /// Decisions are watched: each comes as a [`Command::Decided`], and windows show these fields
    /// in addition to the policy's. None: no longer.
    Watched(Option<WindowFields>),
    /// Rejects every arrival from now on; requests that were accepted before are served.
    Drain,
}

/// How a batch ended. Inference is pure: a request may be computed again, and is answered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// It ran: its requests are answered or parked.
    Done,
    /// The worker could not run it and serves on. None of its requests is parked any more.
    Failed {
        /// The reason, for the requests that are not tried again.
        reason: String,
        /// Another try may succeed. The requests of a larger batch are then tried one by one, so
        /// that one bad request fails no other.
        repeatable: bool,
    },
    /// The worker is lost, and the batch with it: as [`Event::WorkerDown`].
    Lost {
        /// The reason, for the requests that are not tried again.
        reason: String,
    },
}

/// A command for the driver.
#[derive(Debug)]
pub enum Command {
    /// Give a batch to a worker, which runs no other.
    Launch(Launch),
    /// Answer a client. Exactly one for each accepted request.
    Reply(Reply),
    /// Forget the parked activations of a request.
    Release {
        /// The worker that holds them.
        worker: WorkerId,
        /// The request.
        request: RequestId,
    },
    /// Load ahead the variants of the batches that wait behind the running one, in this order: a
    /// hint. Comes when one of them is not resident, and again when the list changes.
    Prepare {
        /// The worker.
        worker: WorkerId,
        /// The variants.
        soon: Soon,
    },
    /// A window and its plan. Comes while decisions are [watched](Event::Watched) or the
    /// scheduler's configuration asks for them (`tells_decisions`).
    Decided(Arc<Decision>),
    /// A message for the operator.
    Notice(Notice),
}

/// One batch for one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its id, for [`Event::Finished`].
    pub batch: BatchId,
    /// The worker.
    pub worker: WorkerId,
    /// The variant.
    pub variant: VariantId,
    /// First stage to run. 0 reads the requests' inputs; later stages read parked activations.
    pub from_stage: u32,
    /// One past the last stage to run.
    pub to_stage: u32,
    /// The exit whose head answers; none parks the activations.
    pub exit: Option<ExitId>,
    /// The requests, in the batch's order.
    pub requests: Members,
    /// Their cost together.
    pub cost: Cost,
    /// The variants of the batches behind it, to be evicted last.
    pub soon: Soon,
}

/// The end of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The request.
    pub request: RequestId,
    /// Its app.
    pub app: AppId,
    /// How it ended.
    pub outcome: Outcome,
    /// From arrival to now.
    pub latency: Micros,
    /// The policy and window that decided, if a decision was made.
    pub decided: Option<Decided>,
    /// The batch it ran in last, if it ran.
    pub ran: Option<Ran>,
    /// Neighbour counts, if they were ready: the input of a short-circuit's answer.
    pub evidence: Option<Evidence>,
}

/// The batch a request ran in last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The batch.
    pub batch: BatchId,
    /// Requests in it.
    pub size: u32,
    /// When it started.
    pub since: Time,
}

/// A message for the operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A policy failed a window; another policy served it.
    PolicyFaulted(Faulted),
    /// A policy took over.
    PolicySwitched {
        /// Label of the one before.
        from: Arc<str>,
        /// Label of the one now active.
        to: Arc<str>,
        /// Why the state of the one before could not be handed over.
        state_lost: Option<PolicyFault>,
    },
    /// The native fallback took over.
    PolicyRemoved {
        /// Label of the one before.
        from: Arc<str>,
    },
    /// A batch has run far longer than the profile says. Its worker counts as lost until
    /// [`Event::WorkerUp`], or until the batch ends after all.
    WorkerOverdue {
        /// The worker.
        worker: WorkerId,
        /// The batch.
        batch: BatchId,
        /// Its expected time.
        expected: Micros,
        /// Its time so far.
        ran_for: Micros,
    },
    /// An overdue batch has ended: its worker serves again.
    WorkerRecovered {
        /// The worker.
        worker: WorkerId,
        /// The batch.
        batch: BatchId,
        /// Its time.
        ran_for: Micros,
    },
}
