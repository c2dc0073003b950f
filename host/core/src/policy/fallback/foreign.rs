//! Batches that another policy may have placed. Such a batch may park its requests, which no window
//! shows.

use crate::catalog::Catalog;
use crate::window::{IDLE, Window};

/// The batches of each worker.
#[derive(Debug, Default)]
pub(super) struct ForeignBatches {
    /// The newest window.
    window: u64,
    workers: Vec<HeldBatches>,
}

/// The batches of one worker.
#[derive(Clone, Copy, Debug, Default)]
struct HeldBatches {
    /// At most this many run and wait.
    all: u32,
    /// At most this many of them are another policy's.
    foreign: u32,
}

// === impl ForeignBatches ===

impl ForeignBatches {
    /// Counts. Between two windows of the fallback, one after the other, no other policy places a batch; the
    /// host's own may start before those that wait. A window does not show the requests of a batch that
    /// failed, which are tried again one by one.
    pub(super) fn look(&mut self, window: &Window, catalog: &Catalog) {
        let is_next = window.id.checked_sub(self.window) == Some(1);
        self.window = window.id;
        // Before the first window there was no policy.
        let is_kept = self.workers.len() == catalog.workers.len() || window.id == 1;
        let is_known = is_next && is_kept;
        self.workers
            .resize(catalog.workers.len(), HeldBatches::default());
        let columns = &window.workers;
        let columns = columns.queued.iter().zip(&columns.running_variant);
        let workers = self.workers.iter_mut().zip(&catalog.workers);
        for ((held, spec), (&queued, &running)) in workers.zip(columns) {
            // With room for one batch more a worker shows as idle.
            let outstanding = spec.outstanding.max(1);
            let all = queued.saturating_add(outstanding - u32::from(running == IDLE));
            let foreign = match is_known {
                true => held.foreign.min(all),
                false => all,
            };
            *held = HeldBatches { all, foreign };
        }
    }

    /// The requests that the batches of a worker may park, if one of another policy parks at most
    /// `largest`: the fallback parks one request per batch.
    pub(super) fn may_park(&self, worker: usize, largest: u32) -> Option<usize> {
        let held = self.workers.get(worker)?;
        let own = held.all - held.foreign;
        Some(held.foreign as usize * largest as usize + own as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Capabilities, WorkerSpec};
    use crate::ids::KindId;
    use crate::time::Micros;
    use crate::window::Workers;

    fn catalog(outstanding: u32) -> Catalog {
        Catalog {
            workers: vec![WorkerSpec {
                name: "w0".to_owned(),
                kind: KindId(0),
                memory_bytes: 1,
                queue_max: 4,
                parked_max: 64,
                can: Capabilities::ALL,
                transfer: Micros::ZERO,
                outstanding,
            }],
            ..Catalog::default()
        }
    }

    /// The begin of the running batch, 0 without one, and the queue.
    fn window(id: u64, since: u64, queued: u32) -> Window {
        let workers = Workers {
            running_since: vec![since],
            running_variant: vec![if since == 0 { IDLE } else { 0 }],
            queued: vec![queued],
            ..Workers::default()
        };
        Window {
            id,
            workers,
            ..Window::default()
        }
    }

    #[test]
    fn batches_of_others_leave_at_the_latest_with_an_idle_worker() {
        let (catalog, mut batches) = (catalog(1), ForeignBatches::default());
        let mut look = |id, since, queued| {
            batches.look(&window(id, since, queued), &catalog);
            batches.may_park(0, 8)
        };
        assert_eq!(look(5, 10, 1), Some(16));
        // One may have ended, or one that the host holds.
        assert_eq!(look(6, 30, 1), Some(16));
        assert_eq!(look(7, 30, 2), Some(16 + 1));
        assert_eq!(look(8, 50, 0), Some(8));
        assert_eq!(look(9, 0, 0), Some(0));
        assert_eq!(look(10, 60, 1), Some(2));
        // Another policy has served a window.
        assert_eq!(look(12, 70, 0), Some(8));
    }

    #[test]
    fn without_a_policy_before_it_all_batches_are_the_fallbacks() {
        let (catalog, mut batches) = (catalog(3), ForeignBatches::default());
        for (id, queued, may_park) in [(1, 0, 2), (2, 1, 3), (3, 2, 4)] {
            batches.look(&window(id, 0, queued), &catalog);
            assert_eq!(batches.may_park(0, 8), Some(may_park));
        }
    }

    #[test]
    fn a_worker_with_several_batches_may_run_some_while_it_shows_as_idle() {
        let (catalog, mut batches) = (catalog(3), ForeignBatches::default());
        batches.look(&window(5, 0, 0), &catalog);
        assert_eq!(batches.may_park(0, 8), Some(16));
        batches.look(&window(6, 10, 1), &catalog);
        assert_eq!(batches.may_park(0, 8), Some(16 + 2));
    }
}
