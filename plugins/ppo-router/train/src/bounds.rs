//! The batch bounds that a network chose for each model (the paper's Figure 5).

use std::collections::BTreeMap;

use ppo_router_net::Decision;
use serde::{Deserialize, Serialize};

/// Number of slots by (minimum, maximum) batch.
type PairCounts = BTreeMap<(u32, u32), u64>;

/// The bounds of a model over the slots that began in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchBounds {
    /// The phase, from 0.
    pub phase: usize,
    /// The variant of the model.
    pub variant: String,
    /// Number of slots.
    pub slots: u64,
    /// Mean of the minimum batch.
    pub min_mean: f64,
    /// Mean of the maximum batch.
    pub max_mean: f64,
    /// Share of the slots by minimum batch.
    pub min_shares: BTreeMap<u32, f64>,
    /// Share of the slots by maximum batch.
    pub max_shares: BTreeMap<u32, f64>,
}

/// Number of slots by phase, model and chosen pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BoundCounts(BTreeMap<(usize, usize), PairCounts>);

// === impl BoundCounts ===

impl BoundCounts {
    /// Counts the bounds of a slot, if it has any.
    pub(crate) fn count(&mut self, phase: usize, decision: &Decision) {
        for (model, &pair) in decision.batches.iter().enumerate() {
            let pairs = self.0.entry((phase, model)).or_default();
            *pairs.entry(pair).or_default() += 1;
        }
    }

    /// Adds the slots of another simulation.
    pub(crate) fn add(&mut self, other: Self) {
        for (of, pairs) in other.0 {
            let all = self.0.entry(of).or_default();
            for (pair, slots) in pairs {
                *all.entry(pair).or_default() += slots;
            }
        }
    }

    /// The bounds by phase and model.
    pub(crate) fn bounds(&self, variants: &[String]) -> Vec<BatchBounds> {
        let of = |(&(phase, model), pairs): (&(usize, usize), &PairCounts)| {
            let slots: u64 = pairs.values().sum();
            let (mut min_shares, mut max_shares) = (BTreeMap::new(), BTreeMap::new());
            for (&(min, max), &chosen) in pairs {
                let share = chosen as f64 / slots as f64;
                *min_shares.entry(min).or_insert(0.0) += share;
                *max_shares.entry(max).or_insert(0.0) += share;
            }
            BatchBounds {
                phase,
                variant: variants[model].clone(),
                slots,
                min_mean: mean(&min_shares),
                max_mean: mean(&max_shares),
                min_shares,
                max_shares,
            }
        };
        self.0.iter().map(of).collect()
    }
}

fn mean(shares: &BTreeMap<u32, f64>) -> f64 {
    shares
        .iter()
        .map(|(&size, share)| f64::from(size) * share)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(pairs: &[(u32, u32)]) -> Decision {
        Decision {
            shares: Vec::new(),
            batches: pairs.to_vec(),
        }
    }

    #[test]
    fn bounds_are_counted_by_phase_and_model() {
        let (mut one, mut two) = (BoundCounts::default(), BoundCounts::default());
        one.count(0, &decision(&[(1, 5), (3, 3)]));
        one.count(1, &decision(&[(1, 1), (1, 1)]));
        two.count(0, &decision(&[(5, 5), (3, 3)]));
        one.add(two);
        let bounds = one.bounds(&["heavy".to_owned(), "light".to_owned()]);
        let of: Vec<_> = bounds
            .iter()
            .map(|b| (b.phase, &*b.variant, b.slots, b.min_mean, b.max_mean))
            .collect();
        let expected = [
            (0, "heavy", 2, 3.0, 5.0),
            (0, "light", 2, 3.0, 3.0),
            (1, "heavy", 1, 1.0, 1.0),
            (1, "light", 1, 1.0, 1.0),
        ];
        assert_eq!(of, expected);
        assert_eq!(
            bounds[0].min_shares,
            BTreeMap::from([(1, 0.5), (5, 0.5)]),
            "half of the slots each"
        );
    }

    #[test]
    fn without_batch_bounds_there_are_none() {
        let mut chosen = BoundCounts::default();
        chosen.count(0, &decision(&[]));
        assert_eq!(chosen.bounds(&[]), []);
    }
}
