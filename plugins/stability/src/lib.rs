//! EdgeServing's scheduler serves the queue whose service leaves the lowest stability score, from
//! the deepest exit in time; and the paper's baselines.
//!
//! In data order:
//! - `settings`: the settings, with the schedulers (sections V, VI-A, VI-D, VI-H)
//! - `exits`: the exits of an app, profiled (section IV), and the batch of a queue (eq. 5 and 6)
//! - `queue`: a queue per app (section III)
//! - `score`: urgency and stability score (eq. 3 and 4)
//! - `candidate`, `select`: the queue to serve (section V-C, eq. 7, Algorithm 1), on several
//!   workers, several rounds ahead
//! - `baselines` (sections VI-A and VI-H), `symphony` (section VI-A)

#![forbid(unsafe_code)]

mod baselines;
mod candidate;
mod exits;
mod queue;
mod score;
mod select;
mod settings;
mod symphony;

use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, Reason, Window, WindowFields, WorkerId,
    WorkerRef, export_policy,
};

use candidate::Candidate;
use exits::ExitLadders;
use queue::AppQueue;
use select::Rounds;
use settings::{QueueSelection, StabilitySettings};

/// EdgeServing and its baselines.
#[derive(Debug)]
pub struct Stability {
    settings: StabilitySettings,
    ladders: ExitLadders,
    /// One per app, in the catalog's order. Buffers are kept between windows.
    queues: Vec<AppQueue>,
}

impl Policy for Stability {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        Description::new(
            "stability",
            version,
            "lowest predicted stability score, deepest exit in time",
        )
        .on(Events::ARRIVAL | Events::WORKER_IDLE)
        .wants(WindowFields::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = StabilitySettings::try_new(json)?;
        let ladders = ExitLadders::of_catalog(catalog, &settings)?;
        catalog.log_quality();
        Ok(Self {
            ladders,
            queues: catalog.apps().map(AppQueue::new).collect(),
            settings,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let idle = window.idle_workers();
        // While all workers are busy, waiting keeps every choice open.
        if idle.is_empty() || window.is_empty() {
            return Ok(());
        }
        let Self {
            settings,
            ladders,
            queues,
        } = self;
        let mut rounds = Rounds::new(window, settings, ladders, queues);
        for worker in idle.iter().map(WorkerRef::id) {
            // Parked requests first: only this worker has their activations.
            if plan.resume_parked(worker) > 0 {
                rounds.occupy(worker, f64::INFINITY);
            } else if let Some(candidate) = rounds.choose(worker) {
                dispatch(window, &rounds, worker, &candidate, plan);
                rounds.serve(worker, &candidate);
            } else if settings.policy.selection() == QueueSelection::Deferred
                && let Some(start_us) = rounds.next_start_us(worker)
            {
                plan.wake_at(window.now_us().saturating_add(start_us.max(1.0) as u64));
            }
        }
        Ok(())
    }
}

fn dispatch(
    window: &Window,
    rounds: &Rounds<'_>,
    worker: WorkerId,
    candidate: &Candidate,
    plan: &mut PlanBuilder,
) {
    let (batch, waiting) = (&candidate.batch, rounds.queues[candidate.queue].waiting());
    let why = match rounds.settings.policy.selection() {
        QueueSelection::LowestScore => "lowest-score",
        QueueSelection::LongestQueue => "longest-queue",
        QueueSelection::EarliestDeadline => "least-slack",
        QueueSelection::Deferred => "must-start",
    };
    let why = Reason::new(why)
        .with("queue", waiting.len())
        .with("waited_us", candidate.longest_us as i64);
    let served = waiting.iter().take(batch.size);
    plan.run(worker, batch.variant)
        .exit(batch.exit)
        .because(why)
        .requests(served.map(|task| window.request(task.at as usize)));
}

export_policy!(Stability);

#[cfg(test)]
mod tests;
