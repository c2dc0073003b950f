//! The worth of the answers, by member and by round.

use std::collections::BTreeMap;

use super::slots::Member;
use super::test::PairedTest;
use crate::catalog::Catalog;
use crate::request::{Outcome, Request};
use crate::time::{Micros, Time};

/// Counts of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) arrived: u64,
    pub(super) ended: u64,
    pub(super) in_time: u64,
    /// Ends with an answer of known quality, and the sum of their profiled qualities.
    pub(super) answered: u64,
    pub(super) quality: f64,
    pub(super) utility: f64,
}

/// One round until all its requests have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    baseline: Sums,
    candidate: Sums,
}

/// All rounds that are open, and the sums of all that ended.
#[derive(Debug, Default)]
pub(super) struct Tally {
    open: BTreeMap<u64, Round>,
    totals: [Sums; 3],
}

// === impl Tally ===

impl Tally {
    pub(super) fn total(&self, member: Member) -> &Sums {
        &self.totals[member as usize]
    }

    pub(super) fn arrived(&mut self, member: Member, round: u64) {
        if member != Member::Serving {
            self.open.entry(round).or_default();
        }
        self.each(member, round, |sums| sums.arrived += 1);
    }

    /// Counts the end of a request. One whose client went away counts as if it had never come.
    pub(super) fn ended(
        &mut self,
        now: Time,
        member: Member,
        round: u64,
        (request, outcome): (&Request, &Outcome),
        catalog: &Catalog,
    ) {
        if matches!(outcome, Outcome::Cancelled) {
            self.each(member, round, |sums| {
                sums.arrived = sums.arrived.saturating_sub(1);
            });
            return;
        }
        let quality = quality(outcome, request, catalog);
        let utility = utility(now, outcome, quality, request, catalog);
        let in_time = u64::from(is_in_time(outcome));
        self.each(member, round, |sums| {
            sums.ended += 1;
            sums.in_time += in_time;
            if let Some(quality) = quality {
                sums.answered += 1;
                sums.quality += quality;
            }
            sums.utility += utility;
        });
    }

    /// Closes rounds that are over, oldest first, up to the first of which a request may still end in time
    /// or soon after: a round is waited for until `patience` after its end.
    pub(super) fn close(
        &mut self,
        now: Time,
        end_of: impl Fn(u64) -> Time,
        patience: Micros,
        test: &mut PairedTest,
    ) {
        while let Some(first) = self.open.first_entry() {
            let end = end_of(*first.key());
            if now < end || !first.get().has_ended() && now < end + patience {
                return;
            }
            let round = first.remove();
            if let (Some(baseline), Some(candidate)) = (
                round.baseline.mean_utility(),
                round.candidate.mean_utility(),
            ) {
                test.add(candidate - baseline);
            }
        }
    }

    /// When the oldest open round is over.
    pub(super) fn next_close(&self, end_of: impl Fn(u64) -> Time) -> Option<Time> {
        self.open.first_key_value().map(|(&round, _)| end_of(round))
    }

    /// A request that ends after its round was closed changes the totals only.
    fn each(&mut self, member: Member, round: u64, change: impl Fn(&mut Sums)) {
        change(&mut self.totals[member as usize]);
        if let Some(round) = self.open.get_mut(&round) {
            match member {
                Member::Serving => {}
                Member::Baseline => change(&mut round.baseline),
                Member::Candidate => change(&mut round.candidate),
            }
        }
    }
}

// === impl Round ===

impl Round {
    fn has_ended(&self) -> bool {
        let has_ended = |sums: &Sums| sums.ended >= sums.arrived;
        has_ended(&self.baseline) && has_ended(&self.candidate)
    }
}

// === impl Sums ===

impl Sums {
    /// Per request that arrived; those that have not ended are worth nothing.
    pub(super) fn mean_utility(&self) -> Option<f64> {
        (self.arrived > 0).then(|| self.utility / self.arrived as f64)
    }
}

/// Whether an answer came before the deadline.
fn is_in_time(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true }
    )
}

/// The profiled quality of an answer; none without an answer or where it is unknown.
fn quality(outcome: &Outcome, request: &Request, catalog: &Catalog) -> Option<f64> {
    match *outcome {
        Outcome::Answered { variant, exit, .. } => catalog.variant(variant)?.quality(exit),
        Outcome::ShortCircuited { .. } => {
            let model = catalog.app(request.app)?.sneakpeek.as_ref();
            model.map(|model| model.accuracy)
        }
        _ => None,
    }
}

/// SneakPeek eq. 2: the quality of the answer, less the app's loss for lateness. An answer of unknown
/// quality counts 1, no answer 0.
fn utility(
    now: Time,
    outcome: &Outcome,
    quality: Option<f64>,
    request: &Request,
    catalog: &Catalog,
) -> f64 {
    let is_answer = matches!(
        outcome,
        Outcome::Answered { .. } | Outcome::ShortCircuited { .. }
    );
    let Some(app) = catalog.app(request.app).filter(|_| is_answer) else {
        return 0.0;
    };
    let loss = match is_in_time(outcome) {
        true => 0.0,
        false => {
            let deadline = request.deadline.since(request.arrival);
            app.penalty.loss(deadline, now.since(request.arrival))
        }
    };
    quality.unwrap_or(1.0) * (1.0 - loss)
}
