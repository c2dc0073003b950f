//! The plan of a window, built so that a plan that the host would refuse is hard to write: ids are
//! typed, stages come from the catalog, batches are cut to size, full queues take no more batches.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::reason::Reason;
use crate::window::Window;

/// Collects the decisions of one window. A request that is not mentioned stays pending.
pub struct PlanBuilder<'a> {
    window: Window<'a>,
    plan: raw::Plan,
    /// Worker of each revoked batch: it has room for one more.
    revoked: Vec<WorkerId>,
    /// Reasons of rejects and answers, by position there; they follow those of the dispatches.
    refused: Vec<(u32, Reason)>,
    answered: Vec<(u32, Reason)>,
}

/// A batch being described; [`requests`](Self::requests) adds it to the plan.
#[must_use = "the plan gets no batch before `requests`"]
pub struct BatchBuilder<'p, 'a> {
    builder: &'p mut PlanBuilder<'a>,
    worker: WorkerId,
    variant: VariantId,
    from_stage: u32,
    to_stage: u32,
    exit: Option<ExitId>,
    place: u32,
    reason: Option<Reason>,
}

/// One lane of a route: a worker, a variant and an exit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    /// The worker it leads to.
    pub worker: WorkerId,
    /// The variant that runs there.
    pub variant: VariantId,
    /// The exit that answers.
    pub exit: ExitId,
    /// Share of the arrivals, relative to the other lanes.
    pub weight: f64,
    /// Smallest batch that starts, at least 1.
    pub min_batch: u32,
    /// Largest batch that starts.
    pub max_batch: u32,
    /// Requests that may wait; one more is rejected.
    pub capacity: u32,
}

// === impl PlanBuilder ===

