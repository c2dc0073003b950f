//! The variants that a worker holds and loads ahead of time: the executor's model cache in virtual
//! time, under the core's eviction rule ([`switchyard_core::residents`]).

use std::sync::Arc;

use switchyard_core::ids::VariantId;
use switchyard_core::residents::{Need, Residents, Soon};
use switchyard_core::time::{Micros, Time};

/// Size and load time of a variant on a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariantLoad {
    pub(super) bytes: u64,
    pub(super) time: Micros,
}

/// A worker's models, and its loader, which loads while batches run.
#[derive(Debug)]
pub(super) struct ModelMemory {
    residents: Residents<()>,
    loading: Option<LoadUnderWay>,
    soon: Soon,
    /// Position in `soon` of the next variant to try; each is tried once.
    next: usize,
}

/// Held by a running batch: its variant is not evicted for a load ahead of time.
#[derive(Debug)]
pub(super) struct VariantInUse(#[expect(dead_code, reason = "only its count is read")] Arc<()>);

#[derive(Clone, Copy, Debug)]
struct LoadUnderWay {
    variant: VariantId,
    time: Micros,
    end: Time,
}

// === impl ModelMemory ===

impl ModelMemory {
    pub(super) fn new(budget_bytes: u64) -> Self {
        Self {
            residents: Residents::new(budget_bytes),
            loading: None,
            soon: Soon::new(),
            next: 0,
        }
    }

    /// Makes a batch's variant resident; returns the time that this takes, zero if it was.
    pub(super) fn acquire(
        &mut self,
        now: Time,
        variant: VariantId,
        load: VariantLoad,
        soon: &[VariantId],
    ) -> (VariantInUse, Micros) {
        if let Some(held) = self.residents.touch(variant) {
            return (VariantInUse(held), Micros::ZERO);
        }
        let begun = self.loading.filter(|loading| loading.variant == variant);
        let wait = begun.map_or(load.time, |loading| loading.end.since(now));
        // A variant beyond the whole budget is never placed here; see `CheckedPlan`.
        let _ = self.residents.make_room(need(variant, load, soon));
        let held = Arc::new(());
        let in_use = VariantInUse(Arc::clone(&held));
        self.residents.insert(variant, load.bytes, load.time, held);
        (in_use, wait)
    }

    /// Takes the list of variants that are needed soon; returns the end of the load that begins for
    /// it, if one does.
    pub(super) fn prepare(
        &mut self,
        now: Time,
        soon: Soon,
        of: impl Fn(VariantId) -> VariantLoad,
    ) -> Option<Time> {
        self.soon = soon;
        self.next = 0;
        self.load_next(now, of)
    }

    /// Ends the load that is due; returns the end of the next one, if one begins.
    pub(super) fn loaded(
        &mut self,
        now: Time,
        of: impl Fn(VariantId) -> VariantLoad,
    ) -> Option<Time> {
        let LoadUnderWay { variant, time, .. } = self.loading.take_if(|l| l.end <= now)?;
        self.residents.end_load(variant, time, Arc::new(()));
        self.load_next(now, of)
    }

    /// One load at a time, like the executor's loader.
    fn load_next(&mut self, now: Time, of: impl Fn(VariantId) -> VariantLoad) -> Option<Time> {
        if self.loading.is_some() {
            return None;
        }
        while let Some(&variant) = self.soon.get(self.next) {
            let at = self.next;
            self.next += 1;
            if self.residents.contains(variant) {
                continue;
            }
            let load = of(variant);
            let need = need(variant, load, &self.soon);
            if self.residents.begin_load(need, at).is_ok() {
                let (time, end) = (load.time, now + load.time);
                self.loading = Some(LoadUnderWay { variant, time, end });
                return Some(end);
            }
        }
        None
    }

    pub(super) fn holds(&self, variant: VariantId) -> bool {
        self.residents.contains(variant)
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.residents.free_bytes()
    }

    /// The variants held, in the order of their ids.
    pub(super) fn variants(&self) -> Vec<VariantId> {
        self.residents.variants()
    }
}

fn need(variant: VariantId, load: VariantLoad, soon: &[VariantId]) -> Need<'_> {
    Need {
        variant,
        bytes: load.bytes,
        parked_bytes: 0,
        soon,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn load(bytes: u64) -> VariantLoad {
        VariantLoad {
            bytes,
            time: Micros(100),
        }
    }

    fn soon(variants: &[u32]) -> Soon {
        variants.iter().copied().map(VariantId).collect()
    }

    #[test]
    fn a_load_ahead_shortens_the_wait() {
        let mut memory = ModelMemory::new(100);
        let (running, wait) = memory.acquire(Time(0), VariantId(0), load(40), &[]);
        assert_eq!(wait, Micros(100));
        let end = memory.prepare(Time(200), soon(&[1]), |_| load(40));
        assert_eq!(end, Some(Time(300)));
        assert_eq!(memory.variants(), [VariantId(0)], "the load has not ended");
        assert_eq!(memory.free_bytes(), 20, "but its memory is reserved");
        let (_, wait) = memory.acquire(Time(270), VariantId(1), load(40), &[]);
        assert_eq!(wait, Micros(30));
        assert_eq!(memory.loaded(Time(300), |_| load(40)), None);
        assert_eq!(memory.variants(), [VariantId(0), VariantId(1)]);
        drop(running);
    }

    #[test]
    fn a_running_variant_is_not_evicted_for_a_load_ahead() {
        let mut memory = ModelMemory::new(100);
        let (running, _) = memory.acquire(Time(0), VariantId(0), load(60), &[]);
        assert_eq!(memory.prepare(Time(200), soon(&[1]), |_| load(60)), None);
        drop(running);
        let end = memory.prepare(Time(400), soon(&[1]), |_| load(60));
        assert_eq!(end, Some(Time(500)));
        memory.loaded(Time(500), |_| load(60));
        assert_eq!(memory.variants(), [VariantId(1)]);
    }

    #[test]
    fn a_load_ahead_is_evicted_for_a_batch() {
        let mut memory = ModelMemory::new(100);
        memory.prepare(Time(0), soon(&[1]), |_| load(60)).unwrap();
        memory.acquire(Time(10), VariantId(0), load(80), &[]);
        memory.loaded(Time(100), |_| load(60));
        assert_eq!(memory.variants(), [VariantId(0)]);
    }
}
