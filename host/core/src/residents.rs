//! Which variants a worker holds within its budget, and which of them goes next: bookkeeping
//! only. The executor's model cache and the simulator's workers both live by it, so that what is
//! simulated is what is served.
//!
//! The rule, when room is needed:
//! 1. What is pinned or in use never goes.
//! 2. What the batches that wait on the worker will need goes last, and of it first what is
//!    needed latest (Belady, "A study of replacement algorithms", 1966).
//! 3. Everything else goes by its worth, lowest first: `floor + load time / bytes` at its last
//!    use, where `floor` is the worth of what went last (Cao and Irani's GreedyDual-Size,
//!    "Cost-aware WWW proxy caching algorithms", 1997). A variant that is slow to load for its
//!    size outlives a quick one, but not for ever. Among equals the least recently used goes.
//! 4. What in the end need not go for the room to suffice stays, the worthiest first.

use std::cmp::Reverse;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::VariantId;
use crate::time::Micros;

/// Variants that a worker is told of ahead of time, at most.
pub const SOON_MAX: usize = 8;

/// What the batches that wait on a worker need, in their order, each variant once. Never more
/// than [`SOON_MAX`], so that it takes no allocation.
pub type Soon = SmallVec<[VariantId; SOON_MAX]>;

/// Load times are divided by bytes in integers: in units of 2^-20 us per byte.
const WORTH_BITS: u32 = 20;

/// Variants under a memory budget.
///
/// `T` is whatever being resident means; an entry whose `Arc` is held outside is in use.
#[derive(Debug)]
pub struct Residents<T> {
    budget_bytes: u64,
    /// From least to most recently used. Workers hold few variants: a list beats a map.
    entries: Vec<Entry<T>>,
    pinned: Vec<VariantId>,
    /// Room kept for the one variant that is being loaded ahead of time.
    reserved: Option<(VariantId, u64)>,
    /// Worth of what was evicted last; never falls.
    floor: u64,
}

#[derive(Debug)]
struct Entry<T> {
    variant: VariantId,
    bytes: u64,
    /// What its load costs for its size.
    cost: u64,
    /// `floor + cost` when it was used last.
    worth: u64,
    held: Arc<T>,
}

/// Room for a variant.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// Whose.
    pub variant: VariantId,
    /// What it takes.
    pub bytes: u64,
    /// Part of the budget that something else than models takes.
    pub parked_bytes: u64,
    /// What the batches that wait will need.
    pub soon: &'a [VariantId],
}

/// There is no room: what could be had at most, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Budget beside what may not go.
    pub free_bytes: u64,
}

/// Variants that had to go, in the order they went.
pub type Evicted = SmallVec<[VariantId; SOON_MAX]>;

// === impl Residents ===

