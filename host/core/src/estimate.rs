//! Observed over profiled latency, so that predictions follow the machine.
//!
//! A profile is measured once; clients that share the cores make batches slower later. For each kind
//! of worker, and each series of batches on it, this keeps the ratios of the last batches. Their
//! quantile at the profile's percentile is the *slowdown* by which predictions are multiplied.
//!
//! The slowdown of a kind holds for batches of any length. A single short one says nothing about those: an
//! interruption that multiplies its time hardly delays a long one. So short ones count together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::cost::Cost;
use crate::ids::{ExitId, KindId, VariantId};
use crate::time::{Micros, Time};

/// Ratios kept per series: enough for a 95th percentile.
const KEPT: usize = 32;

/// Fewest recent ratios for a slowdown of a series; with fewer, that of its kind holds.
const LEAST: usize = 8;

/// Ratios older than this do not count: the cause of the slowdown may be gone.
const MEMORY: Micros = Micros::from_millis(5_000);

/// After this long without a batch nothing is known of a kind: the load that slowed the last ones has gone with
/// them. A server that has answered thousands of short requests a second would refuse the first long ones.
const PAUSE: Micros = Micros::from_millis(1_000);

/// Batches of a kind count together until they take this long by the profile.
const SPAN: Micros = Micros::from_millis(1);

/// A slowdown changes once the quantile has moved by more than one part in this many.
const HYSTERESIS: u32 = 8;

/// Bounds of a ratio: one stalled batch must not stop admission, and a profile that was measured while
/// the machine was busy must not either.
pub(crate) const SLOWDOWN_MIN: Slowdown = Slowdown(UNIT / 8);
const SLOWDOWN_MAX: Slowdown = Slowdown(UNIT * 8);

const UNIT: u32 = 1_024;

/// Observed over profiled latency, a fixed-point number, so that it is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slowdown(u32);

/// Batches whose latencies are comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BatchSeries {
    pub(crate) kind: KindId,
    pub(crate) variant: VariantId,
    pub(crate) from_stage: u32,
    pub(crate) to_stage: u32,
    pub(crate) exit: Option<ExitId>,
    /// Rows of the profile that the batch costs, rounded up. Those with the same binary logarithm share
    /// a series.
    pub(crate) size: u32,
}

/// The slowdowns of a pool.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    /// Off: every slowdown is 1.
    follows: bool,
    percentile: f64,
    kinds: Vec<KindRatios>,
    series: BTreeMap<BatchSeries, Ratios>,
    /// Until then no kind has been idle for [`PAUSE`] since its newest ratio.
    busy_until: Time,
}

/// The last ratios of one kind of workers.
#[derive(Clone, Debug, Default)]
struct KindRatios {
    ratios: Ratios,
    /// Times of the batches since the last ratio, which have not taken [`SPAN`] yet, and of the first of them.
    profiled: Micros,
    observed: Micros,
    since: Time,
}

/// The last ratios of one series.
#[derive(Clone, Debug)]
struct Ratios {
    kept: [(Time, Slowdown); KEPT],
    len: usize,
    next: usize,
    published: Slowdown,
    /// Time of the newest ratio, or a later one at which a batch of the kind ran.
    newest: Time,
}

// === impl Slowdown ===

impl Slowdown {
    /// As fast as profiled.
    pub const NONE: Self = Self(UNIT);

    /// The time that a profiled latency takes at this slowdown.
    pub fn of(self, profiled: Micros) -> Micros {
        if self == Self::NONE {
            return profiled;
        }
        Micros(profiled.0.saturating_mul(u64::from(self.0)) / u64::from(UNIT))
    }

    /// As a number; 1 as fast as profiled.
    pub fn ratio(self) -> f64 {
        f64::from(self.0) / f64::from(UNIT)
    }

    /// Of a batch with this profiled and this observed latency, within the bounds of a ratio.
    pub fn between(profiled: Micros, observed: Micros) -> Self {
        let ratio = observed.0.saturating_mul(u64::from(UNIT)) / profiled.0.max(1);
        let ratio = u32::try_from(ratio).unwrap_or(u32::MAX);
        Self(ratio).clamp(SLOWDOWN_MIN, SLOWDOWN_MAX)
    }

