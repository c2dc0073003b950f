//! The slots of a name: which of its addresses has which slot. No clock and no I/O.

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The slots of a name, and the address of each.
#[derive(Debug)]
pub(crate) struct Slots(Vec<Slot>);

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: SlotState,
    /// The address that it has, or had last.
    address: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    Taken,
    /// The name lists its address no longer, and batches may still run there.
    Leaving,
}

/// A slot that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotChange {
    /// It has this address from now on.
    Joins(usize, SocketAddr),
    /// Its address takes no more batches.
    Leaves(usize),
}

// === impl Slots ===

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        let free = Slot {
            state: SlotState::Free,
            address: None,
        };
        Self(vec![free; count])
    }

    /// The name lists these addresses now. An address keeps its slot; one that comes back takes its old
    /// slot if that is free, and others the first free one.
    pub(crate) fn list(&mut self, listed: &BTreeSet<SocketAddr>) -> Vec<SlotChange> {
        let mut changes = Vec::new();
        for (at, slot) in self.0.iter_mut().enumerate() {
            let Some(address) = slot.address else {
                continue;
            };
            match (slot.state, listed.contains(&address)) {
                (SlotState::Taken, false) => {
                    slot.state = SlotState::Leaving;
                    changes.push(SlotChange::Leaves(at));
                }
                (SlotState::Leaving | SlotState::Free, true) => {
                    slot.state = SlotState::Taken;
                    changes.push(SlotChange::Joins(at, address));
                }
                _ => {}
            }
        }
        for address in listed {
            if self.of(address).is_some() {
                continue;
            }
            let free = self.0.iter().position(|slot| slot.state == SlotState::Free);
            let Some(at) = free else {
                break;
            };
            self.0[at] = Slot {
                state: SlotState::Taken,
                address: Some(*address),
            };
            changes.push(SlotChange::Joins(at, *address));
        }
        changes
    }

    /// The slots whose address leaves.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = usize> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(at, slot)| (slot.state == SlotState::Leaving).then_some(at))
    }

    /// No batch runs any more at the address that leaves a slot: it is free.
    pub(crate) fn drained(&mut self, at: usize) {
        if let Some(slot) = self.0.get_mut(at)
            && slot.state == SlotState::Leaving
        {
            slot.state = SlotState::Free;
        }
    }

    /// The slot that an address has.
    pub(crate) fn of(&self, address: &SocketAddr) -> Option<usize> {
        let has = |slot: &Slot| slot.state != SlotState::Free && slot.address == Some(*address);
        self.0.iter().position(has)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 8001))
    }

    fn listed(lasts: &[u8]) -> BTreeSet<SocketAddr> {
        lasts.iter().copied().map(address).collect()
    }

    #[test]
    fn addresses_come_and_go_and_come_back() {
        use SlotChange::{Joins, Leaves};
        let mut slots = Slots::new(2);
        let came = slots.list(&listed(&[2, 1]));
        assert_eq!(came, [Joins(0, address(1)), Joins(1, address(2))]);
        assert_eq!(slots.list(&listed(&[1, 2])), []);
        // Without a free slot a third one waits, also while batches run at one that leaves.
        assert_eq!(slots.list(&listed(&[1, 2, 3])), []);
        assert_eq!(slots.list(&listed(&[2, 3])), [Leaves(0)]);
        assert_eq!(slots.list(&listed(&[2, 3])), []);
        slots.drained(0);
        assert_eq!(slots.list(&listed(&[2, 3])), [Joins(0, address(3))]);
        // One that comes back before it is drained keeps its slot.
        assert_eq!(slots.list(&listed(&[3])), [Leaves(1)]);
        assert_eq!(slots.list(&listed(&[2, 3])), [Joins(1, address(2))]);
        slots.drained(1);
        assert_eq!(slots.of(&address(2)), Some(1), "it is not leaving");
    }

    #[test]
    fn an_address_that_comes_back_takes_its_old_slot() {
        let mut slots = Slots::new(3);
        slots.list(&listed(&[1, 2]));
        slots.list(&listed(&[]));
        slots.drained(0);
        slots.drained(1);
        let came = slots.list(&listed(&[2]));
        assert_eq!(came, [SlotChange::Joins(1, address(2))]);
        let came = slots.list(&listed(&[2, 9]));
        assert_eq!(came, [SlotChange::Joins(0, address(9))]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_address_has_two_slots_and_no_slot_changes_without_need(
            count in 1_usize..5,
            steps in prop::collection::vec(
                (prop::collection::vec(0_u8..8, 0..8), prop::collection::vec(0_usize..5, 0..3)),
                1..40,
            ),
        ) {
            let mut slots = Slots::new(count);
            for (lasts, drained) in steps {
                let before: Vec<_> = (0..8).map(|last| slots.of(&address(last))).collect();
                let listed = listed(&lasts);
                let changes = slots.list(&listed);
                let mut changed: Vec<_> = changes.iter().map(|change| match change {
                    SlotChange::Joins(at, _) | SlotChange::Leaves(at) => *at,
                }).collect();
                changed.sort_unstable();
                changed.dedup();
                prop_assert_eq!(changed.len(), changes.len(), "a slot changes once");
                let held: Vec<_> = (0..8).filter_map(|last| slots.of(&address(last))).collect();
                let distinct: BTreeSet<_> = held.iter().collect();
                prop_assert_eq!(distinct.len(), held.len(), "a slot has one address");
                let taken = slots.0.iter().filter(|slot| slot.state != SlotState::Free);
                let addresses: BTreeSet<_> = taken.clone().filter_map(|slot| slot.address).collect();
                prop_assert_eq!(addresses.len(), taken.count(), "an address has one slot");
                // An address that stays keeps its slot.
                for (last, before) in (0..8).zip(before) {
                    if before.is_some() {
                        prop_assert_eq!(slots.of(&address(last)), before);
                    }
                }
                // A free slot is left only if no address waits.
                let is_full = slots.0.iter().all(|slot| slot.state != SlotState::Free);
                prop_assert!(is_full || listed.iter().all(|at| slots.of(at).is_some()));
                prop_assert_eq!(slots.list(&listed), vec![], "the same list again changes nothing");
                for at in drained {
                    slots.drained(at);
                }
            }
        }
    }
}
