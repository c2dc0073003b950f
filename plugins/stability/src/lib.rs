//! EdgeServing's scheduler: of all queues the one is served whose service leaves the lowest
//! stability score, from the deepest exit that is in time; and what its paper compares it with.
//!
//! In data order:
//! - `settings`: which of the schedulers, and how
//! - `exits`: how an app's requests can be answered, and the batch of a queue (eq. 5 and 6)
//! - `queue`: what waits
//! - `score`: how urgent it is (eq. 3 and 4)
//! - `select`: which queue is served (eq. 7), on several workers, some rounds ahead
//! - `baselines`, `symphony`: how others choose

mod baselines;
mod exits;
mod queue;
mod score;
mod select;
mod settings;
mod symphony;

use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, Reason, Sights, Window, WorkerId, WorkerRef,
    export_policy,
};

use exits::Ladders;
use queue::Queue;
use select::{Candidate, Rounds};
use settings::{Selection, Settings};

/// EdgeServing and its baselines.
#[derive(Debug)]
pub struct Stability {
    settings: Settings,
    ladders: Ladders,
    /// One per app, by its position in the catalog. Buffers are kept between windows.
    queues: Vec<Queue>,
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
        .wants(Sights::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        Ok(Self {
            ladders: Ladders::of_catalog(catalog, &settings)?,
            queues: catalog.apps().map(Queue::new).collect(),
            settings,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let idle = window.idle_workers();
        // While every worker is busy, waiting keeps every choice open.
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
            // What is half-run goes on first: no other worker can end it.
            if plan.resume_parked(worker) > 0 {
                rounds.occupy(worker, f64::INFINITY);
            } else if let Some(candidate) = rounds.choose(worker) {
                dispatch(window, &rounds, worker, &candidate, plan);
                rounds.serve(worker, &candidate);
            } else if settings.policy.selection() == Selection::Deferred
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
        Selection::LowestScore => "lowest-score",
        Selection::LongestQueue => "longest-queue",
        Selection::EarliestDeadline => "least-slack",
        Selection::Deferred => "must-start",
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
