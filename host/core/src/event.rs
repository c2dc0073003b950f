//! What goes into the scheduler and what comes out.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::decision::Decision;
use crate::guard::Faulted;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::policy::{Policy, PolicyFault, Sights};
use crate::request::{Evidence, Outcome, Request};
use crate::residents::Soon;
use crate::time::{Micros, Time};
use crate::worker::{Decided, Members};

/// Something that happened. Events that name what is gone (a cancelled request, a batch of
/// a lost worker) are ignored: they may have been under way.
pub enum Event {
    /// A request was accepted. Ids must grow from request to request.
    Arrived(Request),
    /// A request's neighbours were counted.
    Evidence {
        /// The request.
        request: RequestId,
        /// One count per class of its app.
        counts: Evidence,
    },
    /// The client went away.
    Cancelled(RequestId),
    /// A worker is done with its batch.
    Finished {
        /// The worker.
        worker: WorkerId,
        /// The batch it was given.
        batch: BatchId,
        /// The reason for every request of the batch, if it failed.
        result: Result<(), String>,
    },
    /// A worker's models changed.
    Residency {
        /// The worker.
        worker: WorkerId,
        /// What it holds now.
        resident: Vec<VariantId>,
        /// Memory left, in bytes.
        free_bytes: u64,
    },
    /// A worker is gone, with what ran and what was parked there.
    WorkerDown {
        /// The worker.
        worker: WorkerId,
        /// Why, for the requests that were running.
        reason: String,
    },
    /// A worker is back, empty.
    WorkerUp(WorkerId),
    /// A policy, loaded, configured and validated, takes over.
    PolicyChanged(Box<dyn Policy>),
    /// The policy's file is gone: the native fallback takes over.
    PolicyRemoved,
    /// Apps, variants, workers or profile changed. Ids keep their meaning; lists only grow.
    CatalogChanged(Arc<Catalog>),
    /// Somebody looks at decisions: they are told, and windows show this beside what the policy
    /// wants. None: nobody does any more.
    Watched(Option<Sights>),
    /// No request is accepted any more; what is inside is served.
    Drain,
}

/// Something the driver must do.
#[derive(Debug)]
pub enum Command {
    /// Give a batch to a worker, which runs nothing else.
    Run(Run),
    /// Answer a client. Exactly one for each request that arrived.
    Reply(Reply),
    /// Forget the parked activations of a request.
    Release {
        /// Where they are.
        worker: WorkerId,
        /// Whose they are.
        request: RequestId,
    },
    /// Load ahead what the batches that wait behind the running one need, in this order: a hint.
    /// Comes when something of it is not resident, and again when the list changes.
    Prepare {
        /// The worker.
        worker: WorkerId,
        /// The variants.
        soon: Soon,
    },
    /// A window was decided: what was seen and what is done. Only where
    /// [`SchedulerConfig::tells_decisions`](crate::SchedulerConfig::tells_decisions) asks for it.
    Decided(Arc<Decision>),
    /// Something for the operator.
    Notice(Notice),
}

/// One batch for one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// To be named in [`Event::Finished`].
    pub batch: BatchId,
    /// The worker.
    pub worker: WorkerId,
    /// The variant.
    pub variant: VariantId,
    /// First stage to run; 0 takes the request's input, more its parked activations.
    pub from_stage: u32,
    /// One past the last stage to run.
    pub to_stage: u32,
    /// The exit whose head answers; none parks the activations.
    pub exit: Option<ExitId>,
    /// The requests, in the batch's order.
    pub requests: Members,
    /// What the batches behind it need: the last to be evicted for it.
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
    /// Who decided, when a decision was made.
    pub decided: Option<Decided>,
    /// The batch it ran in, when it ran.
    pub ran: Option<Ran>,
    /// Neighbour counts, when they were ready: what a short-circuit is answered from.
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

/// Something for the operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A policy failed a window, which somebody else served.
    PolicyFaulted(Faulted),
    /// A policy took over.
    PolicySwitched {
        /// Label of the one before.
        from: Arc<str>,
        /// Label of the one now active.
        to: Arc<str>,
        /// Why its state could not be handed over, if it had any.
        state_lost: Option<PolicyFault>,
    },
    /// The native fallback took over.
    PolicyRemoved {
        /// Label of the one before.
        from: Arc<str>,
    },
}
