//! A window in the contract's types: columns are lent as they are, the rest is copied into kept
//! buffers. Parts that the policy has not asked for are absent; the window can have them because
//! a shadow asked for them.

use switchyard_core::policy::WindowFields;
use switchyard_core::window::{
    Causes, Completion, End, Placed, RequestProgress, Requests, Resident, Window,
};

use super::bindings::wit;
use super::changed::{ChangedWorkers, WorkerRows, up_of};
use crate::contract::SentParts;
use crate::worker_times::WorkerTimes;

/// A variant or an exit that did not answer.
const NONE: u32 = u32::MAX;

/// The parts of a window that have another shape in the contract.
#[derive(Default)]
pub(super) struct WindowRows {
    progress: Vec<wit::Progress>,
    /// Empty while every request costs 1.
    cost: Vec<f32>,
    times: WorkerTimes,
    /// By worker: 0 when away, otherwise its incarnation.
    up: Vec<u32>,
    changed: ChangedWorkers,
    /// The window shows the changed workers instead of all.
    shows_changed: bool,
    residents: Vec<wit::Resident>,
    slowdown: Vec<f64>,
    completions: CompletionColumns,
}

/// Requests that ended, as columns.
#[derive(Default)]
struct CompletionColumns {
    id: Vec<u64>,
    app: Vec<u32>,
    outcome: Vec<wit::Outcome>,
    variant: Vec<u32>,
    exit: Vec<u32>,
    latency: Vec<u64>,
}

impl WindowRows {
    /// The next window shows every worker.
    pub(super) fn forget(&mut self) {
        self.changed.forget();
    }

    /// The instance has answered the last window with a plan.
    pub(super) fn answered(&mut self) {
        self.changed.answered();
    }

    pub(super) fn fill(&mut self, window: &Window, sent: SentParts) {
        let wants = sent.fields;
        refill(&mut self.progress, &window.requests.progress, progress);
        self.fill_costs(&window.requests);
        self.fill_workers(window, sent);
        refill(&mut self.slowdown, &window.slowdown, |slowdown| {
            slowdown.ratio()
        });
        let completions = shown(wants.completions, &window.completions);
        self.completions.fill(completions);
    }

    fn fill_costs(&mut self, requests: &Requests) {
        self.cost.clear();
        if requests.costs.is_empty() {
            return;
        }
        let costs = requests.costs_of_all();
        self.cost.extend(costs.map(|cost| cost.as_f64() as f32));
    }

    fn fill_workers(&mut self, window: &Window, sent: SentParts) {
        let residents = shown(sent.fields.residents, &window.residents);
        self.shows_changed = sent.changed_workers && self.changed.fill(window, residents);
        self.residents.clear();
        self.up.clear();
        if self.shows_changed {
            let of_changed = self.changed.residents_of_rows(residents);
            self.residents.extend(of_changed.map(resident));
        } else {
            self.times.fill(window);
            self.residents.extend(residents.iter().map(resident));
            let lives = window.workers.up.iter().zip(&window.workers.incarnation);
            self.up.extend(lives.map(|(&up, &life)| up_of(up, life)));
        }
    }

    fn workers<'a>(&'a self, window: &'a Window) -> wit::Workers<'a> {
        let from = &window.workers;
        wit::Workers {
            index: None,
            busy_until: self.times.busy_until(window),
            free_at: self.times.free_at(window),
            running_since: &from.running_since,
            running_variant: &from.running_variant,
            queued: &from.queued,
            parked: &from.parked,
            free_memory: &from.free_memory,
            up: &self.up,
        }
    }

    pub(super) fn lend<'a>(&'a self, window: &'a Window, wants: WindowFields) -> wit::Window<'a> {
        wit::Window {
            id: window.id,
            now: window.now.0,
            because: causes(window.because),
            requests: requests(&window.requests),
            progress: some(&self.progress),
            cost: some(&self.cost),
            evidence: evidence(&window.requests, wants.evidence),
            workers: match self.shows_changed {
                true => changed_workers(self.changed.rows()),
                false => self.workers(window),
            },
            placed: placed(&window.placed, wants.placed),
            residents: some(&self.residents),
            arrival_rate: &window.arrival_rate,
            slowdown: some(&self.slowdown),
            completions: self.completions.lend(),
        }
    }
}