    /// Further from `other` than the hysteresis.
    fn is_far_from(self, other: Self) -> bool {
        self.0.abs_diff(other.0) > other.0 / HYSTERESIS
    }
}

// === impl Estimates ===

impl Estimates {
    pub(crate) fn new(follows: bool, percentile: f64, kinds: usize) -> Self {
        Self {
            follows,
            percentile,
            kinds: vec![KindRatios::default(); kinds],
            series: BTreeMap::new(),
            busy_until: Time::ZERO,
        }
    }

    /// A batch took `observed` where the profile says `profiled`.
    pub(crate) fn observe(
        &mut self,
        now: Time,
        series: BatchSeries,
        profiled: Micros,
        observed: Micros,
    ) {
        if !self.follows || profiled == Micros::ZERO {
            return;
        }
        let Some(kind) = self.kinds.get_mut(series.kind.index()) else {
            return;
        };
        kind.add(now, (profiled, observed), self.percentile);
        self.busy_until = self.busy_until.min(now + PAUSE);
        let ratio = Slowdown::between(profiled, observed);
        let ratios = self.series.entry(series.class()).or_default();
        ratios.add(now, ratio, self.percentile);
    }

    /// Forgets the kinds that have had no batch for [`PAUSE`]. `running_since`: the start of the running batch
    /// of a kind that began first.
    pub(crate) fn forget_idle(
        &mut self,
        now: Time,
        running_since: impl Fn(KindId) -> Option<Time>,
    ) {
        if now <= self.busy_until {
            return;
        }
        self.busy_until = Time::NEVER;
        for (id, kind) in (0..).map(KindId).zip(&mut self.kinds) {
            let ratios = &mut kind.ratios;
            if ratios.len > 0 && ratios.has_paused(now, PAUSE) {
                match running_since(id).filter(|&since| !ratios.has_paused(since, PAUSE)) {
                    Some(_) => ratios.newest = now,
                    None => *ratios = Ratios::default(),
                }
            }
            if ratios.len > 0 {
                self.busy_until = self.busy_until.min(ratios.newest + PAUSE);
            }
        }
    }

    /// The slowdowns of all kinds of workers; empty while predictions keep to the profile.
    pub(crate) fn by_kind(&self, now: Time) -> impl Iterator<Item = Slowdown> {
        let kinds = self.kinds.iter().filter(|_| self.follows);
        kinds.map(move |kind| kind.at(now))
    }

    /// The slowdown of all batches on a kind of worker.
    pub(crate) fn of_kind(&self, now: Time, kind: KindId) -> Slowdown {
        let kind = self.kinds.get(kind.index());
        kind.map_or(Slowdown::NONE, |kind| kind.at(now))
    }

    /// The slowdown of a series; that of its kind while few of its batches ran lately.
    pub(crate) fn of_series(&self, now: Time, series: BatchSeries) -> Slowdown {
        if !self.follows {
            return Slowdown::NONE;
        }
        match self.series.get(&series.class()) {
            Some(ratios) if ratios.len >= LEAST && !ratios.is_stale(now) => ratios.published,
            _ => self.of_kind(now, series.kind),
        }
    }
}

// === impl BatchSeries ===

impl BatchSeries {
    /// Of requests that cost this much together, from their start to this exit.
    pub(crate) fn to_exit(
        catalog: &Catalog,
        kind: KindId,
        (variant, exit): (VariantId, ExitId),
        cost: Cost,
    ) -> Option<Self> {
        Some(Self {
            kind,
            variant,
            from_stage: 0,
            to_stage: catalog.variant(variant)?.exit(exit)?.after_stage,
            exit: Some(exit),
            size: cost.ceil(),
        })
    }

    /// By the profile, at this cost.
    pub(crate) fn latency(self, catalog: &Catalog, cost: Cost) -> Option<Micros> {
        let profile = &catalog.profile;
        profile.latency_of(
            self.kind,
            self.variant,
            self.from_stage,
            self.to_stage,
            self.exit,
            cost,
        )
    }

    fn class(self) -> Self {
        Self {
            size: self.size.max(1).ilog2(),
            ..self
        }
    }
}

// === impl KindRatios ===

