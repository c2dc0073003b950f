//! The rule by which variants leave a worker's memory when another one needs room:
//! 1. A variant that is pinned or in use stays.
//! 2. The variants of waiting batches go last, among them the one needed latest first (Belady, "A
//!    study of replacement algorithms", 1966).
//! 3. The others go by their worth, lowest first: `floor + load time / bytes` at the last use,
//!    where `floor` is the worth of the variant evicted last (Cao and Irani's GreedyDual-Size,
//!    "Cost-aware WWW proxy caching algorithms", 1997). A variant that is slow to load for its size
//!    outlives a quick one, but not for ever. Among equals the least recently used goes.
//! 4. A variant that need not go in the end stays, the worthiest first.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::time::Micros;

/// Bits after the binary point of a cost: it is in units of 2^-20 us per byte.
const COST_BITS: u32 = 20;

/// A variant that may be evicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Position in the list of residents, which goes from least to most recently used.
    pub(super) at: usize,
    pub(super) bytes: u64,
    pub(super) worth: u64,
    /// Position among the variants of waiting batches.
    pub(super) needed: Option<usize>,
}

/// All of them; without allocation for a worker's usual number of variants.
pub(super) type Candidates = SmallVec<[Candidate; 16]>;

/// Load time over size, an integer so that it is the same on every machine.
pub(super) fn cost(load: Micros, bytes: u64) -> u64 {
    let cost = (u128::from(load.0) << COST_BITS) / u128::from(bytes.max(1));
    // At most half of the range: the floor may grow by it.
    u64::try_from(cost).unwrap_or(u64::MAX).min(u64::MAX >> 1)
}

/// Keeps the candidates that go, in the order in which they do, so that at least `excess_bytes`
/// become free. Together they must have that many.
pub(super) fn choose(candidates: &mut Candidates, excess_bytes: u64) {
    // `None` sorts before `Some`: variants that no waiting batch needs go first.
    candidates.sort_by_key(|c| (c.needed.map(Reverse), c.worth, c.at));
    let mut freed = 0;
    candidates.retain(|candidate| {
        let goes = freed < excess_bytes;
        freed += if goes { candidate.bytes } else { 0 };
        goes
    });
    let mut spared = freed - excess_bytes;
    for at in (0..candidates.len()).rev() {
        let bytes = candidates[at].bytes;
        if bytes <= spared {
            spared -= bytes;
            candidates.remove(at);
        }
    }
}
