//! The ended requests of one app in one slot.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::request::Outcome;

/// Parts of an octave that latencies are told apart by: a latency is off by 7 % at most.
const PARTS: u64 = 8;

/// Counts of latencies: up to 2^36 us, which is 19 hours.
const BUCKETS: usize = 34 * PARTS as usize;

/// Policies that are told apart; further ones count as the last of them.
const POLICIES_MAX: usize = 8;

/// Outcomes, latencies and policies.
#[derive(Clone, Debug)]
pub(super) struct AppEnds {
    /// In the order of [`Outcome::LABELS`].
    pub(super) outcomes: [u64; Outcome::LABELS.len()],
    pub(super) policies: Vec<PolicyEnds>,
    /// Sum and number of the profiled qualities of answers.
    pub(super) quality: (f64, u64),
    latencies: Latencies,
}

/// The requests that one policy decided about, or the host.
#[derive(Clone, Debug)]
pub(super) struct PolicyEnds {
    pub(super) by: Arc<str>,
    pub(super) ended: u64,
    pub(super) in_time: u64,
}

/// A histogram of the latencies of answers.
#[derive(Clone, Debug)]
pub(super) struct Latencies(Vec<u32>);

// === impl AppEnds ===

impl AppEnds {
    /// Counts a request. `host` is the label of the host's own decisions.
    pub(super) fn add(&mut self, catalog: &Catalog, host: &Arc<str>, reply: &Reply) {
        let label = reply.outcome.label();
        if let Some(at) = Outcome::LABELS.iter().position(|known| *known == label) {
            self.outcomes[at] += 1;
        }
        let (in_time, quality) = match &reply.outcome {
            Outcome::Cancelled => return,
            Outcome::Answered {
                variant,
                exit,
                in_time,
            } => {
                let variant = catalog.variant(*variant);
                self.latencies.add(reply.latency.0);
                (*in_time, variant.and_then(|v| v.quality(*exit)))
            }
            Outcome::ShortCircuited { in_time } => {
                let app = catalog.app(reply.app);
                let evidence = app.and_then(|app| app.sneakpeek.as_ref());
                self.latencies.add(reply.latency.0);
                (*in_time, evidence.map(|model| model.accuracy))
            }
            Outcome::Rejected(_) | Outcome::Dropped(_) | Outcome::Failed(_) => (false, None),
        };
        if let Some(quality) = quality {
            self.quality.0 += quality;
            self.quality.1 += 1;
        }
        let by = reply.decided.as_ref().map_or(host, |decided| &decided.by);
        let policy = self.policy(by);
        policy.ended += 1;
        policy.in_time += u64::from(in_time);
    }

    /// Adds the counts of another slot.
    pub(super) fn merge(&mut self, other: &Self) {
        for (own, more) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own += more;
        }
        for more in &other.policies {
            let own = self.policy(&more.by);
            own.ended += more.ended;
            own.in_time += more.in_time;
        }
        self.quality.0 += other.quality.0;
        self.quality.1 += other.quality.1;
        self.latencies.merge(&other.latencies);
    }

    pub(super) fn clear(&mut self) {
        self.outcomes.fill(0);
        self.policies.clear();
        self.quality = (0.0, 0);
        self.latencies.0.fill(0);
    }

    pub(super) fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    fn policy(&mut self, by: &Arc<str>) -> &mut PolicyEnds {
        let policies = &mut self.policies;
        let known = policies.iter().position(|known| known.by == *by);
        let at = known.unwrap_or_else(|| {
            if policies.len() < POLICIES_MAX {
                policies.push(PolicyEnds {
                    by: Arc::clone(by),
                    ended: 0,
                    in_time: 0,
                });
            }
            policies.len() - 1
        });
        &mut policies[at]
    }
}

impl Default for AppEnds {
    fn default() -> Self {
        Self {
            outcomes: [0; Outcome::LABELS.len()],
            policies: Vec::with_capacity(POLICIES_MAX),
            quality: (0.0, 0),
            latencies: Latencies(vec![0; BUCKETS]),
        }
    }
}

// === impl Latencies ===

impl Latencies {
    fn add(&mut self, us: u64) {
        let at = bucket(us).min(BUCKETS - 1);
        self.0[at] = self.0[at].saturating_add(1);
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own = own.saturating_add(*more);
        }
    }

    /// The latency that this share of the answers, 0 to 1, did not exceed, in microseconds: the middle of
    /// its bucket. `None` without answers.
    pub(super) fn percentile(&self, share: f64) -> Option<u64> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = ((share * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.0.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        });
        at.map(middle)
    }
}

/// Microseconds below [`PARTS`] have a bucket each, octaves above have [`PARTS`] of equal width.
fn bucket(us: u64) -> usize {
    match us.checked_ilog2() {
        Some(octave) if us >= PARTS => {
            let shift = octave - PARTS.ilog2();
            (u64::from(shift) * PARTS + (us >> shift)) as usize
        }
        _ => us as usize,
    }
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    let low = (bucket % PARTS + PARTS) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_off_by_7_percent_at_most() {
        for us in (0..5_000).chain([123_456, 9_999_999, 3_600_000_000]) {
            let shown = middle(bucket(us));
            let off = shown.abs_diff(us) as f64;
            assert!(off <= 0.07 * us as f64, "{us} is shown as {shown}");
        }
        let mut before = 0;
        for us in 0..100_000 {
            assert!(bucket(us) == before || bucket(us) == before + 1, "{us}");
            before = bucket(us);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_answers() {
        let mut latencies = AppEnds::default().latencies;
        assert_eq!(latencies.percentile(0.5), None);
        (1..=100).for_each(|ms| latencies.add(ms * 1_000));
        latencies.add(u64::MAX);
        for (share, ms) in [(0.0, 1), (0.5, 51), (0.9, 91), (0.99, 100)] {
            let shown = latencies.percentile(share).unwrap_or_default() as f64;
            let off = shown / (f64::from(ms) * 1_000.0);
            assert!((0.93..1.07).contains(&off), "{share}: {shown}");
        }
    }
}
