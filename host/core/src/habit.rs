//! The batches that a policy makes of an app's requests.

use crate::capacity::EfficientBatch;
use crate::ids::{ExitId, VariantId};
use crate::time::Micros;

/// Of the decaying largest latency of an app's batches, each batch takes one part in this many off.
const USUAL_DECAY: u64 = 8;

/// Of an app's margin, each batch that needs none takes one part in this many off.
const MARGIN_DECAY: u64 = 8;

/// An app's batches so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    /// The batch that it gets usually.
    pub(crate) usual: EfficientBatch,
    /// The time that its pending requests need for their batches not to be cut short.
    pub(crate) margin: Micros,
    /// The largest batch that the policy has made.
    pub(crate) largest: u32,
    first: Option<(VariantId, ExitId)>,
    /// The policy has used several exits, so it may turn to a faster one.
    adapts: bool,
}

// === impl Habit ===

impl Habit {
    /// Another policy makes the batches.
    pub(crate) fn forget_policy(&mut self) {
        *self = Self {
            usual: self.usual,
            ..Self::default()
        };
    }

    /// Notes a planned batch.
    pub(crate) fn planned(&mut self, batch: EfficientBatch) {
        let usual = &mut self.usual;
        usual.latency = Micros(usual.latency.0 - usual.latency.0 / USUAL_DECAY);
        if batch.latency >= usual.latency {
            *usual = batch;
        }
    }

    /// Notes the size and the exit of a batch of the policy.
    pub(crate) fn made(&mut self, size: u32, exit: (VariantId, ExitId)) {
        self.largest = self.largest.max(size);
        self.adapts |= *self.first.get_or_insert(exit) != exit;
    }

    /// The policy has used several exits for the app.
    pub(crate) fn adapts(&self) -> bool {
        self.adapts
    }

    /// Whether a batch through this exit that came too late shows that the oldest requests cost
    /// goodput. A policy that has faster exits left may turn to them instead.
    pub(crate) fn teaches(&self, exit: (VariantId, ExitId), fastest: (VariantId, ExitId)) -> bool {
        !self.adapts || exit == fastest
    }

    /// A batch needed this time, or was not cut short.
    pub(crate) fn needed(&mut self, time: Option<Micros>) {
        let decayed = Micros(self.margin.0 - self.margin.0.div_ceil(MARGIN_DECAY));
        self.margin = time.map_or(decayed, |time| time.max(self.margin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: (VariantId, ExitId) = (VariantId(0), ExitId(0));
    const FAST: (VariantId, ExitId) = (VariantId(1), ExitId(0));

    #[test]
    fn only_policies_without_a_faster_exit_teach_a_margin() {
        let mut habit = Habit::default();
        habit.made(4, SLOW);
        assert!(habit.teaches(SLOW, FAST), "it has used no other");
        habit.made(8, FAST);
        assert!(!habit.teaches(SLOW, FAST) && habit.teaches(FAST, FAST));
        assert_eq!(habit.largest, 8);
        habit.forget_policy();
        assert!(habit.teaches(SLOW, FAST));
    }

    #[test]
    fn a_margin_fades() {
        let mut habit = Habit::default();
        habit.needed(Some(Micros(800)));
        habit.needed(Some(Micros(100)));
        assert_eq!(habit.margin, Micros(800));
        habit.needed(None);
        assert_eq!(habit.margin, Micros(700));
        (0..100).for_each(|_| habit.needed(None));
        assert_eq!(habit.margin, Micros(0));
    }
}
