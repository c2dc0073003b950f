//! Which variants a worker holds: the rule of the executor's model cache.

use switchyard_core::ids::VariantId;

/// Variants under a budget; the least recently used ones go first. Between batches nothing is
/// in use, so that all that is held may go (`Residents` in `host/executor/src/cache`).
#[derive(Debug)]
pub(super) struct Memory {
    budget_bytes: u64,
    held_bytes: u64,
    /// From least to most recently used. Workers hold few variants: a list beats a map.
    held: Vec<(VariantId, u64)>,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            held_bytes: 0,
            held: Vec::new(),
        }
    }

    /// Makes a variant the most recently used one; true when it had to be loaded.
    pub(super) fn acquire(&mut self, variant: VariantId, bytes: u64) -> bool {
        if let Some(at) = self.held.iter().position(|&(held, _)| held == variant) {
            self.held[at..].rotate_left(1);
            return false;
        }
        while self.held_bytes + bytes > self.budget_bytes && !self.held.is_empty() {
            self.held_bytes -= self.held.remove(0).1;
        }
        self.held.push((variant, bytes));
        self.held_bytes += bytes;
        true
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.budget_bytes.saturating_sub(self.held_bytes)
    }

    /// The variants held, in the order of their ids.
    pub(super) fn variants(&self) -> Vec<VariantId> {
        let mut variants: Vec<_> = self.held.iter().map(|&(variant, _)| variant).collect();
        variants.sort_unstable();
        variants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same cases as in `host/executor/src/cache/residents.rs`.
    #[test]
    fn the_least_recently_used_goes_first() {
        let mut memory = Memory::new(100);
        for (variant, bytes) in [(0, 40), (1, 30), (2, 30)] {
            assert!(memory.acquire(VariantId(variant), bytes));
        }
        assert!(!memory.acquire(VariantId(0), 40));
        assert!(memory.acquire(VariantId(3), 50));
        assert_eq!(memory.variants(), [VariantId(0), VariantId(3)]);
        assert_eq!(memory.free_bytes(), 10);
    }

    #[test]
    fn nothing_goes_when_there_is_room() {
        let mut memory = Memory::new(100);
        memory.acquire(VariantId(0), 40);
        memory.acquire(VariantId(1), 60);
        assert_eq!(memory.variants(), [VariantId(0), VariantId(1)]);
    }
}
