//! Which variants a worker holds within its memory budget, as bookkeeping without memory. The
//! executor's model cache and the simulator's workers both use it, so that the simulator evicts
//! the variants that the server would. The rule stands in `eviction`.

mod eviction;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::VariantId;
use crate::time::Micros;
use eviction::{Candidate, Candidates};

/// Most variants of waiting batches that a worker is told.
pub const SOON_MAX: usize = 8;

/// Variants of the batches that wait on a worker, in their order, each once. At most [`SOON_MAX`],
/// so that it takes no allocation.
pub type Soon = SmallVec<[VariantId; SOON_MAX]>;

/// Variants under a memory budget.
///
/// `T` stands for the resident model; an entry whose `Arc` has another holder is in use.
#[derive(Debug)]
pub struct Residents<T> {
    budget_bytes: u64,
    /// From least to most recently used. Workers hold few variants: a list beats a map.
    entries: Vec<ResidentEntry<T>>,
    pinned: Vec<VariantId>,
    /// Room kept for the one variant that is being loaded ahead of time.
    reserved: Option<(VariantId, u64)>,
    /// Worth of the variant that was evicted last; never falls.
    floor: u64,
}

/// A resident variant.
#[derive(Debug)]
struct ResidentEntry<T> {
    variant: VariantId,
    bytes: u64,
    /// Load time over size, see [`eviction::cost`].
    cost: u64,
    /// `floor + cost` at its last use.
    worth: u64,
    held: Arc<T>,
}

/// A request for room.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The variant that needs room.
    pub variant: VariantId,
    /// Its size.
    pub bytes: u64,
    /// Part of the budget taken by parked activations.
    pub parked_bytes: u64,
    /// Variants of the waiting batches.
    pub soon: &'a [VariantId],
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The most that evictions could free, with the bytes that are free already.
    pub free_bytes: u64,
}

/// Evicted variants, in the order of their eviction.
pub type Evicted = SmallVec<[VariantId; SOON_MAX]>;

// === impl Residents ===

