//! Conservation: every accepted request ends exactly once.

use std::collections::BTreeMap;

use crate::request::Outcome;

/// Counts accepted requests and their ends, at the only two places where a request enters and
/// leaves the table. [`imbalance`](Ledger::imbalance) compares the two.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accepted: u64,
    ended: u64,
    by_outcome: BTreeMap<&'static str, u64>,
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn accept(&mut self) {
        self.accepted += 1;
    }

    pub(crate) fn end(&mut self, outcome: &Outcome) {
        self.ended += 1;
        *self.by_outcome.entry(outcome.label()).or_default() += 1;
    }

    /// Requests accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Requests that have ended since the start.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Ended requests by [`Outcome::label`].
    pub fn by_outcome(&self) -> &BTreeMap<&'static str, u64> {
        &self.by_outcome
    }

    /// Accepted minus ended minus `live`. Not 0: a request was lost or answered twice.
    pub fn imbalance(&self, live: usize) -> i64 {
        self.accepted as i64 - self.ended as i64 - live as i64
    }
}