fn requests(from: &Requests) -> Option<wit::Requests<'_>> {
    (!from.id.is_empty()).then_some(wit::Requests {
        id: &from.id,
        app: &from.app,
        arrival: &from.arrival,
        deadline: &from.deadline,
        priority: &from.priority,
        min_quality: &from.min_accuracy,
    })
}

fn changed_workers(from: &WorkerRows) -> wit::Workers<'_> {
    wit::Workers {
        index: Some(&from.index),
        busy_until: &from.busy_until,
        free_at: &from.free_at,
        running_since: &from.running_since,
        running_variant: &from.running_variant,
        queued: &from.queued,
        parked: &from.parked,
        free_memory: &from.free_memory,
        up: &from.up,
    }
}

fn evidence(from: &Requests, wanted: bool) -> Option<wit::Evidence<'_>> {
    let is_shown = wanted && !from.evidence_index.is_empty();
    is_shown.then_some(wit::Evidence {
        index: &from.evidence_index,
        counts: &from.evidence_counts,
    })
}

fn placed(from: &Placed, wanted: bool) -> Option<wit::Placed<'_>> {
    let is_shown = wanted && !from.id.is_empty();
    is_shown.then_some(wit::Placed {
        id: &from.id,
        app: &from.app,
        arrival: &from.arrival,
        deadline: &from.deadline,
        worker: &from.worker,
        variant: &from.variant,
        batch: &from.batch,
        state: &from.state,
    })
}

/// A list with content, for a field that is absent without.
fn some<T>(list: &[T]) -> Option<&[T]> {
    Some(list).filter(|list| !list.is_empty())
}

/// A column if the policy has asked for it, otherwise an empty one.
fn shown<T>(wanted: bool, column: &[T]) -> &[T] {
    if wanted { column } else { &[] }
}

fn refill<A, B>(to: &mut Vec<B>, from: &[A], convert: impl Fn(&A) -> B) {
    to.clear();
    to.extend(from.iter().map(convert));
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
        (from.workers, wit::Causes::WORKERS),
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

impl CompletionColumns {
    fn fill(&mut self, from: &[Completion]) {
        let Self {
            id,
            app,
            outcome,
            variant,
            exit,
            latency,
        } = self;
        id.clear();
        app.clear();
        outcome.clear();
        variant.clear();
        exit.clear();
        latency.clear();
        // Column by column, which compilers turn into vector instructions.
        id.extend(from.iter().map(|ended| ended.id.0));
        app.extend(from.iter().map(|ended| ended.app.0));
        outcome.extend(from.iter().map(|ended| outcome_of(ended.end)));
        let variants = from.iter().map(|ended| ended.variant);
        variant.extend(variants.map(|answered| answered.map_or(NONE, |variant| variant.0)));
        let exits = from.iter().map(|ended| ended.exit);
        exit.extend(exits.map(|answered| answered.map_or(NONE, |exit| exit.0)));
        latency.extend(from.iter().map(|ended| ended.latency.0));
    }

    fn lend(&self) -> Option<wit::Completions<'_>> {
        (!self.id.is_empty()).then_some(wit::Completions {
            id: &self.id,
            app: &self.app,
            outcome: &self.outcome,
            variant: &self.variant,
            exit: &self.exit,
            latency: &self.latency,
        })
    }
}

fn outcome_of(end: End) -> wit::Outcome {
    match end {
        End::InTime => wit::Outcome::InTime,
        End::Late => wit::Outcome::Late,
        End::Rejected => wit::Outcome::Rejected,
        End::Dropped => wit::Outcome::Dropped,
        End::Failed => wit::Outcome::Failed,
        End::Cancelled => wit::Outcome::Cancelled,
    }
}
