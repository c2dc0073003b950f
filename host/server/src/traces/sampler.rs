//! Draws the requests that are traced, and their ids.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use switchyard_protocol::TraceParent;

use super::record::CallTrace;

/// Requests per second that are traced because their client traces them: a client cannot have the server
/// trace without bound.
const PARENTS_PER_S_MAX: u32 = 100;

/// Without locks: clients' threads draw at the same time.
pub(super) struct Sampler {
    /// Draws up to this are traced.
    threshold: u64,
    seed: u64,
    draws: AtomicU64,
    parents: RateLimit,
}

/// Counts within seconds.
struct RateLimit {
    began: Instant,
    /// The second in the upper 32 bits, its count in the lower ones.
    state: AtomicU64,
}

// === impl Sampler ===

impl Sampler {
    /// `share` of the requests without a parent, 0 to 1.
    pub(super) fn new(share: f64) -> Self {
        Self {
            // Saturates.
            threshold: (share * u64::MAX as f64) as u64,
            seed: RandomState::new().hash_one(std::process::id()),
            draws: AtomicU64::new(0),
            parents: RateLimit {
                began: Instant::now(),
                state: AtomicU64::new(0),
            },
        }
    }

    /// The place of the next request in a trace; `None`: it is not traced. A parent decides for its
    /// requests.
    pub(super) fn draw(&self, parent: Option<TraceParent>) -> Option<CallTrace> {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        let drawn = mixed(self.seed.wrapping_add(draw.wrapping_mul(STEP)));
        let is_traced = match parent {
            Some(parent) => parent.sampled && self.parents.admits(),
            None => self.threshold > 0 && drawn <= self.threshold,
        };
        is_traced.then(|| {
            let number =
                |nth: u64| mixed(drawn ^ self.seed.rotate_left(17).wrapping_add(nth)).max(1);
            let own = u128::from(number(1)) << 64 | u128::from(number(2));
            CallTrace {
                trace_id: parent.map_or(own, |parent| parent.trace_id),
                parent: parent.map(|parent| parent.span_id),
                span_id: number(3),
            }
        })
    }
}

/// The golden ratio, as SplitMix64 steps.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output of SplitMix64.
pub(super) fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

// === impl RateLimit ===

impl RateLimit {
    fn admits(&self) -> bool {
        let second = self.began.elapsed().as_secs() << 32;
        let next = |state: u64| {
            let count = match state & !u64::from(u32::MAX) == second {
                true => state as u32,
                false => 0,
            };
            (count < PARENTS_PER_S_MAX).then_some(second | u64::from(count + 1))
        };
        let ordering = Ordering::Relaxed;
        self.state.fetch_update(ordering, ordering, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(sampled: bool) -> TraceParent {
        TraceParent {
            trace_id: 7,
            span_id: 9,
            sampled,
        }
    }

    #[test]
    fn the_share_of_requests_is_drawn() {
        for (share, low, high) in [(0.0, 0, 0), (0.01, 800, 1_200), (1.0, 100_000, 100_000)] {
            let sampler = Sampler::new(share);
            let drawn = (0..100_000).filter(|_| sampler.draw(None).is_some());
            let drawn = drawn.count();
            assert!((low..=high).contains(&drawn), "{share}: {drawn}");
        }
    }

    #[test]
    fn a_parent_decides_up_to_the_limit() {
        let all = Sampler::new(1.0);
        assert_eq!(all.draw(Some(parent(false))), None);
        let none = Sampler::new(0.0);
        let first = none.draw(Some(parent(true))).unwrap();
        assert_eq!((first.trace_id, first.parent), (7, Some(9)));
        let more = (0..100_000).filter(|_| none.draw(Some(parent(true))).is_some());
        // The second may change meanwhile.
        let most = 3 * PARENTS_PER_S_MAX as usize;
        let more = more.count();
        assert!(
            (PARENTS_PER_S_MAX as usize - 1..most).contains(&more),
            "{more}"
        );
    }

    #[test]
    fn ids_differ() {
        let sampler = Sampler::new(1.0);
        let ids = (0..10_000).filter_map(|_| sampler.draw(None));
        let ids: std::collections::BTreeSet<_> = ids
            .flat_map(|call| [call.trace_id, call.span_id.into()])
            .collect();
        assert_eq!(ids.len(), 20_000);
    }
}
