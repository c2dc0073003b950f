//! The slots of a fleet: which of its servers has which slot. No clock and no I/O.

use crate::members::{Member, MemberName, Members};

/// The slots of a fleet, and the server of each.
#[derive(Debug)]
pub(crate) struct Slots(Vec<Slot>);

#[derive(Clone, Debug)]
struct Slot {
    state: SlotState,
    /// The server that it has, or had last.
    server: Option<(MemberName, Member)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    Taken,
    /// Its server is listed no longer, or is another incarnation; batches may still run there.
    Leaving,
}

/// A slot that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlotChange {
    /// It has this server from now on.
    Joins(usize, Member),
    /// Its server takes no more batches.
    Leaves(usize),
}

// === impl Slots ===

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        let free = Slot {
            state: SlotState::Free,
            server: None,
        };
        Self(vec![free; count])
    }

    /// These servers are listed now. A server keeps its slot; one that comes back takes its old slot if
    /// that is free, and others the first free one. Another incarnation takes the slot of its name once
    /// the one before has left it.
    pub(crate) fn list(&mut self, listed: &Members) -> Vec<SlotChange> {
        let mut changes = Vec::new();
        for (at, slot) in self.0.iter_mut().enumerate() {
            let Some((name, server)) = &mut slot.server else {
                continue;
            };
            match (slot.state, listed.get(name)) {
                (SlotState::Taken, now) if now != Some(&*server) => {
                    slot.state = SlotState::Leaving;
                    changes.push(SlotChange::Leaves(at));
                }
                (SlotState::Leaving, Some(now)) if *now == *server => {
                    slot.state = SlotState::Taken;
                    changes.push(SlotChange::Joins(at, now.clone()));
                }
                (SlotState::Free, Some(now)) => {
                    slot.state = SlotState::Taken;
                    server.clone_from(now);
                    changes.push(SlotChange::Joins(at, now.clone()));
                }
                _ => {}
            }
        }
        for (name, server) in listed {
            if self.of(name).is_some() {
                continue;
            }
            let free = self.0.iter().position(|slot| slot.state == SlotState::Free);
            let Some(at) = free else {
                break;
            };
            self.0[at] = Slot {
                state: SlotState::Taken,
                server: Some((name.clone(), server.clone())),
            };
            changes.push(SlotChange::Joins(at, server.clone()));
        }
        changes
    }

    /// The slots whose server leaves.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = usize> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(at, slot)| (slot.state == SlotState::Leaving).then_some(at))
    }

    /// No batch runs any more at the server that leaves a slot: it is free.
    pub(crate) fn drained(&mut self, at: usize) {
        if let Some(slot) = self.0.get_mut(at)
            && slot.state == SlotState::Leaving
        {
            slot.state = SlotState::Free;
        }
    }

    /// The slot that a server has.
    pub(crate) fn of(&self, name: &MemberName) -> Option<usize> {
        let is_its = |(held, _): &(MemberName, Member)| held == name;
        let has =
            |slot: &Slot| slot.state != SlotState::Free && slot.server.as_ref().is_some_and(is_its);
        self.0.iter().position(has)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::address::RemoteAddress;

    fn name(last: u8) -> MemberName {
        MemberName::Address(SocketAddr::from(([10, 0, 0, last], 8001)))
    }

    fn server((last, incarnation): (u8, u64)) -> Member {
        let address = RemoteAddress::named(&format!("10.0.0.{last}"));
        Member {
            address,
            incarnation,
        }
    }

    fn members(listed: &[(u8, u64)]) -> Members {
        let member = |&(last, incarnation)| (name(last), server((last, incarnation)));
        listed.iter().map(member).collect()
    }

    fn listed(lasts: &[u8]) -> Members {
        let first: Vec<_> = lasts.iter().map(|last| (*last, 0)).collect();
        members(&first)
    }

    fn joins(at: usize, last: u8) -> SlotChange {
        SlotChange::Joins(at, server((last, 0)))
    }

    #[test]
    fn servers_come_and_go_and_come_back() {
        use SlotChange::Leaves;
        let mut slots = Slots::new(2);
        let came = slots.list(&listed(&[2, 1]));
        assert_eq!(came, [joins(0, 1), joins(1, 2)]);
        assert_eq!(slots.list(&listed(&[1, 2])), []);
        // Without a free slot a third one waits, also while batches run at one that leaves.
        assert_eq!(slots.list(&listed(&[1, 2, 3])), []);
        assert_eq!(slots.list(&listed(&[2, 3])), [Leaves(0)]);
        assert_eq!(slots.list(&listed(&[2, 3])), []);
        slots.drained(0);
        assert_eq!(slots.list(&listed(&[2, 3])), [joins(0, 3)]);
        // One that comes back before it is drained keeps its slot.
        assert_eq!(slots.list(&listed(&[3])), [Leaves(1)]);
        assert_eq!(slots.list(&listed(&[2, 3])), [joins(1, 2)]);
        slots.drained(1);
        assert_eq!(slots.of(&name(2)), Some(1), "it is not leaving");
    }

    #[test]
    fn a_server_that_comes_back_takes_its_old_slot() {
        let mut slots = Slots::new(3);
        slots.list(&listed(&[1, 2]));
        slots.list(&listed(&[]));
        slots.drained(0);
        slots.drained(1);
        assert_eq!(slots.list(&listed(&[2])), [joins(1, 2)]);
        assert_eq!(slots.list(&listed(&[2, 9])), [joins(0, 9)]);
    }

    #[test]
    fn another_incarnation_takes_the_slot_of_its_name_after_the_one_before() {
        use SlotChange::{Joins, Leaves};
        let mut slots = Slots::new(2);
        slots.list(&members(&[(1, 7), (2, 7)]));
        let now = members(&[(1, 7), (2, 8)]);
        assert_eq!(slots.list(&now), [Leaves(1)]);
        assert_eq!(slots.list(&now), [], "batches may run at the one before");
        slots.drained(1);
        assert_eq!(slots.list(&now), [Joins(1, server((2, 8)))]);
        // The one before comes back in between.
        assert_eq!(slots.list(&members(&[(1, 9), (2, 8)])), [Leaves(0)]);
        let back = slots.list(&members(&[(1, 7), (2, 8)]));
        assert_eq!(back, [Joins(0, server((1, 7)))]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_server_has_two_slots_and_no_slot_changes_without_need(
            count in 1_usize..5,
            steps in prop::collection::vec(
                (
                    prop::collection::vec((0_u8..8, 0_u64..3), 0..8),
                    prop::collection::vec(0_usize..5, 0..3),
                ),
                1..40,
            ),
        ) {
            let mut slots = Slots::new(count);
            for (lasts, drained) in steps {
                let before: Vec<_> = (0..8).map(|last| slots.of(&name(last))).collect();
                let listed = members(&lasts);
                let changes = slots.list(&listed);
                let mut changed: Vec<_> = changes.iter().map(|change| match change {
                    SlotChange::Joins(at, _) | SlotChange::Leaves(at) => *at,
                }).collect();
                changed.sort_unstable();
                changed.dedup();
                prop_assert_eq!(changed.len(), changes.len(), "a slot changes once");
                let held: Vec<_> = (0..8).filter_map(|last| slots.of(&name(last))).collect();
                let distinct: BTreeSet<_> = held.iter().collect();
                prop_assert_eq!(distinct.len(), held.len(), "a slot has one server");
                let taken: Vec<_> =
                    slots.0.iter().filter(|slot| slot.state != SlotState::Free).collect();
                let names = taken.iter().filter_map(|slot| Some(&slot.server.as_ref()?.0));
                let names: BTreeSet<_> = names.collect();
                prop_assert_eq!(names.len(), taken.len(), "a server has one slot");
                for slot in taken.iter().filter(|slot| slot.state == SlotState::Taken) {
                    let (name, server) = slot.server.as_ref().unwrap();
                    prop_assert_eq!(listed.get(name), Some(server), "batches go to no other one");
                }
                // A server that stays keeps its slot.
                for (last, before) in (0..8).zip(before) {
                    if before.is_some() {
                        prop_assert_eq!(slots.of(&name(last)), before);
                    }
                }
                // A free slot is left only if no server waits.
                let is_full = slots.0.iter().all(|slot| slot.state != SlotState::Free);
                prop_assert!(is_full || listed.keys().all(|name| slots.of(name).is_some()));
                prop_assert_eq!(slots.list(&listed), vec![], "the same list again changes nothing");
                for at in drained {
                    slots.drained(at);
                }
            }
        }
    }
}