impl<T> Residents<T> {
    /// Nothing yet, under a budget.
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            entries: Vec::new(),
            pinned: Vec::new(),
            reserved: None,
            floor: 0,
        }
    }

    /// The budget.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Never evicts this variant from now on.
    pub fn pin(&mut self, variant: VariantId) {
        if !self.pinned.contains(&variant) {
            self.pinned.push(variant);
        }
    }

    /// Whether the variant is never evicted.
    pub fn is_pinned(&self, variant: VariantId) -> bool {
        self.pinned.contains(&variant)
    }

    /// Whether the variant is here.
    pub fn contains(&self, variant: VariantId) -> bool {
        self.entries.iter().any(|entry| entry.variant == variant)
    }

    /// What is held for a variant, which thereby becomes the most recently used.
    pub fn touch(&mut self, variant: VariantId) -> Option<Arc<T>> {
        let at = self.entries.iter().position(|e| e.variant == variant)?;
        self.entries[at..].rotate_left(1);
        let entry = self.entries.last_mut()?;
        entry.worth = self.floor.saturating_add(entry.cost);
        Some(Arc::clone(&entry.held))
    }

    /// Evicts until a variant that is needed now fits, or nothing at all when it never can. A
    /// load ahead of time gives way when nothing else does.
    ///
    /// # Errors
    /// What may not go leaves too little.
    pub fn make_room(&mut self, need: Need<'_>) -> Result<Evicted, NoRoom> {
        if self.reserved.is_some_and(|(v, _)| v == need.variant) {
            self.reserved = None; // Whoever needs it now loads it itself.
        }
        match self.evict(need, 0) {
            Err(_) if self.reserved.is_some() => {
                self.reserved = None;
                self.evict(need, 0)
            }
            result => result,
        }
    }

    /// Reserves room for a variant that will be needed, without evicting what is needed sooner:
    /// the first `sooner` of [`Need::soon`]. One load at a time: a second one finds no room.
    ///
    /// # Errors
    /// There is none.
    pub fn begin_load(&mut self, need: Need<'_>, sooner: usize) -> Result<Evicted, NoRoom> {
        if self.reserved.is_some() {
            return Err(NoRoom { free_bytes: 0 });
        }
        let evicted = self.evict(need, sooner)?;
        self.reserved = Some((need.variant, need.bytes));
        Ok(evicted)
    }

    /// Holds what was loaded ahead of time, as the most recently used variant. False when its
    /// room was given to something else meanwhile.
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

    /// Gives the room of a load back that came to nothing.
    pub fn abandon_load(&mut self, variant: VariantId) {
        self.reserved = self.reserved.filter(|&(reserved, _)| reserved != variant);
    }

    /// Holds a variant that takes this long to load, as the most recently used one. There must
    /// be room.
    pub fn insert(&mut self, variant: VariantId, bytes: u64, load: Micros, held: Arc<T>) {
        debug_assert!(!self.contains(variant));
        let cost = (u128::from(load.0) << WORTH_BITS) / u128::from(bytes.max(1));
        // Half of the range: the floor may grow by it.
        let cost = u64::try_from(cost).unwrap_or(u64::MAX).min(u64::MAX >> 1);
        self.entries.push(Entry {
            variant,
            bytes,
            cost,
            worth: self.floor.saturating_add(cost),
            held,
        });
    }

    /// Lets go of a variant, pinned or not; whoever uses it keeps it until done.
    pub fn remove(&mut self, variant: VariantId) -> Option<Arc<T>> {
        let at = self.entries.iter().position(|e| e.variant == variant)?;
        Some(self.entries.remove(at).held)
    }

    /// Lets go of everything that is neither pinned nor in use.
    pub fn evict_idle(&mut self) -> Evicted {
        let idle = self.entries.iter().filter(|entry| self.may_go(entry, &[]));
        let idle: Evicted = idle.map(|entry| entry.variant).collect();
        self.entries.retain(|entry| !idle.contains(&entry.variant));
        idle
    }

    /// Holds something else for a variant that is here; returns what was held before.
    pub fn replace(&mut self, variant: VariantId, held: Arc<T>) -> Option<Arc<T>> {
        let entry = self.entries.iter_mut().find(|e| e.variant == variant)?;
        Some(std::mem::replace(&mut entry.held, held))
    }

    /// What of `soon` is not here, with its position there: what is worth loading ahead.
    pub fn missing<'a>(
        &'a self,
        soon: &'a [VariantId],
    ) -> impl Iterator<Item = (usize, VariantId)> + 'a {
        let missing = soon.iter().copied().enumerate();
        missing.filter(|&(_, variant)| !self.contains(variant))
    }

    /// Bytes of all that is held, without what is being loaded.
    pub fn resident_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Bytes that a load ahead of time will take.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved.map_or(0, |(_, bytes)| bytes)
    }

    /// Budget that neither a model nor a load takes.
    pub fn free_bytes(&self) -> u64 {
        let taken = self.resident_bytes() + self.reserved_bytes();
        self.budget_bytes.saturating_sub(taken)
    }

    /// The variants held, in the order of their ids.
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
        let mut candidates: SmallVec<[usize; 16]> = (0..self.entries.len())
            .filter(|&i| self.may_go(&self.entries[i], sooner))
            .collect();
        let may_go: u64 = candidates.iter().map(|&i| self.entries[i].bytes).sum();
        let free_bytes = limit.saturating_sub(resident - may_go);
        if need.bytes > free_bytes {
            return Err(NoRoom { free_bytes });
        }
        candidates.sort_by_key(|&i| {
            let entry = &self.entries[i];
            let wanted = need.soon.iter().position(|&v| v == entry.variant);
            (wanted.map(Reverse), entry.worth, i)
        });
        // `None` sorts before `Some`: what nobody waits for goes first.
        let excess = resident + need.bytes - limit;
        let mut freed = 0;
        candidates.retain(|&mut i| {
            let goes = freed < excess;
            freed += if goes { self.entries[i].bytes } else { 0 };
            goes
        });
        let mut spared = freed - excess;
        for at in (0..candidates.len()).rev() {
            let bytes = self.entries[candidates[at]].bytes;
            if bytes <= spared {
                spared -= bytes;
                candidates.remove(at);
            }
        }
        let evicted = candidates.iter().map(|&i| self.entries[i].variant);
        let evicted: Evicted = evicted.collect();
        for &variant in &evicted {
            if let Some(at) = self.entries.iter().position(|e| e.variant == variant) {
                self.floor = self.floor.max(self.entries.remove(at).worth);
            }
        }
        Ok(evicted)
    }

    fn may_go(&self, entry: &Entry<T>, sooner: &[VariantId]) -> bool {
        Arc::strong_count(&entry.held) == 1
            && !self.pinned.contains(&entry.variant)
            && !sooner.contains(&entry.variant)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holding(budget_bytes: u64, variants: &[(u32, u64)]) -> Residents<()> {
        let mut residents = Residents::new(budget_bytes);
        for &(variant, bytes) in variants {
            residents.insert(VariantId(variant), bytes, Micros::ZERO, Arc::new(()));
        }
        residents
    }

    fn ids(variants: &[u32]) -> Vec<VariantId> {
        variants.iter().copied().map(VariantId).collect()
    }

    fn need(bytes: u64, soon: &[VariantId]) -> Need<'_> {
        Need {
            variant: VariantId(99),
            bytes,
            parked_bytes: 0,
            soon,
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
        residents.touch(VariantId(0)).unwrap();
        let evicted = residents.make_room(need(50, &[])).unwrap();
        assert_eq!(evicted.to_vec(), ids(&[1, 2]));
        assert_eq!(residents.variants(), ids(&[0]));
        assert_eq!(residents.resident_bytes(), 40);
    }

    #[test]
    fn what_is_idle_is_what_is_neither_pinned_nor_in_use() {
        let mut residents = holding(100, &[(0, 40), (1, 30), (2, 20), (3, 10)]);
        residents.pin(VariantId(2));
        let used = residents.touch(VariantId(1)).unwrap();
        assert_eq!(residents.evict_idle().to_vec(), ids(&[0, 3]));
        assert_eq!(residents.variants(), ids(&[1, 2]));
        drop(used);
        assert_eq!(residents.evict_idle().to_vec(), ids(&[1]));
        assert_eq!(residents.free_bytes(), 80);
    }

    #[test]
    fn nothing_goes_when_there_is_room() {
        let mut residents = holding(100, &[(0, 40)]);
        assert!(residents.make_room(need(60, &[])).unwrap().is_empty());
    }

    #[test]
    fn parked_bytes_are_not_room() {
        let mut residents = holding(100, &[(0, 40), (1, 10)]);
        let need = Need {
            parked_bytes: 20,
            ..need(50, &[])
        };
        assert_eq!(residents.make_room(need).unwrap().to_vec(), ids(&[0]));
    }

    #[test]
    fn pinned_and_used_variants_stay() {
        let mut residents = holding(100, &[(0, 40), (1, 30), (2, 30)]);
        residents.pin(VariantId(0));
        let _in_use = residents.touch(VariantId(1)).unwrap();
        let refused = residents.make_room(need(31, &[]));
        assert_eq!(refused, Err(NoRoom { free_bytes: 30 }));
        assert_eq!(residents.variants(), ids(&[0, 1, 2]), "nothing went for it");
        let evicted = residents.make_room(need(30, &[])).unwrap();
        assert_eq!(evicted.to_vec(), ids(&[2]));
    }

    #[test]
    fn what_is_needed_soon_goes_last_and_latest_first() {
        let mut residents = holding(90, &[(0, 30), (1, 30), (2, 30)]);
        let soon = ids(&[0, 1]);
        let evicted = residents.make_room(need(30, &soon)).unwrap();
        assert_eq!(evicted.to_vec(), ids(&[2]));
        residents.insert(VariantId(3), 30, Micros::ZERO, Arc::new(()));
        let evicted = residents.make_room(need(60, &soon)).unwrap();
        assert_eq!(evicted.to_vec(), ids(&[3, 1]));
    }

    #[test]
    fn what_is_slow_to_load_outlives_a_quick_one_of_its_size_but_not_for_ever() {
        let mut residents = Residents::new(100);
        residents.insert(VariantId(0), 50, Micros(1_000), Arc::new(()));
        residents.insert(VariantId(1), 50, Micros(400), Arc::new(()));
        for round in 0..4 {
            let evicted = residents.make_room(need(50, &[])).unwrap();
            if evicted.to_vec() == ids(&[0]) {
                assert!(round > 1, "it went as if its load were quick");
                return;
            }
            residents.insert(VariantId(round + 2), 50, Micros(400), Arc::new(()));
        }
        panic!("a variant that nobody uses stays for ever");
    }

    #[test]
    fn what_need_not_go_in_the_end_stays() {
        let mut residents = holding(100, &[(0, 10), (1, 60), (2, 30)]);
        let evicted = residents.make_room(need(60, &[])).unwrap();
        assert_eq!(evicted.to_vec(), ids(&[1]), "without it 0 went for nothing");
    }

    #[test]
    fn a_load_ahead_takes_no_room_of_what_is_needed_sooner_and_gives_way() {
        let mut residents = holding(100, &[(0, 60), (1, 30)]);
        let soon = ids(&[0, 7]);
        let ahead = Need {
            variant: VariantId(7),
            ..need(50, &soon)
        };
        assert_eq!(
            residents.begin_load(ahead, 1),
            Err(NoRoom { free_bytes: 40 })
        );
        let small = Need { bytes: 40, ..ahead };
        assert_eq!(residents.begin_load(small, 1).unwrap().to_vec(), ids(&[1]));
        assert_eq!(
            (residents.reserved_bytes(), residents.free_bytes()),
            (40, 0)
        );
        residents.make_room(need(90, &[])).unwrap();
        let late = residents.end_load(VariantId(7), Micros::ZERO, Arc::new(()));
        assert!(!late, "its room was given away");
        assert_eq!(residents.variants(), ids(&[]));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Use(u32),
        Ahead(Vec<u32>),
        Loaded,
        Hold(u32),
        Drop,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..8u32).prop_map(Step::Use),
            prop::collection::vec(0..8u32, 0..4).prop_map(Step::Ahead),
            Just(Step::Loaded),
            (0..8u32).prop_map(Step::Hold),
            Just(Step::Drop),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        /// Whatever happens: never above the budget, nothing pinned or in use goes, nothing
        /// needed soon goes while something else could have.
        #[test]
        fn the_rule_holds(
            sizes in prop::collection::vec(1..60u64, 8),
            loads in prop::collection::vec(0..1_000u64, 8),
            soon in prop::collection::vec(0..8u32, 0..4),
            pinned in 0..8u32,
            steps in steps(),
        ) {
            let mut residents: Residents<()> = Residents::new(100);
            residents.pin(VariantId(pinned));
            let soon = ids(&soon);
            let mut in_use: Option<(VariantId, Arc<()>)> = None;
            let mut loading: Option<VariantId> = None;
            for step in steps {
                let before: Vec<_> = residents.variants();
                let mut evicted = Evicted::new();
                let mut listed = soon.clone();
                match step {
                    Step::Use(v) => {
                        let variant = VariantId(v);
                        if residents.touch(variant).is_none() {
                            let bytes = sizes[v as usize];
                            let need = Need { variant, bytes, parked_bytes: 0, soon: &soon };
                            if let Ok(gone) = residents.make_room(need) {
                                evicted = gone;
                                let load = Micros(loads[v as usize]);
                                residents.insert(variant, bytes, load, Arc::new(()));
                            }
                        }
                    }
                    Step::Ahead(variants) => {
                        listed = ids(&variants);
                        let first = residents.missing(&listed).next();
                        if let Some((at, variant)) = first {
                            let bytes = sizes[variant.index()];
                            let need = Need { variant, bytes, parked_bytes: 0, soon: &listed };
                            if let Ok(gone) = residents.begin_load(need, at) {
                                evicted = gone;
                                loading = Some(variant);
                            }
                            for sooner in &listed[..at] {
                                prop_assert!(!evicted.contains(sooner), "{sooner:?} is needed sooner");
                            }
                        }
                    }
                    Step::Loaded => {
                        if let Some(variant) = loading.take() {
                            let load = Micros(loads[variant.index()]);
                            residents.end_load(variant, load, Arc::new(()));
                        }
                    }
                    Step::Hold(v) => {
                        if let Some(held) = residents.touch(VariantId(v)) {
                            in_use = Some((VariantId(v), held));
                        }
                    }
                    Step::Drop => in_use = None,
                }
                let taken = residents.resident_bytes() + residents.reserved_bytes();
                prop_assert!(taken <= 100, "{taken} bytes of 100");
                prop_assert!(!evicted.contains(&VariantId(pinned)), "it was pinned");
                if let Some((used, _)) = &in_use {
                    prop_assert!(!evicted.contains(used), "it was in use");
                }
                if evicted.iter().any(|gone| listed.contains(gone)) {
                    // Then all that nobody waits for was too little, or has gone as well.
                    let left = before.iter().filter(|v| {
                        !evicted.contains(v)
                            && !listed.contains(v)
                            && **v != VariantId(pinned)
                            && in_use.as_ref().is_none_or(|(used, _)| used != *v)
                    });
                    let left: u64 = left.map(|v| sizes[v.index()]).sum();
                    let smallest = evicted.iter().filter(|gone| listed.contains(gone));
                    let smallest = smallest.map(|v| sizes[v.index()]).min().unwrap();
                    prop_assert!(
                        left < smallest,
                        "{left} bytes that nobody waits for stayed, {evicted:?} went for {listed:?}"
                    );
                }
            }
        }
    }
}
