//! The least of many keys, of which few change between two questions.

/// The key of an entry that does not count.
pub(super) const ABSENT: u64 = u64::MAX;

/// A tree over numbered keys. A change takes as many steps as the number of keys has binary digits.
#[derive(Debug)]
pub(super) struct LeastTree {
    /// The root is at 1, the children of `at` are at `2 * at` and `2 * at + 1`, the last half are leaves.
    keys: Vec<u64>,
}

// === impl LeastTree ===

impl LeastTree {
    /// With this number of entries, none of which counts.
    pub(super) fn new(entries: usize) -> Self {
        Self {
            keys: vec![ABSENT; 2 * entries.next_power_of_two()],
        }
    }

    pub(super) fn set(&mut self, entry: usize, key: u64) {
        let mut at = self.keys.len() / 2 + entry;
        self.keys[at] = key;
        while at > 1 {
            at /= 2;
            let least = self.keys[2 * at].min(self.keys[2 * at + 1]);
            if self.keys[at] == least {
                break;
            }
            self.keys[at] = least;
        }
    }

    /// The least key, [`ABSENT`] without one.
    pub(super) fn least(&self) -> u64 {
        self.keys[1]
    }

    /// The first entry whose key is at most this.
    pub(super) fn first_within(&self, most: u64) -> Option<usize> {
        let leaves = self.keys.len() / 2;
        if self.least() > most || self.least() == ABSENT {
            return None;
        }
        let mut at = 1;
        while at < leaves {
            at *= 2;
            at += usize::from(self.keys[at] > most);
        }
        Some(at - leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_a_list_of_keys() {
        let mut seed = 1_u64;
        let mut random = move |bound: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for entries in [1, 2, 3, 7, 64, 100] {
            let (mut tree, mut list) = (LeastTree::new(entries), vec![ABSENT; entries]);
            for _ in 0..500 {
                assert_eq!(tree.least(), list.iter().copied().min().unwrap());
                let most = random(30);
                let first = list.iter().position(|&key| key <= most);
                assert_eq!(tree.first_within(most), first);
                let (entry, key) = (random(entries as u64) as usize, random(25));
                let key = if key < 5 { ABSENT } else { key };
                tree.set(entry, key);
                list[entry] = key;
            }
        }
    }
}
