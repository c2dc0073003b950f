//! A worker's state after the batches that a schedule places on it.

use switchyard_sdk::{VariantId, Window, WorkerId, WorkerRef};

use crate::classes::Classes;
use crate::menu::{Choice, Menu, at_rows};

/// Largest number of variants that [`Residents`] tells apart.
const VARIANTS_MAX: usize = 256;

/// A set of variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Residents([u64; VARIANTS_MAX / 64]);

/// When a worker is free and which variants it holds then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) worker: WorkerId,
    pub(crate) class: usize,
    /// Time from now.
    pub(crate) free_us: f64,
    /// Factor of profiled latencies.
    pub(crate) factor: f64,
    /// The price of a microsecond here.
    pub(crate) price: f64,
    residents: Residents,
    memory_left_bytes: u64,
    memory_bytes: u64,
}

// === impl Slot ===

impl Slot {
    /// A worker at the start of a window; `price` is that of a microsecond at speed 1.
    pub(crate) fn new(
        worker: WorkerRef<'_>,
        window: &Window,
        classes: &Classes,
        price: f64,
        margin: f64,
    ) -> Self {
        let catalog = window.catalog();
        let class = classes.of[worker.id().index()];
        let mut residents = Residents::default();
        for variant in catalog
            .variants()
            .filter(|variant| worker.holds(variant.id))
        {
            residents.insert(variant.id);
        }
        Self {
            worker: worker.id(),
            class,
            free_us: worker.free_at_us().saturating_sub(window.now_us()) as f64,
            factor: worker.slowdown() * (1.0 + margin),
            price: price * classes.speeds[class],
            residents,
            memory_left_bytes: worker.free_memory_bytes(),
            memory_bytes: catalog.worker(worker.id()).memory_bytes,
        }
    }

    /// Latency of a batch of usual requests, with the load time of its variant; infinite if it cannot run here.
    pub(crate) fn time_us(&self, choice: &Choice, size: usize) -> f64 {
        self.time_of_us(choice, size, size as f64)
    }

    /// The same of requests that cost as much together as `rows` usual ones.
    pub(crate) fn time_of_us(&self, choice: &Choice, size: usize, rows: f64) -> f64 {
        let cost = &choice.costs[self.class];
        if size > cost.latencies_us.len() {
            return f64::INFINITY;
        }
        let latency_us = at_rows(&cost.latencies_us, rows);
        let is_resident = self.residents.contains(choice.variant);
        let load_us = if is_resident { 0.0 } else { cost.load_us };
        latency_us * self.factor + load_us
    }

    /// Largest batch of a choice; 0 if it cannot run here.
    pub(crate) fn batch_max(&self, choice: &Choice) -> usize {
        choice.costs[self.class].latencies_us.len()
    }

    /// The choice with the least latency of a batch of `most` requests or the largest below.
    pub(crate) fn fastest(&self, menu: &Menu, most: usize, allowed: u64) -> Option<(usize, usize)> {
        let quickest = menu.quickest(self.class, most)?;
        let choice = &menu.choices[quickest.0];
        // Fast path: mostly the variant is resident.
        if allowed & (1 << quickest.0) != 0 && self.residents.contains(choice.variant) {
            return Some(quickest);
        }
        let choices = menu.choices.iter().enumerate();
        let times = choices
            .filter(|(at, _)| allowed & (1 << at) != 0)
            .filter_map(|(at, choice)| {
                let size = self.batch_max(choice).min(most);
                (size > 0).then(|| (self.time_us(choice, size) / size as f64, at, size))
            });
        times
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, at, size)| (at, size))
    }

    /// Places a batch. If memory is short, all other variants are assumed evicted: the window does not
    /// tell the host's choice.
    pub(crate) fn place(&mut self, choice: &Choice, size: usize, rows: f64) {
        self.free_us += self.time_of_us(choice, size, rows);
        if self.residents.contains(choice.variant) {
            return;
        }
        if choice.memory_bytes > self.memory_left_bytes {
            self.residents = Residents::default();
            self.memory_left_bytes = self.memory_bytes;
        }
        self.memory_left_bytes = self.memory_left_bytes.saturating_sub(choice.memory_bytes);
        self.residents.insert(choice.variant);
    }

    /// Whether a batch takes the same time on both.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.class == other.class && self.residents == other.residents
    }
}

// === impl Residents ===

impl Residents {
    /// Whether a variant is in the set. Variants past the largest number count as resident.
    fn contains(&self, variant: VariantId) -> bool {
        let at = variant.index();
        at >= VARIANTS_MAX || self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn insert(&mut self, variant: VariantId) {
        let at = variant.index();
        if at < VARIANTS_MAX {
            self.0[at / 64] |= 1 << (at % 64);
        }
    }
}
