//! Which variants a worker holds and what it loads ahead of time: the executor's model cache in
//! virtual time, under the core's rule ([`switchyard_core::residents`]).

use std::sync::Arc;

use switchyard_core::ids::VariantId;
use switchyard_core::residents::{Need, Residents, Soon};
use switchyard_core::time::{Micros, Time};

/// Size and load time of a variant on this worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) bytes: u64,
    pub(super) time: Micros,
}

/// A worker's model memory, and the thread that loads beside its batches.
#[derive(Debug)]
pub(super) struct Memory {
    residents: Residents<()>,
    loading: Option<Loading>,
    soon: Soon,
    /// Position in `soon` of what is looked at next: each is tried once.
    next: usize,
}

/// Held by a running batch: what it runs is not evicted for a load ahead of time.
#[derive(Debug)]
pub(super) struct InUse(#[expect(dead_code, reason = "its count is what matters")] Arc<()>);

#[derive(Clone, Copy, Debug)]
struct Loading {
    variant: VariantId,
    time: Micros,
    end: Time,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(budget_bytes: u64) -> Self {
        Self {
            residents: Residents::new(budget_bytes),
            loading: None,
            soon: Soon::new(),
            next: 0,
        }
    }

    /// What a batch needs now: the time until it is there, zero when it was.
    pub(super) fn acquire(
        &mut self,
        now: Time,
        variant: VariantId,
        load: Load,
        soon: &[VariantId],
    ) -> (InUse, Micros) {
        if let Some(held) = self.residents.touch(variant) {
            return (InUse(held), Micros::ZERO);
        }
        let begun = self.loading.filter(|loading| loading.variant == variant);
        let wait = begun.map_or(load.time, |loading| loading.end.since(now));
        // A variant beyond the whole budget is never placed here; see `plan::checked`.
        let _ = self.residents.make_room(need(variant, load, soon));
        let held = Arc::new(());
        let in_use = InUse(Arc::clone(&held));
        self.residents.insert(variant, load.bytes, load.time, held);
        (in_use, wait)
    }

    /// Takes a list of what is needed soon; when the load that begins for it, if any, ends.
    pub(super) fn prepare(
        &mut self,
        now: Time,
        soon: Soon,
        of: impl Fn(VariantId) -> Load,
    ) -> Option<Time> {
        self.soon = soon;
        self.next = 0;
        self.load_next(now, of)
    }

    /// The load that was to end now has ended; when the next one does.
    pub(super) fn loaded(&mut self, now: Time, of: impl Fn(VariantId) -> Load) -> Option<Time> {
        let Loading { variant, time, .. } = self.loading.take_if(|l| l.end <= now)?;
        self.residents.end_load(variant, time, Arc::new(()));
        self.load_next(now, of)
    }

    /// One load at a time, as the executor's loader thread does it.
    fn load_next(&mut self, now: Time, of: impl Fn(VariantId) -> Load) -> Option<Time> {
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
                self.loading = Some(Loading { variant, time, end });
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

fn need(variant: VariantId, load: Load, soon: &[VariantId]) -> Need<'_> {
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

    fn load(bytes: u64) -> Load {
        Load {
            bytes,
            time: Micros(100),
        }
    }

    fn soon(variants: &[u32]) -> Soon {
        variants.iter().copied().map(VariantId).collect()
    }

    #[test]
    fn a_load_ahead_shortens_the_wait_by_the_time_it_had() {
        let mut memory = Memory::new(100);
        let (running, wait) = memory.acquire(Time(0), VariantId(0), load(40), &[]);
        assert_eq!(wait, Micros(100));
        let end = memory.prepare(Time(200), soon(&[1]), |_| load(40));
        assert_eq!(end, Some(Time(300)));
        assert_eq!(memory.variants(), [VariantId(0)], "it is not there yet");
        assert_eq!(memory.free_bytes(), 20, "but its room is taken");
        let (_, wait) = memory.acquire(Time(270), VariantId(1), load(40), &[]);
        assert_eq!(wait, Micros(30));
        assert_eq!(memory.loaded(Time(300), |_| load(40)), None);
        assert_eq!(memory.variants(), [VariantId(0), VariantId(1)]);
        drop(running);
    }

    #[test]
    fn what_runs_is_not_evicted_for_what_comes_next() {
        let mut memory = Memory::new(100);
        let (running, _) = memory.acquire(Time(0), VariantId(0), load(60), &[]);
        assert_eq!(memory.prepare(Time(200), soon(&[1]), |_| load(60)), None);
        drop(running);
        let end = memory.prepare(Time(400), soon(&[1]), |_| load(60));
        assert_eq!(end, Some(Time(500)));
        memory.loaded(Time(500), |_| load(60));
        assert_eq!(memory.variants(), [VariantId(1)]);
    }

    #[test]
    fn a_load_ahead_that_gave_way_comes_to_nothing() {
        let mut memory = Memory::new(100);
        memory.prepare(Time(0), soon(&[1]), |_| load(60)).unwrap();
        memory.acquire(Time(10), VariantId(0), load(80), &[]);
        memory.loaded(Time(100), |_| load(60));
        assert_eq!(memory.variants(), [VariantId(0)]);
    }
}
