//! Outcomes of requests, and their utility as in the SneakPeek paper.

use std::collections::BTreeMap;
use std::time::Duration;

use switchyard_core::catalog::Penalty;
use switchyard_core::time::Micros;

/// How one request ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Position of its app among those asked.
    pub(super) app: usize,
    /// From when it was due to the last byte of its answer.
    pub(super) latency: Duration,
    /// Its deadline, from when it was due.
    pub(super) deadline: Duration,
    /// The reply.
    pub(super) end: End,
}

/// The reply to a request.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// An answer.
    Answered(Answered),
    /// An error with a reason.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        error: String,
    },
    /// No reply: the request was lost.
    Lost(String),
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// The label was the right one.
    pub(super) right: bool,
    /// The policy that decided.
    pub(super) policy: String,
    /// `app/variant:exit` that ran, or `app/evidence`.
    pub(super) ran: String,
}

/// Sums over outcomes.
#[derive(Clone, Debug, Default)]
pub(super) struct Score {
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) refused: u64,
    pub(super) lost: u64,
    right: u64,
    in_time: u64,
    utility: f64,
    latencies: Vec<Duration>,
    policies: BTreeMap<String, u64>,
    ran: BTreeMap<String, u64>,
    /// One of the errors.
    pub(super) error: Option<String>,
}

/// The sums of one policy: over everything, and app by app.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    pub(super) all: Score,
    pub(super) apps: Vec<Score>,
}

// === impl Scores ===

impl Scores {
    pub(super) fn new(apps: usize) -> Self {
        Self {
            all: Score::default(),
            apps: vec![Score::default(); apps],
        }
    }

    /// Counts one more request.
    pub(super) fn add(&mut self, outcome: &Outcome, penalty: Penalty) {
        self.all.add(outcome, penalty);
        if let Some(app) = self.apps.get_mut(outcome.app) {
            app.add(outcome, penalty);
        }
    }
}

// === impl Score ===

impl Score {
    /// Counts one more request.
    pub(super) fn add(&mut self, outcome: &Outcome, penalty: Penalty) {
        self.requests += 1;
        let answered = match &outcome.end {
            End::Answered(answered) => answered,
            End::Refused { status, error } => {
                self.refused += 1;
                self.error = Some(format!("{status}: {error}"));
                return;
            }
            End::Lost(error) => {
                self.lost += 1;
                self.error = Some(error.clone());
                return;
            }
        };
        self.answered += 1;
        self.latencies.push(outcome.latency);
        self.in_time += u64::from(outcome.latency <= outcome.deadline);
        *self.policies.entry(answered.policy.clone()).or_default() += 1;
        *self.ran.entry(answered.ran.clone()).or_default() += 1;
        if answered.right {
            self.right += 1;
            self.utility += 1.0 - penalty.loss(micros(outcome.deadline), micros(outcome.latency));
        }
    }

    /// Answers in time per second.
    pub(super) fn goodput_per_s(&self, time: Duration) -> f64 {
        self.in_time as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Share of answers that were right.
    pub(super) fn accuracy(&self) -> f64 {
        share(self.right, self.answered)
    }

    /// Share of requests that were not answered in time.
    pub(super) fn violations(&self) -> f64 {
        share(self.requests - self.in_time, self.requests)
    }

    /// Mean utility of the requests (eq. 2 with the measured accuracy).
    pub(super) fn utility(&self) -> f64 {
        self.utility / self.requests.max(1) as f64
    }

    /// Latencies at these percentiles, in milliseconds.
    pub(super) fn percentiles_ms<const N: usize>(&self, percentiles: [f64; N]) -> [f64; N] {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        percentiles.map(|p| {
            let rank = (p * sorted.len() as f64).ceil() as usize;
            let at = rank.clamp(1, sorted.len().max(1)) - 1;
            sorted
                .get(at)
                .map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
        })
    }

    /// Shares of answers by variant and exit, largest first.
    pub(super) fn ran(&self) -> Vec<(String, f64)> {
        shares(&self.ran, self.answered)
    }

    /// Shares of answers by policy, largest first.
    pub(super) fn policies(&self) -> Vec<(String, f64)> {
        shares(&self.policies, self.answered)
    }
}

fn shares(counts: &BTreeMap<String, u64>, of: u64) -> Vec<(String, f64)> {
    let mut shares: Vec<_> = counts
        .iter()
        .map(|(name, count)| (name.clone(), share(*count, of)))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn micros(time: Duration) -> Micros {
    Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(latency_ms: u64, right: bool) -> Outcome {
        Outcome {
            app: 0,
            latency: Duration::from_millis(latency_ms),
            deadline: Duration::from_millis(100),
            end: End::Answered(Answered {
                right,
                policy: "p".to_owned(),
                ran: "v:final".to_owned(),
            }),
        }
    }

    #[test]
    fn utility_is_accuracy_less_lateness() {
        let mut score = Score::default();
        // In time and right: 1. Late by a quarter and right: 0.75. Wrong: 0. Refused: 0.
        for outcome in [
            answered(100, true),
            answered(125, true),
            answered(50, false),
            Outcome {
                end: End::Refused {
                    status: 429,
                    error: "queue full".to_owned(),
                },
                ..answered(1, true)
            },
        ] {
            score.add(&outcome, Penalty::Linear);
        }
        assert!((score.utility() - 1.75 / 4.0).abs() < 1e-12);
        assert!((score.accuracy() - 2.0 / 3.0).abs() < 1e-12);
        assert!((score.violations() - 0.5).abs() < 1e-12);
        assert!((score.goodput_per_s(Duration::from_secs(2)) - 1.0).abs() < 1e-12);
        assert_eq!((score.requests, score.answered), (4, 3));
        assert_eq!((score.refused, score.lost), (1, 0));
        assert_eq!(score.error.as_deref(), Some("429: queue full"));
    }

    #[test]
    fn percentiles_are_of_answers() {
        let mut score = Score::default();
        assert_eq!(score.percentiles_ms([0.5]), [0.0]);
        for ms in 1..=100 {
            score.add(&answered(ms, true), Penalty::Step);
        }
        assert_eq!(score.percentiles_ms([0.5, 0.95, 1.0]), [50.0, 95.0, 100.0]);
    }
}