impl<'a> PlanBuilder<'a> {
    /// An empty plan for a window.
    pub fn new(window: Window<'a>) -> Self {
        Self {
            window,
            plan: empty(),
            revoked: Vec::new(),
            refused: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Batches that a worker can still take: the free positions of its queue, and one that starts
    /// at once if the worker runs none.
    pub fn room(&self, worker: WorkerId) -> u32 {
        let state = self.window.worker(worker);
        if !state.is_up() {
            return 0;
        }
        let starts_at_once = u32::from(state.running_variant().is_none());
        let revoked = self.revoked.iter().filter(|&&w| w == worker).count();
        let limit = self.window.catalog().worker(worker).queue_max;
        limit
            .saturating_add(starts_at_once + revoked as u32)
            .saturating_sub(state.queued() + self.batches_on(worker))
    }

    /// Batches that this plan has for a worker so far.
    pub fn batches_on(&self, worker: WorkerId) -> u32 {
        self.plan
            .dispatches
            .iter()
            .filter(|d| d.worker == worker.0)
            .count() as u32
    }

    /// Describes a batch for a worker. By default it runs all stages, answers at the last exit and
    /// goes to the end of the queue.
    pub fn run(&mut self, worker: WorkerId, variant: VariantId) -> BatchBuilder<'_, 'a> {
        let found = self.window.catalog().variant(variant);
        BatchBuilder {
            worker,
            variant,
            from_stage: 0,
            to_stage: found.stages,
            exit: Some(found.last_exit()),
            place: u32::MAX,
            reason: None,
            builder: self,
        }
    }

    /// Runs parked requests of a worker to their variant's last exit: the oldest one and those that
    /// can share its batch. For policies that park no requests themselves, so that a request parked
    /// by an earlier policy is never left behind. Returns the number of requests.
    pub fn resume_parked(&mut self, worker: WorkerId) -> usize {
        let parked = self.window.parked_on(worker);
        let Some(&(first, _)) = parked.iter().min_by_key(|(_, request)| request.index()) else {
            return 0;
        };
        let together = parked.iter().filter(|(progress, _)| *progress == first);
        self.run(worker, first.variant)
            .resume(first.stages_run)
            .requests(together.map(|(_, request)| *request))
    }

    /// Answers a request from its evidence (short-circuit). The host refuses the plan when
    /// the evidence is not ready or the app has no SneakPeek model.
    pub fn answer(&mut self, request: impl Into<RequestId>) {
        self.plan.answers.push(request.into().0);
    }

    /// Answers a request from its evidence, and says why.
    pub fn answer_because(&mut self, request: impl Into<RequestId>, reason: impl Into<Reason>) {
        self.answered
            .push((self.plan.answers.len() as u32, reason.into()));
        self.answer(request);
    }

    /// Refuses a request, and says why.
    pub fn reject_because(&mut self, request: impl Into<RequestId>, reason: impl Into<Reason>) {
        self.refused
            .push((self.plan.rejects.len() as u32, reason.into()));
        self.reject(request);
    }

    /// Refuses a request.
    pub fn reject(&mut self, request: impl Into<RequestId>) {
        self.plan.rejects.push(request.into().0);
    }

    /// Takes a queued, not started batch back. Its requests are pending again and may be
    /// dispatched by this same plan.
    pub fn revoke(&mut self, worker: WorkerId, batch: BatchId) {
        self.plan.revokes.push(batch.0);
        self.revoked.push(worker);
    }

    /// Sends the arrivals of an app to these lanes from now on, without a window; without lanes
    /// they are pending again. Weights are scaled to sum to 1, batches cut to the variant's largest.
    pub fn route(&mut self, app: AppId, lanes: &[Lane]) {
        let sum: f64 = lanes.iter().map(|lane| lane.weight).sum();
        let lanes = lanes.iter().map(|lane| {
            let limit = self.window.catalog().variant(lane.variant).max_batch;
            raw::Lane {
                worker: lane.worker.0,
                variant: lane.variant.0,
                exit: lane.exit.0,
                weight: lane.weight / sum,
                min_batch: lane.min_batch.clamp(1, limit),
                max_batch: lane.max_batch.clamp(lane.min_batch.clamp(1, limit), limit),
                capacity: lane.capacity.max(lane.min_batch),
            }
        });
        self.plan.routes.push(raw::Route {
            app: app.0,
            lanes: lanes.collect(),
        });
    }

    /// Asks for a window at a time on the host's clock; the earliest of several calls counts.
    pub fn wake_at(&mut self, time_us: u64) {
        let earlier = self.plan.wake.map_or(time_us, |wake| wake.min(time_us));
        self.plan.wake = Some(earlier);
    }

    /// The plan decides nothing yet.
    pub fn is_empty(&self) -> bool {
        self.plan == empty()
    }

    /// The plan in the contract's type.
    pub fn finish(self) -> raw::Plan {
        let mut plan = self.plan;
        // In the contract, positions go on from list to list.
        let rejects = plan.dispatches.len() as u32;
        let answers = rejects + plan.rejects.len() as u32;
        let refused = self.refused.into_iter().map(|r| (rejects, r));
        let answered = self.answered.into_iter().map(|r| (answers, r));
        let reasons = refused.chain(answered);
        plan.reasons
            .extend(reasons.map(|(from, (at, reason))| raw::Reason {
                dispatch: from + at,
                text: reason.into_text(),
            }));
        plan
    }
}

// === impl BatchBuilder ===

impl BatchBuilder<'_, '_> {
    /// Answers at this exit and stops there. An exit that the variant does not have takes
    /// no requests.
    pub fn exit(mut self, exit: ExitId) -> Self {
        let variant = self.builder.window.catalog().variant(self.variant);
        let found = variant.exits.get(exit.index());
        self.to_stage = found.map_or(0, |found| found.after_stage);
        self.exit = Some(exit);
        self
    }

    /// Stops after this number of stages, without an answer: the requests are parked on the worker
    /// and pending again.
    pub fn park_after(mut self, stages: u32) -> Self {
        self.to_stage = stages;
        self.exit = None;
        self
    }

    /// Goes on with requests that have run this number of stages on this worker.
    pub fn resume(mut self, stages_run: u32) -> Self {
        self.from_stage = stages_run;
        self
    }

    /// Position in the worker's queue, 0 = head; past the end = the end.
    pub fn place(mut self, place: u32) -> Self {
        self.place = place;
        self
    }

    /// Why: a code and numbers, or words, for recordings, `replay` and the admin API.
    pub fn because(mut self, reason: impl Into<Reason>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Dispatches requests in batches up to the variant's largest. Stops when the worker has no room
    /// for another batch; the remaining requests stay pending. Returns the number of requests
    /// taken, always the first ones.
    pub fn requests<R: Into<RequestId>>(self, requests: impl IntoIterator<Item = R>) -> usize {
        let size_max = self
            .builder
            .window
            .catalog()
            .variant(self.variant)
            .max_batch as usize;
        if !self.is_range() {
            return 0;
        }
        let mut requests = requests.into_iter().map(|request| request.into().0);
        let (mut taken, mut place) = (0, self.place);
        while self.builder.room(self.worker) > 0 {
            let plan = &mut self.builder.plan;
            let before = plan.members.len();
            plan.members.extend(requests.by_ref().take(size_max));
            let size = plan.members.len() - before;
            if size == 0 {
                break;
            }
            if let Some(reason) = &self.reason {
                plan.reasons.push(raw::Reason {
                    dispatch: plan.dispatches.len() as u32,
                    text: reason.as_str().to_owned(),
                });
            }
            plan.dispatches.push(raw::Dispatch {
                worker: self.worker.0,
                variant: self.variant.0,
                from_stage: self.from_stage,
                to_stage: self.to_stage,
                exit: self.exit.map(|exit| exit.0),
                place,
                size: size as u32,
            });
            taken += size;
            place = place.saturating_add(1);
        }
        taken
    }

    /// The host accepts the stages: the range is not empty and lies within the variant, and the
    /// last stage is answered.
    fn is_range(&self) -> bool {
        let stages = self.builder.window.catalog().variant(self.variant).stages;
        let last_is_answered = self.to_stage < stages || self.exit.is_some();
        self.from_stage < self.to_stage && self.to_stage <= stages && last_is_answered
    }
}

fn empty() -> raw::Plan {
    raw::Plan {
        dispatches: Vec::new(),
        members: Vec::new(),
        revokes: Vec::new(),
        rejects: Vec::new(),
        answers: Vec::new(),
        routes: Vec::new(),
        wake: None,
        reasons: Vec::new(),
    }
}
