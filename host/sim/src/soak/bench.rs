//! The workers' side of a case: batches that run, hang or were lost, and parked activations.

use std::collections::{BTreeSet, VecDeque};

use switchyard_core::event::{BatchEnd, Launch};
use switchyard_core::ids::{BatchId, RequestId};
use switchyard_core::time::{Micros, Time};

/// Batches of earlier incarnations that are remembered.
const OLD_MAX: usize = 4;

/// One worker.
#[derive(Debug)]
pub(super) struct Bench {
    /// The batch and its end.
    pub(super) running: Option<(Time, Launch)>,
    /// The batches behind it, and their times.
    pub(super) sent: VecDeque<(Micros, Launch)>,
    /// The batches that it had whenever it was counted as lost because the first did not end. They take
    /// places until they end.
    pub(super) hung: VecDeque<Launch>,
    /// The batch that ended last.
    pub(super) last: Option<BatchId>,
    /// Batches that it lost.
    pub(super) old: VecDeque<Launch>,
    /// Requests whose activations it holds.
    pub(super) parked: BTreeSet<RequestId>,
    /// Batches take this many times the profile's time.
    pub(super) factor: u64,
}

// === impl Bench ===

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            running: None,
            sent: VecDeque::new(),
            hung: VecDeque::new(),
            last: None,
            old: VecDeque::new(),
            parked: BTreeSet::new(),
            factor: 1,
        }
    }

    /// The worker is lost or begins anew: batches and activations are gone.
    pub(super) fn forget(&mut self) {
        let running = self.running.take().map(|(_, launch)| launch);
        let sent = self.sent.drain(..).map(|(_, launch)| launch);
        for launch in running.into_iter().chain(sent).chain(self.hung.drain(..)) {
            self.old.truncate(OLD_MAX - 1);
            self.old.push_front(launch);
        }
        self.parked.clear();
    }

    /// The batches that it runs and has behind them.
    pub(super) fn has(&self) -> impl Iterator<Item = &Launch> {
        let running = self.running.iter().map(|(_, launch)| launch);
        running.chain(self.sent.iter().map(|(_, launch)| launch))
    }

    /// Takes a batch in: it runs, or waits for those before it.
    pub(super) fn take_in(&mut self, now: Time, time: Micros, launch: Launch) {
        match self.running {
            None => self.running = Some((now + time, launch)),
            Some(_) => self.sent.push_back((time, launch)),
        }
    }

    /// The running batch leaves, and the next one runs.
    pub(super) fn next(&mut self, now: Time) -> Option<Launch> {
        let (_, launch) = self.running.take()?;
        if let Some((time, next)) = self.sent.pop_front() {
            self.running = Some((now + time, next));
        }
        Some(launch)
    }

    /// A batch ended: its requests are parked if no exit ran.
    pub(super) fn ended(&mut self, launch: &Launch, end: &BatchEnd) {
        self.last = Some(launch.batch);
        for &id in &launch.requests {
            match launch.exit.is_none() && *end == BatchEnd::Done {
                true => self.parked.insert(id),
                false => self.parked.remove(&id),
            };
        }
    }

    /// Its batches count as lost, and may still end.
    pub(super) fn give_up(&mut self) {
        let running = self.running.take().map(|(_, launch)| launch);
        let sent = self.sent.drain(..).map(|(_, launch)| launch);
        self.hung.extend(running.into_iter().chain(sent));
    }

    /// Its batch does not end.
    pub(super) fn hang(&mut self) {
        if let Some((end, _)) = &mut self.running {
            *end = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::cost::Cost;
    use switchyard_core::ids::{VariantId, WorkerId};

    use super::*;

    fn launch(batch: u64) -> Launch {
        Launch {
            batch: BatchId(batch),
            worker: WorkerId(0),
            variant: VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: None,
            requests: [RequestId(batch)].into_iter().collect(),
            cost: Cost::ONE,
            soon: Default::default(),
        }
    }

    #[test]
    fn a_worker_lost_again_still_has_its_hung_batches() {
        let mut bench = Bench::new();
        for batch in 1..=3 {
            bench.take_in(Time::ZERO, Micros(1), launch(batch));
            if batch > 1 {
                bench.give_up();
            }
        }
        let hung = bench.hung.iter().map(|launch| launch.batch.0);
        assert_eq!(hung.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
