//! Sets of workers: those that wait for something, and those with a property.

use crate::ids::WorkerId;

/// Workers that wait to be looked at, each once.
#[derive(Debug, Default)]
pub(super) struct MarkedWorkers {
    list: Vec<WorkerId>,
    is_marked: Vec<bool>,
}

/// Workers with a property, in the catalog's order.
#[derive(Debug, Default)]
pub(super) struct WorkerBits {
    words: Vec<u64>,
    len: usize,
}

// === impl MarkedWorkers ===

impl MarkedWorkers {
    /// Marks a worker; false: it was marked.
    pub(super) fn mark(&mut self, worker: WorkerId) -> bool {
        let at = worker.index();
        if at >= self.is_marked.len() {
            self.is_marked.resize(at + 1, false);
        }
        let is_new = !std::mem::replace(&mut self.is_marked[at], true);
        if is_new {
            self.list.push(worker);
        }
        is_new
    }

    pub(super) fn list(&self) -> &[WorkerId] {
        &self.list
    }

    pub(super) fn has(&self, worker: WorkerId) -> bool {
        self.is_marked.get(worker.index()).is_some_and(|&is| is)
    }

    pub(super) fn pop(&mut self) -> Option<WorkerId> {
        let worker = self.list.pop()?;
        self.is_marked[worker.index()] = false;
        Some(worker)
    }

    /// Unmarks a worker.
    pub(super) fn remove(&mut self, worker: WorkerId) {
        let is_marked = self.is_marked.get_mut(worker.index());
        if is_marked.is_some_and(std::mem::take) {
            self.list.retain(|&marked| marked != worker);
        }
    }
}

// === impl WorkerBits ===

impl WorkerBits {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn set(&mut self, worker: WorkerId, has: bool) {
        let (word, bit) = (worker.index() / 64, 1 << (worker.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let had = self.words[word] & bit != 0;
        if had != has {
            self.words[word] ^= bit;
            self.len = if has { self.len + 1 } else { self.len - 1 };
        }
    }

    /// In the catalog's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = WorkerId> + use<'_> {
        (0_u32..).zip(&self.words).flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(WorkerId(word * 64 + bit))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_marked_once() {
        let mut marked = MarkedWorkers::default();
        assert!(marked.mark(WorkerId(9)) && marked.mark(WorkerId(2)));
        assert!(!marked.mark(WorkerId(9)));
        marked.remove(WorkerId(9));
        marked.remove(WorkerId(100));
        assert_eq!(marked.list(), [WorkerId(2)]);
        assert_eq!(marked.pop(), Some(WorkerId(2)));
        assert!(marked.mark(WorkerId(2)) && marked.mark(WorkerId(9)));
    }

    #[test]
    fn bits_are_in_order() {
        let mut bits = WorkerBits::default();
        for worker in [70, 3, 64, 3, 0] {
            bits.set(WorkerId(worker), true);
        }
        bits.set(WorkerId(64), false);
        bits.set(WorkerId(5), false);
        let ids: Vec<u32> = bits.iter().map(|worker| worker.0).collect();
        assert_eq!((ids.as_slice(), bits.len()), (&[0, 3, 70][..], 3));
    }
}
