//! A window in the contract's types: columns are lent as they are, rows are copied. Fields that the
//! policy has not asked for stay empty; the window can have them because a shadow asked for them.

use switchyard_core::policy::WindowFields;
use switchyard_core::window::{Causes, Completion, End, Placed, RequestProgress, Resident, Window};

use super::bindings::wit;
use crate::worker_times::WorkerTimes;

/// The parts of a window that are rows in the contract, in the contract's types.
#[derive(Default)]
pub(super) struct WindowRows {
    progress: Vec<wit::Progress>,
    times: WorkerTimes,
    residents: Vec<wit::Resident>,
    completions: Vec<wit::Completion>,
}

impl WindowRows {
    pub(super) fn fill(&mut self, window: &Window, wants: WindowFields) {
        self.progress.clear();
        self.progress
            .extend(window.requests.progress.iter().map(progress));
        self.times.fill(window);
        let residents = shown(wants.residents, &window.residents);
        self.residents.clear();
        self.residents.extend(residents.iter().map(resident));
        let completions = shown(wants.completions, &window.completions);
        self.completions.clear();
        self.completions.extend(completions.iter().map(completion));
    }

    pub(super) fn lend<'a>(&'a self, window: &'a Window, wants: WindowFields) -> wit::Window<'a> {
        let Window {
            requests, workers, ..
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
                evidence_index: shown(wants.evidence, &requests.evidence_index),
                evidence_counts: shown(wants.evidence, &requests.evidence_counts),
            },
            workers: wit::Workers {
                busy_until: self.times.busy_until(window),
                free_at: self.times.free_at(window),
                running_since: &workers.running_since,
                running_variant: &workers.running_variant,
                queued: &workers.queued,
                parked: &workers.parked,
                free_memory: &workers.free_memory,
                up: &workers.up,
            },
            placed: placed(&window.placed, wants.placed),
            residents: &self.residents,
            arrival_rate: &window.arrival_rate,
            completions: &self.completions,
        }
    }
}

fn placed(from: &Placed, wanted: bool) -> wit::Placed<'_> {
    wit::Placed {
        id: shown(wanted, &from.id),
        app: shown(wanted, &from.app),
        arrival: shown(wanted, &from.arrival),
        deadline: shown(wanted, &from.deadline),
        worker: shown(wanted, &from.worker),
        variant: shown(wanted, &from.variant),
        batch: shown(wanted, &from.batch),
        state: shown(wanted, &from.state),
    }
}

/// A column if the policy has asked for it, otherwise an empty one.
fn shown<T>(wanted: bool, column: &[T]) -> &[T] {
    if wanted { column } else { &[] }
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
        (from.changed || from.workers, wit::Causes::CHANGED),
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