impl KindRatios {
    fn at(&self, now: Time) -> Slowdown {
        match self.ratios.has_paused(now, PAUSE) {
            true => Slowdown::NONE,
            false => self.ratios.published,
        }
    }

    fn add(&mut self, now: Time, (profiled, observed): (Micros, Micros), percentile: f64) {
        // The time of the batch itself is no pause.
        if self.ratios.has_paused(now - observed, PAUSE) {
            self.ratios = Ratios::default();
        }
        if self.profiled == Micros::ZERO || now.since(self.since) > MEMORY {
            (self.profiled, self.observed, self.since) = (Micros::ZERO, Micros::ZERO, now);
        }
        self.profiled += profiled;
        self.observed += observed;
        if self.profiled < SPAN {
            return;
        }
        let ratio = Slowdown::between(self.profiled, self.observed);
        (self.profiled, self.observed) = (Micros::ZERO, Micros::ZERO);
        self.ratios.add(now, ratio, percentile);
    }
}

// === impl Ratios ===

impl Default for Ratios {
    fn default() -> Self {
        Self {
            kept: [(Time::ZERO, Slowdown::NONE); KEPT],
            len: 0,
            next: 0,
            published: Slowdown::NONE,
            newest: Time::ZERO,
        }
    }
}

impl Ratios {
    fn add(&mut self, now: Time, ratio: Slowdown, percentile: f64) {
        if self.is_stale(now) {
            *self = Self::default();
        }
        self.kept[self.next] = (now, ratio);
        self.next = (self.next + 1) % KEPT;
        self.len = (self.len + 1).min(KEPT);
        self.newest = now;
        if self.len < LEAST {
            return;
        }
        if self.is_near(self.published, now, percentile) {
            return;
        }
        let quantile = self.quantile(now, percentile);
        if quantile.is_far_from(self.published) {
            self.published = quantile;
        }
    }

    /// Whether the quantile is not far from `other`, by counting: sorting takes longer, and most
    /// batches change nothing.
    fn is_near(&self, other: Slowdown, now: Time, percentile: f64) -> bool {
        let far = other.0 / HYSTERESIS;
        let (least, most) = (other.0 - far, other.0 + far);
        let (mut recent, mut below, mut not_above) = (0, 0, 0);
        for &(at, Slowdown(ratio)) in &self.kept[..self.len] {
            let counts = usize::from(now.since(at) <= MEMORY);
            recent += counts;
            below += counts & usize::from(ratio < least);
            not_above += counts & usize::from(ratio <= most);
        }
        let rank = rank(recent, percentile);
        recent > 0 && below <= rank && rank < not_above
    }

    fn quantile(&self, now: Time, percentile: f64) -> Slowdown {
        let mut recent = [Slowdown::NONE; KEPT];
        let mut len = 0;
        for &(at, ratio) in &self.kept[..self.len] {
            if now.since(at) <= MEMORY {
                recent[len] = ratio;
                len += 1;
            }
        }
        let recent = &mut recent[..len];
        match len {
            0 => Slowdown::NONE,
            _ => *recent.select_nth_unstable(rank(len, percentile)).1,
        }
    }

    fn is_stale(&self, now: Time) -> bool {
        self.has_paused(now, MEMORY)
    }

    fn has_paused(&self, now: Time, pause: Micros) -> bool {
        self.len == 0 || now.since(self.newest) > pause
    }
}

