//! Traces of a pool's requests. A pool without traced rows inside pays a comparison for each command.

use std::collections::VecDeque;
use std::sync::Arc;

use switchyard_core::Scheduler;
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::event::{Launch, Reply};
use switchyard_core::ids::{BatchId, RequestId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};

use super::row_trace::RowTrace;
use super::waiters::Waiters;
use crate::clock::Clock;
use crate::reasons;
use crate::traces::{BatchTrace, CallTrace, RequestTrace, Tracer, WindowTrace};

/// Windows whose end is remembered, and decisions that are searched for a request. A batch that waits in
/// a queue for more windows than this has no window in its trace until the request ends.
const WINDOWS_MAX: usize = 64;

/// Fills the traces of rows and hands them over.
pub(super) struct PoolTraces {
    tracer: Arc<Tracer>,
    pool: Arc<str>,
    catalog: Arc<Catalog>,
    /// Traced rows inside.
    live: usize,
    /// Windows opened at the last look.
    opened: u64,
    /// The last windows, with the times at which their plans were applied.
    closed: VecDeque<(u64, Time)>,
}

// === impl PoolTraces ===

impl PoolTraces {
    pub(super) fn new(tracer: Arc<Tracer>, pool: &str, catalog: &Arc<Catalog>) -> Self {
        Self {
            tracer,
            pool: pool.into(),
            catalog: Arc::clone(catalog),
            live: 0,
            opened: 0,
            closed: VecDeque::new(),
        }
    }

    /// A call comes in: the trace of its first row, if the call is traced.
    pub(super) fn open(
        &mut self,
        call: Option<Box<CallTrace>>,
        deadline: Time,
        rows: usize,
    ) -> Option<Box<RowTrace>> {
        let call = *call.filter(|_| rows > 0)?;
        self.live += 1;
        Some(Box::new(RowTrace {
            call,
            deadline,
            rows,
            windows: Vec::new(),
            batches: Vec::new(),
        }))
    }

    /// The scheduler was polled: a window may have been opened and decided.
    pub(super) fn polled(&mut self, scheduler: &Scheduler, clock: Clock) {
        let opened = scheduler.windows_opened();
        if opened == self.opened {
            return;
        }
        self.opened = opened;
        if self.live > 0 {
            if self.closed.len() == WINDOWS_MAX {
                self.closed.pop_front();
            }
            self.closed.push_back((opened, clock.now()));
        }
    }

    /// A worker got a batch.
    pub(super) fn started(
        &self,
        waiters: &mut Waiters,
        scheduler: &Scheduler,
        launch: &Launch,
        clock: Clock,
    ) {
        if self.live == 0 {
            return;
        }
        let now = clock.now();
        for &request in &launch.requests {
            let Some(trace) = waiters.trace(request) else {
                continue;
            };
            let last = scheduler.history().iter().rev().take(WINDOWS_MAX);
            let mut last = last.filter(|decision| decision.plan.members.contains(&request));
            if let Some(decision) = last.next() {
                self.decided(trace, decision, request, now);
            }
            trace.batches.push(BatchTrace {
                batch: launch.batch,
                worker: launch.worker,
                variant: launch.variant,
                from_stage: launch.from_stage,
                to_stage: launch.to_stage,
                exit: launch.exit,
                size: launch.requests.len(),
                load: Micros::ZERO,
                began: now,
                ended: None,
            });
        }
    }

    /// A worker has finished a batch, after a load and a computation of these times.
    pub(super) fn finished(
        &self,
        waiters: &mut Waiters,
        batch: BatchId,
        requests: &[RequestId],
        now: Time,
        (load, compute): (Micros, Micros),
    ) {
        if self.live == 0 {
            return;
        }
        for &request in requests {
            let batches = waiters.trace(request).map(|trace| &mut trace.batches);
            let ran = batches.and_then(|batches| batches.iter_mut().find(|ran| ran.batch == batch));
            if let Some(ran) = ran {
                ran.load = load;
                ran.began = ran.began.max(now - compute);
                ran.ended = Some(now.max(ran.began));
            }
        }
    }

    /// A traced row has ended.
    pub(super) fn ended(
        &mut self,
        mut trace: RowTrace,
        scheduler: &Scheduler,
        reply: &Reply,
        (arrival, now): (Time, Time),
    ) {
        self.live -= 1;
        let decided = reply.decided.as_ref();
        let decision = decided.and_then(|decided| scheduler.history().get(decided.window));
        if let Some(decision) = decision {
            self.decided(&mut trace, decision, reply.request, now);
        }
        let ran = match &reply.outcome {
            Outcome::Answered { variant, exit, .. } => Some((*variant, *exit)),
            _ => None,
        };
        self.tracer.record(RequestTrace {
            call: trace.call,
            pool: Arc::clone(&self.pool),
            catalog: Arc::clone(&self.catalog),
            request: reply.request,
            app: reply.app,
            rows: trace.rows,
            arrival,
            deadline: trace.deadline,
            ended: now,
            outcome: reply.outcome.label(),
            is_answered: ran.is_some() || matches!(reply.outcome, Outcome::ShortCircuited { .. }),
            policy: decided.map(|decided| Arc::clone(&decided.by)),
            ran,
            windows: trace.windows,
            batches: trace.batches,
        });
    }

    /// Notes a decision about a request once.
    fn decided(&self, trace: &mut RowTrace, decision: &Decision, request: RequestId, now: Time) {
        let id = decision.window.id;
        if trace.windows.iter().any(|window| window.id == id) {
            return;
        }
        let closed = self.closed.iter().rev().find(|(window, _)| *window == id);
        trace.windows.push(WindowTrace {
            id,
            by: Arc::clone(&decision.by),
            reason: reasons::of_request(&decision.plan, request).map(str::to_owned),
            opened: decision.window.now,
            closed: closed.map_or(now, |(_, at)| *at),
        });
    }
}
