//! The clients' side of a case: requests that arrived, and their answers.

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::event::Reply;
use switchyard_core::ids::{AppId, RequestId, VariantId};
use switchyard_core::request::{Outcome, Request};
use switchyard_core::time::Time;

use super::violation::{Rule, Violation, require};

/// A request that has no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRequest {
    pub(super) app: AppId,
    pub(super) arrival: Time,
    pub(super) deadline: Time,
    pub(super) pinned: Option<VariantId>,
    pub(super) cost: Cost,
}

/// Requests and answers so far.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) open: BTreeMap<RequestId, OpenRequest>,
    /// Highest id so far; 0 before the first request.
    pub(super) newest: u64,
    pub(super) answers: u64,
}

// === impl OpenRequest ===

impl OpenRequest {
    /// The outcome is one of this request.
    fn fits(&self, now: Time, outcome: &Outcome, catalog: &Catalog) -> bool {
        let was_in_time = now <= self.deadline;
        match *outcome {
            Outcome::Answered {
                variant,
                exit,
                in_time,
            } => {
                let of = catalog.variant(variant);
                in_time == was_in_time
                    && of.is_some_and(|of| of.app == self.app && of.exit(exit).is_some())
                    && self.pinned.is_none_or(|pinned| pinned == variant)
            }
            Outcome::ShortCircuited { in_time } => in_time == was_in_time && self.pinned.is_none(),
            Outcome::Rejected(_)
            | Outcome::Dropped(_)
            | Outcome::Failed(_)
            | Outcome::Cancelled => true,
        }
    }
}

// === impl Books ===

impl Books {
    /// The id of the next request.
    pub(super) fn next_id(&mut self) -> RequestId {
        self.newest += 1;
        RequestId(self.newest)
    }

    pub(super) fn arrived(&mut self, request: &Request) {
        let open = OpenRequest {
            app: request.app,
            arrival: request.arrival,
            deadline: request.deadline,
            pinned: request.pinned,
            cost: request.cost,
        };
        self.open.insert(request.id, open);
    }

    /// The request that came this many before the newest.
    pub(super) fn back(&self, back: u64) -> RequestId {
        RequestId(self.newest.saturating_sub(back).max(1))
    }

    /// Takes an answer in.
    ///
    /// # Errors
    /// The request is unknown or was answered before, or the answer is not about it.
    pub(super) fn answer(
        &mut self,
        now: Time,
        reply: &Reply,
        catalog: &Catalog,
    ) -> Result<(), Violation> {
        let id = reply.request;
        let Some(open) = self.open.remove(&id) else {
            let detail = match id.0 <= self.newest {
                true => format!("request {} is answered twice: {:?}", id.0, reply.outcome),
                false => format!("request {} never arrived: {:?}", id.0, reply.outcome),
            };
            return Err(Violation::new(Rule::OneAnswer, now, detail));
        };
        self.answers += 1;
        let is_its_own = reply.app == open.app && reply.latency == now.since(open.arrival);
        let fits = open.fits(now, &reply.outcome, catalog);
        require(is_its_own && fits, Rule::OneAnswer, now, || {
            format!("{reply:?} does not fit request {}: {open:?}", id.0)
        })
    }

    /// The requests whose deadline was before `at`, with it.
    pub(super) fn due(&self, at: Time) -> impl Iterator<Item = (RequestId, Time)> {
        let open = self.open.iter();
        let due = open.filter(move |(_, open)| open.deadline < at);
        due.map(|(&id, open)| (id, open.deadline))
    }
}
