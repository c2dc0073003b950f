//! From the core's reply to the client's answer.

use std::mem::take;

use switchyard_core::event::Reply;
use switchyard_core::evidence::posterior;
use switchyard_core::ids::AppId;
use switchyard_core::request::{Evidence, Outcome};
use switchyard_core::time::Time;
use switchyard_core::{Event, Scheduler};

use super::message::{CallError, RowAnswer};
use super::turn::Driver;
use super::waiters::Row;

impl Driver {
    pub(super) fn reply(&mut self, now: Time, reply: Reply) {
        self.meters.ended(&reply);
        self.recent.ended(now, &reply);
        self.went(reply.app);
        let Some(mut row) = self.waiters.take(reply.request) else {
            return; // Its call has ended already.
        };
        if let (Some(traces), Some(trace)) = (&mut self.traces, row.trace.take()) {
            let times = (row.arrival, self.clock.now());
            traces.ended(*trace, &self.scheduler, &reply, times);
        }
        match answer(&self.scheduler, &mut row, &reply) {
            Ok(answer) => {
                if let Some((variant, _)) = answer.ran {
                    self.counters.answered_row(variant);
                }
                let Some(ended) = self.waiters.answer(&row, answer) else {
                    return;
                };
                if let Some(call) = &ended.counted {
                    self.counters.answered(call, reply.latency);
                }
                ended.send();
            }
            Err(outcome) => {
                let is_failure = matches!(outcome, Outcome::Failed(_));
                let error = CallError {
                    outcome,
                    waited: reply.latency,
                    decided: reply.decided,
                };
                let Some((ended, orphans)) = self.waiters.fail(&row, error) else {
                    return;
                };
                if let (true, Some(variant)) = (is_failure, row.variant) {
                    self.counters.failed(variant, reply.latency);
                }
                ended.send();
                for orphan in orphans {
                    self.scheduler.handle(now, Event::Cancelled(orphan));
                }
            }
        }
    }
}

/// The row's answer, which is taken out of it, or the outcome of a row without an answer.
fn answer(scheduler: &Scheduler, row: &mut Row, reply: &Reply) -> Result<RowAnswer, Outcome> {
    let (ran, in_time, probabilities) = match &reply.outcome {
        Outcome::Answered {
            variant,
            exit,
            in_time,
        } => (
            Some((*variant, *exit)),
            *in_time,
            take(&mut row.probabilities),
        ),
        Outcome::ShortCircuited { in_time } => {
            let guess = guess(scheduler, reply.app, reply.evidence.as_ref());
            (None, *in_time, guess)
        }
        other => return Err(other.clone()),
    };
    let queue = match &reply.ran {
        Some(ran) => ran.since.since(row.arrival),
        None => reply.latency,
    };
    let decided = reply.decided.as_ref();
    Ok(RowAnswer {
        probabilities,
        tensors: take(&mut row.tensors),
        ran,
        policy: decided.map(|d| d.by.clone()).unwrap_or_default(),
        window: decided.map_or(0, |d| d.window),
        batch_size: reply.ran.map_or(0, |ran| ran.size),
        queue,
        compute: row.compute,
        in_time,
    })
}

/// The answer from evidence alone: the posterior mean (SneakPeek eq. 9).
fn guess(scheduler: &Scheduler, app: AppId, evidence: Option<&Evidence>) -> Vec<f32> {
    let Some(app) = scheduler.catalog().app(app) else {
        return Vec::new();
    };
    let mut theta = Vec::new();
    let counts = evidence.map_or(&[][..], |counts| counts.as_slice());
    posterior(&app.prior, counts, &mut theta);
    theta.into_iter().map(|p| p as f32).collect()
}
