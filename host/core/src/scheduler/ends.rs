//! The ends of requests.

use super::{COMPLETIONS_MAX, Scheduler};
use crate::event::{Command, Ran, Reply};
use crate::ids::{RequestId, WorkerId};
use crate::planted::Planted;
use crate::request::{Outcome, Rejection, Request};
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::window::{Completion, End};
use crate::worker::Decided;

impl Scheduler {
    /// Ends a request. Nothing else takes requests out of the table.
    pub(super) fn end(
        &mut self,
        now: Time,
        id: RequestId,
        outcome: Outcome,
        by: Option<(Decided, Option<Ran>)>,
    ) {
        let Some(entry) = self.table.remove(id) else {
            return;
        };
        self.ledger.end(&outcome);
        self.guard.ended(now, &entry.request, &outcome);
        if entry.state() == RequestState::Held {
            self.held.remove(id);
        }
        if let Some(progress) = entry.progress {
            self.release(progress.worker, id, &outcome);
        }
        let latency = now.since(entry.request.arrival);
        if self.shown().completions {
            self.record_completion(id, &entry.request, &outcome, latency);
        }
        let (decided, ran) = match by {
            Some((decided, ran)) => (Some(decided), ran),
            None => (None, None),
        };
        self.out.push_back(Command::Reply(Reply {
            request: id,
            app: entry.request.app,
            outcome,
            latency,
            decided,
            ran,
            evidence: entry.evidence,
        }));
    }

    /// Frees the parking of a request that ends. Unless a batch consumed the activations, the
    /// executor must forget them.
    fn release(&mut self, worker: WorkerId, request: RequestId, outcome: &Outcome) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.parked = worker.parked.saturating_sub(1);
        }
        let is_kept = self.planted.is(Planted::KeptActivations) && *outcome == Outcome::Cancelled;
        if !matches!(outcome, Outcome::Answered { .. }) && !is_kept {
            self.out.push_back(Command::Release { worker, request });
        }
    }

    fn record_completion(
        &mut self,
        id: RequestId,
        request: &Request,
        outcome: &Outcome,
        latency: Micros,
    ) {
        if self.completions.len() == COMPLETIONS_MAX {
            self.completions.pop_front();
        }
        let (variant, exit) = match *outcome {
            Outcome::Answered { variant, exit, .. } => (Some(variant), Some(exit)),
            _ => (None, None),
        };
        self.completions.push_back(Completion {
            id,
            app: request.app,
            end: End::from(outcome),
            variant,
            exit,
            latency,
        });
    }

    pub(super) fn reject(&mut self, now: Time, id: RequestId, why: Rejection) {
        self.end(now, id, Outcome::Rejected(why), None);
    }
}

impl From<&Outcome> for End {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true } => {
                Self::InTime
            }
            Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => Self::Late,
            Outcome::Rejected(_) => Self::Rejected,
            Outcome::Dropped(_) => Self::Dropped,
            Outcome::Failed(_) => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}
