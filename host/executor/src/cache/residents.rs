//! Which variants a worker holds, within its budget: bookkeeping only.

use std::sync::Arc;

use switchyard_core::ids::VariantId;

/// Variants under a memory budget, the least recently used ones first to go.
///
/// `T` is whatever being resident means; an entry whose `Arc` is held outside is in use and is
/// never evicted.
#[derive(Debug)]
pub(crate) struct Residents<T> {
    budget_bytes: u64,
    /// From least to most recently used. Workers hold few variants: a list beats a map.
    entries: Vec<Entry<T>>,
    pinned: Vec<VariantId>,
}

#[derive(Debug)]
struct Entry<T> {
    variant: VariantId,
    bytes: u64,
    held: Arc<T>,
}

/// There is no room: what could be had at most, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    pub(crate) free_bytes: u64,
}

// === impl Residents ===

impl<T> Residents<T> {
    pub(crate) fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            entries: Vec::new(),
            pinned: Vec::new(),
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Never evicts this variant from now on.
    pub(crate) fn pin(&mut self, variant: VariantId) {
        if !self.pinned.contains(&variant) {
            self.pinned.push(variant);
        }
    }

    /// What is held for a variant, which thereby becomes the most recently used.
    pub(crate) fn touch(&mut self, variant: VariantId) -> Option<Arc<T>> {
        let at = self.entries.iter().position(|e| e.variant == variant)?;
        self.entries[at..].rotate_left(1);
        self.entries.last().map(|entry| Arc::clone(&entry.held))
    }

    /// Evicts until `bytes` fit beside `reserved_bytes`, or nothing at all when they never can.
    /// Returns the evicted variants, in the order they went.
    pub(crate) fn make_room(
        &mut self,
        bytes: u64,
        reserved_bytes: u64,
    ) -> Result<Vec<VariantId>, NoRoom> {
        let limit = self.budget_bytes.saturating_sub(reserved_bytes);
        let fixed: u64 = self
            .entries
            .iter()
            .filter(|entry| !self.evictable(entry))
            .map(|entry| entry.bytes)
            .sum();
        let free_bytes = limit.saturating_sub(fixed);
        if bytes > free_bytes {
            return Err(NoRoom { free_bytes });
        }
        let mut evicted = Vec::new();
        while self.resident_bytes() + bytes > limit {
            let Some(at) = self.entries.iter().position(|entry| self.evictable(entry)) else {
                break;
            };
            evicted.push(self.entries.remove(at).variant);
        }
        Ok(evicted)
    }

    /// Holds a variant, as the most recently used one. There must be room.
    pub(crate) fn insert(&mut self, variant: VariantId, bytes: u64, held: Arc<T>) {
        debug_assert!(self.entries.iter().all(|entry| entry.variant != variant));
        self.entries.push(Entry {
            variant,
            bytes,
            held,
        });
    }

    /// Bytes of all that is held.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The variants held, in the order of their ids.
    pub(crate) fn variants(&self) -> Vec<VariantId> {
        let mut variants: Vec<_> = self.entries.iter().map(|entry| entry.variant).collect();
        variants.sort_unstable();
        variants
    }

    fn evictable(&self, entry: &Entry<T>) -> bool {
        Arc::strong_count(&entry.held) == 1 && !self.pinned.contains(&entry.variant)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn holding(budget_bytes: u64, variants: &[(u32, u64)]) -> Residents<()> {
        let mut residents = Residents::new(budget_bytes);
        for &(variant, bytes) in variants {
            residents.insert(VariantId(variant), bytes, Arc::new(()));
        }
        residents
    }

    fn ids(variants: &[u32]) -> Vec<VariantId> {
        variants.iter().copied().map(VariantId).collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
        residents.touch(VariantId(0)).unwrap();
        assert_eq!(residents.make_room(50, 0).unwrap(), ids(&[1, 2]));
        assert_eq!(residents.variants(), ids(&[0]));
        assert_eq!(residents.resident_bytes(), 40);
    }

    #[test]
    fn nothing_goes_when_there_is_room() {
        let mut residents = holding(100, &[(0, 40)]);
        assert_eq!(residents.make_room(60, 0).unwrap(), ids(&[]));
    }

    #[test]
    fn reserved_bytes_are_not_room() {
        let mut residents = holding(100, &[(0, 40), (1, 10)]);
        assert_eq!(residents.make_room(50, 20).unwrap(), ids(&[0]));
    }

    #[test]
    fn pinned_and_used_variants_stay() {
        let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
        residents.pin(VariantId(0));
        let _in_use = residents.touch(VariantId(1)).unwrap();
        assert_eq!(residents.make_room(31, 0), Err(NoRoom { free_bytes: 30 }));
        assert_eq!(
            residents.variants(),
            ids(&[0, 1, 2]),
            "a refusal evicts nothing"
        );
        assert_eq!(residents.make_room(30, 0).unwrap(), ids(&[2]));
    }
}
