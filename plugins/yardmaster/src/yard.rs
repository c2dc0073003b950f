//! A schedule in the making, and the figures that the search compares.

use std::cell::Cell;

use crate::forecast::Arrivals;
use crate::job::Jobs;
use crate::menu::Menu;
use crate::settings::YardmasterSettings;
use crate::slot::Slot;

/// A schedule in the making.
#[derive(Debug)]
pub(crate) struct Yard<'a> {
    pub(crate) menus: &'a [Menu],
    pub(crate) jobs: &'a Jobs,
    pub(crate) slots: Vec<Slot>,
    /// By job: it is in a batch of this schedule, or was answered.
    pub(crate) taken: Vec<bool>,
    /// Utilities that the search may still compute.
    pub(crate) nodes_left: Cell<u32>,
    /// Requests per lane that are looked at.
    pub(crate) depth: usize,
    /// Per lane.
    pub(crate) arrivals: Vec<Arrivals>,
    /// Lanes with arrivals, the shortest time from arrival to deadline first.
    pub(crate) arriving: Vec<usize>,
    /// By lane: its requests wait for more, to share a batch.
    pub(crate) held: Vec<bool>,
}

// === impl Yard ===

impl<'a> Yard<'a> {
    pub(crate) fn new(
        menus: &'a [Menu],
        jobs: &'a Jobs,
        slots: Vec<Slot>,
        arrivals: Vec<Arrivals>,
        settings: &YardmasterSettings,
    ) -> Self {
        let mut arriving: Vec<usize> = (0..arrivals.len()).collect();
        arriving.retain(|&lane| arrivals[lane].per_us > 0.0);
        let allowed_us = |lane: &usize| arrivals[*lane].allowed_us;
        arriving.sort_by(|a, b| allowed_us(a).total_cmp(&allowed_us(b)));
        Self {
            menus,
            taken: vec![false; jobs.list.len()],
            jobs,
            slots,
            nodes_left: Cell::new(settings.nodes_max),
            depth: settings.depth as usize,
            arrivals,
            arriving,
            held: vec![false; menus.len()],
        }
    }

    /// The jobs of a lane that are looked at, earliest deadline first.
    pub(crate) fn queue(&self, lane: usize) -> &'a [usize] {
        let queue = self.jobs.queues[lane].as_slice();
        &queue[..queue.len().min(self.depth)]
    }

    /// One of each kind of slot.
    pub(crate) fn unlike(&self, open: &[usize]) -> Vec<usize> {
        let mut samples: Vec<usize> = Vec::new();
        for &slot in open {
            if !samples
                .iter()
                .any(|&other| self.slots[other].is_like(&self.slots[slot]))
            {
                samples.push(slot);
            }
        }
        samples
    }

    /// The end, the slot, the choice and the size of the batch of at most `most` requests that ends first,
    /// each slot with its fastest choice.
    pub(crate) fn first_end(
        &self,
        menu: &Menu,
        slots: &[Slot],
        most: impl Fn(&Slot) -> usize,
        allows: u64,
    ) -> Option<(f64, usize, usize, usize)> {
        let mut first: Option<(f64, usize, usize, usize)> = None;
        for (at, slot) in slots.iter().enumerate() {
            // Fast path for many equal workers.
            let is_later = |(end_us, other, ..): (f64, usize, usize, usize)| {
                let other: &Slot = &slots[other];
                slot.free_us >= end_us || slot.free_us >= other.free_us && slot.is_like(other)
            };
            if first.is_some_and(is_later) {
                continue;
            }
            self.spend(2);
            if let Some((choice, size)) = slot.fastest(menu, most(slot), allows) {
                let end_us = slot.free_us + slot.time_us(&menu.choices[choice], size);
                if first.is_none_or(|(least_us, ..)| end_us < least_us) {
                    first = Some((end_us, at, choice, size));
                }
            }
        }
        first
    }

    /// The cost of jobs of a lane together, in usual requests of it.
    pub(crate) fn rows(&self, jobs: &[usize]) -> f64 {
        jobs.iter().map(|&at| self.jobs.list[at].rows).sum()
    }

    pub(crate) fn spend(&self, nodes: usize) {
        let left = self.nodes_left.get();
        self.nodes_left.set(left.saturating_sub(nodes as u32));
    }

    /// What a batch earns, less the price of its time.
    pub(crate) fn net(&self, slot: &Slot, lane: usize, choice: usize, members: &[usize]) -> f64 {
        let menu = &self.menus[lane];
        let (size, rows) = (members.len(), self.rows(members));
        let time_us = slot.time_of_us(&menu.choices[choice], size, rows);
        let end_us = slot.free_us + time_us;
        self.spend(members.len() + 2);
        let gains = members
            .iter()
            .map(|&at| self.jobs.gain(at, menu, choice, end_us));
        gains.sum::<f64>() - slot.price * time_us
    }
}
