//! SneakPeek evidence off the critical path: a thread per pool counts neighbours while the
//! request is already pending.

use std::io;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use metrics::Counter;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::request::Evidence;
use switchyard_models::SneakPeek;

use crate::driver::{Message, Sender as DriverSender};

/// Requests that may wait for their evidence; one more goes without.
const QUEUE_MAX: usize = 1_024;

/// How the evidence of an app's requests is counted.
pub struct EvidenceModel {
    /// The embedded training points.
    pub model: SneakPeek,
    /// What is counted.
    pub counted: Counted,
}

/// What is counted as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The labels of this many nearest training points.
    Neighbours(usize),
    /// The vote of the model's classifier.
    Vote,
}

/// The evidence models of a pool, by app; none for an app without.
pub type EvidenceModels = Vec<Option<EvidenceModel>>;

/// The way to the thread, which ends when this is dropped.
pub(crate) struct EvidenceQueue {
    jobs: Sender<Job>,
    skipped: Counter,
}

struct Job {
    request: RequestId,
    app: AppId,
    input: Vec<f32>,
}

// === impl EvidenceQueue ===

impl EvidenceQueue {
    /// Starts the thread, which sends its counts to `driver`.
    pub(crate) fn spawn(
        name: &str,
        models: EvidenceModels,
        driver: DriverSender<Message>,
        skipped: Counter,
    ) -> io::Result<Self> {
        let (jobs, inbox) = bounded(QUEUE_MAX);
        thread::Builder::new()
            .name(format!("{name}-evidence"))
            .spawn(move || count(&models, &inbox, &driver))?;
        Ok(Self { jobs, skipped })
    }

    /// Asks for the evidence of a request; skipped and counted when too many wait.
    pub(crate) fn offer(&self, request: RequestId, app: AppId, input: Vec<f32>) {
        let job = Job {
            request,
            app,
            input,
        };
        if self.jobs.try_send(job).is_err() {
            self.skipped.increment(1);
        }
    }
}

fn count(models: &EvidenceModels, inbox: &Receiver<Job>, driver: &DriverSender<Message>) {
    let mut counts = Vec::new();
    for job in inbox {
        let Some(Some(app)) = models.get(job.app.index()) else {
            continue;
        };
        match app.counted {
            Counted::Neighbours(k) => app.model.counts(&job.input, k, &mut counts),
            Counted::Vote => app.model.vote(&job.input, &mut counts),
        }
        let message = Message::Evidence {
            request: job.request,
            counts: Evidence::from_slice(&counts),
        };
        if driver.send(message).is_err() {
            return; // The driver has ended.
        }
    }
}
