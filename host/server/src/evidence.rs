//! SneakPeek evidence off the critical path: one thread per pool counts neighbours while the
//! request is already pending.

use std::io;

use crate::telemetry::Counter;
use crossbeam_channel::{Receiver, Sender, bounded};
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::request::Evidence;
use switchyard_models::SneakPeek;
use switchyard_threads::ServiceThread;

/// Requests that may wait for their evidence; a further one goes without.
const QUEUE_MAX: usize = 1_024;

/// The evidence of an app's requests.
pub struct EvidenceModel {
    /// The embedded training points.
    pub model: SneakPeek,
    /// The kind of count.
    pub counted: Counted,
}

/// The kind of evidence that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The labels of this many nearest training points.
    Neighbours(usize),
    /// The vote of the model's classifier.
    Vote,
}

/// The evidence models of a pool, by app; `None` for an app without one.
pub type EvidenceModels = Vec<Option<EvidenceModel>>;

/// The way to the thread, which ends when this is dropped.
pub(crate) struct EvidenceQueue {
    // Above the thread, so that the channel closes before the join.
    jobs: Sender<EvidenceJob>,
    skipped: Counter,
    _thread: ServiceThread,
}

struct EvidenceJob {
    request: RequestId,
    app: AppId,
    input: Vec<f32>,
}

// === impl EvidenceQueue ===

impl EvidenceQueue {
    /// Starts the thread, which calls `report` with its counts until that returns false.
    pub(crate) fn spawn(
        pool: &str,
        models: EvidenceModels,
        skipped: Counter,
        report: impl Fn(RequestId, Evidence) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, inbox) = bounded(QUEUE_MAX);
        let thread = ServiceThread::spawn(format!("{pool}-evidence"), move || {
            count(&models, &inbox, &report);
        })?;
        Ok(Self {
            jobs,
            skipped,
            _thread: thread,
        })
    }

    /// Asks for the evidence of a request; skipped and counted if the queue is full.
    pub(crate) fn offer(&self, request: RequestId, app: AppId, input: Vec<f32>) {
        let job = EvidenceJob {
            request,
            app,
            input,
        };
        if self.jobs.try_send(job).is_err() {
            self.skipped.increment(1);
        }
    }
}

fn count(
    models: &EvidenceModels,
    inbox: &Receiver<EvidenceJob>,
    report: &dyn Fn(RequestId, Evidence) -> bool,
) {
    let mut counts = Vec::new();
    for job in inbox {
        let Some(Some(app)) = models.get(job.app.index()) else {
            continue;
        };
        match app.counted {
            Counted::Neighbours(k) => app.model.counts(&job.input, k, &mut counts),
            Counted::Vote => app.model.vote(&job.input, &mut counts),
        }
        if !report(job.request, Evidence::from_slice(&counts)) {
            return; // The driver has ended.
        }
    }
}