impl<T> Residents<T> {
    /// An empty set under a budget.
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            entries: Vec::new(),
            pinned: Vec::new(),
            reserved: None,
            floor: 0,
        }
    }

    /// The budget in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Exempts this variant from eviction from now on.
    pub fn pin(&mut self, variant: VariantId) {
        if !self.pinned.contains(&variant) {
            self.pinned.push(variant);
        }
    }

    /// Whether the variant is exempt from eviction.
    pub fn is_pinned(&self, variant: VariantId) -> bool {
        self.pinned.contains(&variant)
    }

    /// Whether the variant is resident.
    pub fn contains(&self, variant: VariantId) -> bool {
        self.entries.iter().any(|entry| entry.variant == variant)
    }

    /// The model of a variant, which becomes the most recently used one.
    pub fn touch(&mut self, variant: VariantId) -> Option<Arc<T>> {
        let at = self.entries.iter().position(|e| e.variant == variant)?;
        self.entries[at..].rotate_left(1);
        let entry = self.entries.last_mut()?;
        entry.worth = self.floor.saturating_add(entry.cost);
        Some(Arc::clone(&entry.held))
    }

    /// Evicts until a variant that is needed now fits, or nothing at all if it cannot fit. A load
    /// ahead of time gives way last.
    ///
    /// # Errors
    /// The variants that may not be evicted leave too little room.
    pub fn make_room(&mut self, need: Need<'_>) -> Result<Evicted, NoRoom> {
        if self.reserved.is_some_and(|(v, _)| v == need.variant) {
            self.reserved = None; // The batch that needs it now loads it itself.
        }
        match self.evict(need, 0) {
            Err(_) if self.reserved.is_some() => {
                self.reserved = None;
                self.evict(need, 0)
            }
            result => result,
        }
    }

    /// Reserves room for a variant that will be needed, without evicting those needed sooner: the
    /// first `sooner` of [`Need::soon`]. One load at a time: a second one finds no room.
    ///
    /// # Errors
    /// There is no room.
    pub fn begin_load(&mut self, need: Need<'_>, sooner: usize) -> Result<Evicted, NoRoom> {
        if self.reserved.is_some() {
            return Err(NoRoom { free_bytes: 0 });
        }
        let evicted = self.evict(need, sooner)?;
        self.reserved = Some((need.variant, need.bytes));
        Ok(evicted)
    }

    /// Holds the model that was loaded ahead of time, as the most recently used variant. False when
    /// its room was given to another variant meanwhile.
    pub fn end_load(&mut self, variant: VariantId, load: Micros, held: Arc<T>) -> bool {
        match self.reserved {
            Some((reserved, bytes)) if reserved == variant => {
                self.reserved = None;
                self.insert(variant, bytes, load, held);
                true
            }
            _ => false,
        }
    }

    /// Gives the room of a failed load back.
    pub fn abandon_load(&mut self, variant: VariantId) {
        self.reserved = self.reserved.filter(|&(reserved, _)| reserved != variant);
    }

    /// Holds a variant as the most recently used one; `load` is its load time. There must be room.
    pub fn insert(&mut self, variant: VariantId, bytes: u64, load: Micros, held: Arc<T>) {
        debug_assert!(!self.contains(variant));
        let cost = eviction::cost(load, bytes);
        self.entries.push(ResidentEntry {
            variant,
            bytes,
            cost,
            worth: self.floor.saturating_add(cost),
            held,
        });
    }

    /// Drops a variant, pinned or not. Other holders of its `Arc` keep the model.
    pub fn remove(&mut self, variant: VariantId) -> Option<Arc<T>> {
        let at = self.entries.iter().position(|e| e.variant == variant)?;
        Some(self.entries.remove(at).held)
    }

    /// Drops all variants that are neither pinned nor in use.
    pub fn evict_idle(&mut self) -> Evicted {
        let idle = self.entries.iter().filter(|entry| self.may_go(entry, &[]));
        let idle: Evicted = idle.map(|entry| entry.variant).collect();
        self.entries.retain(|entry| !idle.contains(&entry.variant));
        idle
    }

    /// Replaces the model of a resident variant; returns the one before.
    pub fn replace(&mut self, variant: VariantId, held: Arc<T>) -> Option<Arc<T>> {
        let entry = self.entries.iter_mut().find(|e| e.variant == variant)?;
        Some(std::mem::replace(&mut entry.held, held))
    }

    /// The variants of `soon` that are not resident, with their positions there.
    pub fn missing<'a>(
        &'a self,
        soon: &'a [VariantId],
    ) -> impl Iterator<Item = (usize, VariantId)> + 'a {
        let missing = soon.iter().copied().enumerate();
        missing.filter(|&(_, variant)| !self.contains(variant))
    }

    /// Bytes of all resident variants, without loads under way.
    pub fn resident_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Bytes reserved for the load ahead of time.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved.map_or(0, |(_, bytes)| bytes)
    }

    /// Bytes of the budget that neither a resident variant nor a load takes.
    pub fn free_bytes(&self) -> u64 {
        let taken = self.resident_bytes() + self.reserved_bytes();
        self.budget_bytes.saturating_sub(taken)
    }

    /// The resident variants, in the order of their ids.
    pub fn variants(&self) -> Vec<VariantId> {
        let mut variants: Vec<_> = self.entries.iter().map(|entry| entry.variant).collect();
        variants.sort_unstable();
        variants
    }

    fn evict(&mut self, need: Need<'_>, sooner: usize) -> Result<Evicted, NoRoom> {
        let taken = need.parked_bytes + self.reserved_bytes();
        let limit = self.budget_bytes.saturating_sub(taken);
        let resident = self.resident_bytes();
        if resident + need.bytes <= limit {
            return Ok(Evicted::new());
        }
        let sooner = &need.soon[..sooner.min(need.soon.len())];
        let may_go = self.entries.iter().enumerate();
        let may_go = may_go.filter(|(_, entry)| self.may_go(entry, sooner));
        let mut candidates: Candidates = may_go
            .map(|(at, entry)| Candidate {
                at,
                bytes: entry.bytes,
                worth: entry.worth,
                needed: need.soon.iter().position(|&v| v == entry.variant),
            })
            .collect();
        let evictable: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
        let free_bytes = limit.saturating_sub(resident - evictable);
        if need.bytes > free_bytes {
            return Err(NoRoom { free_bytes });
        }
        eviction::choose(&mut candidates, resident + need.bytes - limit);
        let evicted = candidates.iter().map(|c| self.entries[c.at].variant);
        let evicted: Evicted = evicted.collect();
        for &variant in &evicted {
            if let Some(at) = self.entries.iter().position(|e| e.variant == variant) {
                self.floor = self.floor.max(self.entries.remove(at).worth);
            }
        }
        Ok(evicted)
    }

    fn may_go(&self, entry: &ResidentEntry<T>, sooner: &[VariantId]) -> bool {
        Arc::strong_count(&entry.held) == 1
            && !self.pinned.contains(&entry.variant)
            && !sooner.contains(&entry.variant)
    }
}

#[cfg(test)]
mod tests;