/// The place of a percentile among this many sorted values.
fn rank(len: usize, percentile: f64) -> usize {
    let rank = ((len as f64) * percentile).ceil() as usize;
    rank.clamp(1, len.max(1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: BatchSeries = BatchSeries {
        kind: KindId(0),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        size: 4,
    };

    fn observed(estimates: &mut Estimates, from_ms: u64, count: u64, us: u64) {
        for i in 0..count {
            let at = Time::ZERO + Micros::from_millis(from_ms + i);
            estimates.observe(at, SERIES, Micros(1_000), Micros(us));
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Micros::from_millis(ms)
    }

    #[test]
    fn the_slowdown_follows_the_machine_and_returns() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        assert_eq!(estimates.of_series(at(0), SERIES), Slowdown::NONE);
        observed(&mut estimates, 0, 40, 1_800);
        let slowdown = estimates.of_series(at(40), SERIES);
        assert!((slowdown.ratio() - 1.8).abs() < 0.01, "{slowdown:?}");
        assert_eq!(slowdown.of(Micros(10_000)), Micros(17_998));
        let other = BatchSeries {
            variant: VariantId(9),
            ..SERIES
        };
        assert_eq!(estimates.of_series(at(40), other), slowdown, "by its kind");
        observed(&mut estimates, 100, 40, 1_000);
        assert_eq!(estimates.of_series(at(140), SERIES), Slowdown::NONE);
    }

    #[test]
    fn a_small_change_moves_nothing() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        observed(&mut estimates, 0, 40, 1_100);
        assert_eq!(estimates.of_series(at(40), SERIES), Slowdown::NONE);
    }

    #[test]
    fn one_stall_is_bounded_and_forgotten() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        observed(&mut estimates, 0, 10, 1_000_000);
        assert_eq!(estimates.of_series(at(10), SERIES), SLOWDOWN_MAX);
        assert_eq!(estimates.of_series(at(5_011), SERIES), Slowdown::NONE);
    }

    /// The load that made them slow may have ended with them; batches of a series are rarer.
    #[test]
    fn a_kind_without_batches_for_a_second_is_as_fast_as_profiled() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        observed(&mut estimates, 0, 40, 6_000);
        let kind = |at_ms| estimates.of_kind(at(at_ms), KindId(0)).ratio();
        assert!(kind(1_000) > 5.9);
        assert_eq!(kind(1_040), 1.0);
        assert!(estimates.of_series(at(1_040), SERIES).ratio() > 5.9);
        observed(&mut estimates, 1_100, 1, 6_000);
        let kind = estimates.of_kind(at(1_100), KindId(0));
        assert_eq!(kind, Slowdown::NONE, "of 8 batches at least");
    }

    #[test]
    fn a_forgotten_slowdown_does_not_come_back_with_the_next_batch() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        observed(&mut estimates, 0, 10, 8_000);
        observed(&mut estimates, 6_000, 1, 1_000);
        assert_eq!(estimates.of_series(at(6_000), SERIES), Slowdown::NONE);
        assert_eq!(estimates.of_kind(at(6_000), KindId(0)), Slowdown::NONE);
    }

    #[test]
    fn interruptions_of_short_batches_do_not_multiply_the_time_of_long_ones() {
        let mut estimates = Estimates::new(true, 0.95, 1);
        for i in 0..1_000 {
            let observed = Micros(if i % 10 == 0 { 325 } else { 25 });
            estimates.observe(at(i), SERIES, Micros(25), observed);
        }
        let now = at(1_000);
        assert_eq!(estimates.of_series(now, SERIES), SLOWDOWN_MAX);
        // 550 us for 250.
        let slowdown = estimates.of_kind(now, KindId(0)).ratio();
        assert!((slowdown - 2.2).abs() < 0.01, "{slowdown}");
    }

    #[test]
    fn it_can_be_switched_off() {
        let mut estimates = Estimates::new(false, 0.95, 1);
        observed(&mut estimates, 0, 40, 4_000);
        assert_eq!(estimates.of_series(at(40), SERIES), Slowdown::NONE);
    }

    /// Counting and sorting agree, also when some ratios are too old.
    #[test]
    fn a_slowdown_that_is_near_by_counting_is_near_by_its_quantile() {
        for percentile in [0.5, 0.9, 0.95, 1.0] {
            let mut ratios = Ratios::default();
            let (mut seed, mut ms) = (7_u64, 0);
            for step in 0..2_000 {
                ms += if step / 100 % 2 == 0 { 1 } else { 400 };
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let ratio = Slowdown(900 + ((seed >> 33) % 400) as u32);
                let now = at(ms);
                ratios.add(now, ratio, percentile);
                for other in [SLOWDOWN_MIN, Slowdown(1_000), Slowdown(1_150), SLOWDOWN_MAX] {
                    let near = !ratios.quantile(now, percentile).is_far_from(other);
                    assert_eq!(ratios.is_near(other, now, percentile), near, "{other:?}");
                }
            }
        }
    }
}
