//! Random sequences of events, for properties.

use proptest::prelude::*;
use switchyard_core::cost::Cost;
use switchyard_core::event::{BatchEnd, Event};
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::policy::Policy;
use switchyard_core::time::Micros;

use super::driver::Driver;
use super::request;

/// One thing that happens to a scheduler with two workers.
#[derive(Clone, Debug)]
pub enum SchedulerStep {
    Arrive {
        app: u32,
        slack_us: u64,
        pinned: Option<u32>,
        rows: f64,
    },
    Evidence(u64),
    Cancel(u64),
    Wait(u64),
    Fail(u32, bool),
    /// A worker vanishes with its batch.
    Lose(u32),
    /// A worker's last batch ends before the others.
    Overtake(u32),
    /// A worker's batch does not end.
    Hang(u32),
    /// The driver sleeps until every running batch is overdue.
    Sleep,
    /// It ends after all, long after its worker counts as lost.
    EndLate(u32, bool),
    Down(u32),
    /// A worker takes no more batches.
    Leave(u32),
    Up(u32),
    Swap(u64),
    /// A policy of the same label takes the place of the active one.
    Recompile(u64),
    Remove,
    Recatalog,
}

pub fn scheduler_step() -> impl Strategy<Value = SchedulerStep> {
    use SchedulerStep as Step;
    prop_oneof![
        12 => (0..2u32, slack_us(), prop::option::weighted(0.2, 0..3u32), rows())
            .prop_map(|(app, slack_us, pinned, rows)| Step::Arrive { app, slack_us, pinned, rows }),
        4 => (0..80u64).prop_map(Step::Evidence),
        2 => (0..80u64).prop_map(Step::Cancel),
        6 => (0..6_000u64).prop_map(Step::Wait),
        1 => (0..2u32, any::<bool>()).prop_map(|(w, repeatable)| Step::Fail(w, repeatable)),
        1 => (0..2u32).prop_map(Step::Lose),
        1 => (0..2u32).prop_map(Step::Overtake),
        1 => (0..2u32).prop_map(Step::Hang),
        2 => (0..2u32, any::<bool>()).prop_map(|(w, fails)| Step::EndLate(w, fails)),
        1 => Just(Step::Sleep),
        1 => (0..2u32).prop_map(Step::Down),
        1 => (0..2u32).prop_map(Step::Leave),
        1 => (0..2u32).prop_map(Step::Up),
        1 => (0..1_000u64).prop_map(Step::Swap),
        1 => (0..1_000u64).prop_map(Step::Recompile),
        1 => Just(Step::Remove),
        1 => Just(Step::Recatalog),
    ]
}

/// Mostly up to 30 ms; some requests are never due.
fn slack_us() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..30_000u64, 1 => Just(1 << 63)]
}

/// Mostly as costly as the requests of the profile.
fn rows() -> impl Strategy<Value = f64> {
    prop_oneof![4 => Just(1.0), 1 => 0.1..4.0f64, 1 => 4.0..40.0f64]
}

impl Driver {
    /// Plays all steps; `policy` makes the policy of a [`SchedulerStep::Swap`] from its seed.
    pub fn play(&mut self, steps: &[SchedulerStep], policy: impl Fn(u64) -> Box<dyn Policy>) {
        let mut next = 0;
        for step in steps {
            match *step {
                SchedulerStep::Arrive {
                    app,
                    slack_us,
                    pinned,
                    rows,
                } => {
                    next += 1;
                    let mut arriving = request(next, app, self.now, slack_us);
                    arriving.pinned = pinned.map(VariantId);
                    arriving.cost = Cost::from_f64(rows);
                    self.arrive(arriving);
                }
                SchedulerStep::Evidence(id) => self.give(Event::Evidence {
                    request: RequestId(id),
                    counts: [3, 2].into_iter().collect(),
                }),
                SchedulerStep::Cancel(id) => self.give(Event::Cancelled(RequestId(id))),
                SchedulerStep::Wait(us) => self.advance_to(self.now + Micros(us)),
                SchedulerStep::Fail(w, repeatable) => self.finish(WorkerId(w), failed(repeatable)),
                SchedulerStep::Lose(w) => {
                    let reason = "unplugged".to_owned();
                    self.finish(WorkerId(w), BatchEnd::Lost { reason });
                }
                SchedulerStep::Sleep => {
                    self.sleep(Micros::from_millis(40_000));
                    // After it stood still, the scheduler gives them a second more.
                    self.sleep(Micros::from_millis(1_000));
                }
                SchedulerStep::Overtake(w) => self.overtake(WorkerId(w)),
                SchedulerStep::Hang(w) => self.hang(WorkerId(w)),
                SchedulerStep::EndLate(w, fails) => {
                    let end = if fails { failed(true) } else { BatchEnd::Done };
                    self.finish_late(WorkerId(w), end);
                }
                SchedulerStep::Down(w) => self.give(Event::WorkerDown {
                    worker: WorkerId(w),
                    reason: "unplugged".to_owned(),
                }),
                SchedulerStep::Leave(w) => self.give(Event::WorkerLeaving(WorkerId(w))),
                SchedulerStep::Up(w) => self.give(Event::WorkerUp(WorkerId(w))),
                SchedulerStep::Swap(seed) => self.give(Event::PolicyChanged(policy(seed))),
                SchedulerStep::Recompile(seed) => self.give(Event::PolicyRecompiled(policy(seed))),
                SchedulerStep::Remove => self.give(Event::PolicyRemoved),
                SchedulerStep::Recatalog => {
                    let catalog = self.scheduler.catalog().clone();
                    self.give(Event::CatalogChanged(catalog));
                }
            }
        }
    }
}

pub fn failed(repeatable: bool) -> BatchEnd {
    BatchEnd::Failed {
        reason: "made to".to_owned(),
        repeatable,
    }
}
