//! A window on its way out: columns are lent as they are, the few rows are copied.

use switchyard_core::window::{Causes, Completion, End, RequestProgress, Resident, Window};

use super::wit;

/// The parts of a window that are rows in the contract, in its own types.
#[derive(Default)]
pub(super) struct Rows {
    progress: Vec<wit::Progress>,
    residents: Vec<wit::Resident>,
    completions: Vec<wit::Completion>,
}

impl Rows {
    pub(super) fn fill(&mut self, window: &Window) {
        self.progress.clear();
        self.progress
            .extend(window.requests.progress.iter().map(progress));
        self.residents.clear();
        self.residents.extend(window.residents.iter().map(resident));
        self.completions.clear();
        self.completions
            .extend(window.completions.iter().map(completion));
    }

    pub(super) fn lend<'a>(&'a self, window: &'a Window) -> wit::Window<'a> {
        let Window {
            requests,
            workers,
            placed,
            ..
        } = window;
        wit::Window {
            id: window.id,
            now: window.now.0,
            because: causes(window.because),
            requests: wit::Requests {
                id: &requests.id,
                app: &requests.app,
                arrival: &requests.arrival,
                deadline: &requests.deadline,
                priority: &requests.priority,
                min_accuracy: &requests.min_accuracy,
                progress: &self.progress,
                evidence_index: &requests.evidence_index,
                evidence_counts: &requests.evidence_counts,
            },
            workers: wit::Workers {
                busy_until: &workers.busy_until,
                free_at: &workers.free_at,
                running_since: &workers.running_since,
                running_variant: &workers.running_variant,
                queued: &workers.queued,
                parked: &workers.parked,
                free_memory: &workers.free_memory,
                up: &workers.up,
            },
            placed: wit::Placed {
                id: &placed.id,
                app: &placed.app,
                arrival: &placed.arrival,
                deadline: &placed.deadline,
                worker: &placed.worker,
                variant: &placed.variant,
                batch: &placed.batch,
                state: &placed.state,
            },
            residents: &self.residents,
            arrival_rate: &window.arrival_rate,
            completions: &self.completions,
        }
    }
}

fn causes(from: Causes) -> wit::Causes {
    let mut causes = wit::Causes::empty();
    for (holds, cause) in [
        (from.periodic, wit::Causes::PERIODIC),
        (from.arrival, wit::Causes::ARRIVAL),
        (from.worker_idle, wit::Causes::WORKER_IDLE),
        (from.completion, wit::Causes::COMPLETION),
        (from.evidence, wit::Causes::EVIDENCE),
        (from.wake, wit::Causes::WAKE),
        (from.changed, wit::Causes::CHANGED),
    ] {
        if holds {
            causes |= cause;
        }
    }
    causes
}

fn progress(from: &RequestProgress) -> wit::Progress {
    wit::Progress {
        index: from.index,
        worker: from.worker.0,
        variant: from.variant.0,
        stages_run: from.stages_run,
    }
}

fn resident(from: &Resident) -> wit::Resident {
    wit::Resident {
        worker: from.worker.0,
        variant: from.variant.0,
    }
}

fn completion(from: &Completion) -> wit::Completion {
    wit::Completion {
        id: from.id.0,
        app: from.app.0,
        outcome: match from.end {
            End::InTime => wit::Outcome::InTime,
            End::Late => wit::Outcome::Late,
            End::Rejected => wit::Outcome::Rejected,
            End::Dropped => wit::Outcome::Dropped,
            End::Failed => wit::Outcome::Failed,
            End::Cancelled => wit::Outcome::Cancelled,
        },
        variant: from.variant.map(|variant| variant.0),
        exit: from.exit.map(|exit| exit.0),
        latency: from.latency.0,
    }
}
