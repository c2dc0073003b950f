//! How long the lists of a plan can be. Longer ones are refused before they are copied: copying takes
//! time on the driver that the budget of the call does not count.
//!
//! The bounds allow every plan that the core could accept, and small wrong ones, which the core
//! refuses with a better reason.

use switchyard_core::catalog::Catalog;
use switchyard_core::window::Window;

/// Every list may be this long: copying that takes microseconds.
const LENGTH_FLOOR: usize = 1_024;

/// Bytes that every answer may have.
const BYTES_FLOOR: usize = 1 << 20;

/// Bytes of one decision: a row, an id in one of three lists, and a reason. The host keeps 256 bytes
/// of a reason; authors need not know that exactly.
const DECISION_BYTES: usize = 64 + 3 * 8 + 1_024;

/// Bytes of one lane or route.
const LANE_BYTES: usize = 64;

/// Bounds that depend on the catalog only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogBounds {
    routes: usize,
    /// Of one route: each exit on each worker.
    lanes: usize,
    /// Requests of the largest batch.
    batch: usize,
}

/// The largest plan that can answer one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanBounds {
    /// Entries of each list that names requests, or batches of requests.
    pub(crate) requests: usize,
    pub(crate) revokes: usize,
    pub(crate) routes: usize,
    /// Of one route.
    pub(crate) lanes: usize,
    /// Bytes of all lists together.
    pub(crate) bytes: usize,
}

// === impl CatalogBounds ===

impl CatalogBounds {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        let exits: usize = catalog.variants.iter().map(|v| v.exits.len()).sum();
        let batches = catalog.variants.iter().map(|v| v.max_batch as usize);
        Self {
            routes: catalog.apps.len(),
            lanes: catalog.workers.len().saturating_mul(exits),
            batch: batches.max().unwrap_or(0),
        }
    }

    /// The bounds in one window, never more than `bytes_max` bytes.
    pub(crate) fn in_window(&self, window: &Window, bytes_max: usize) -> PlanBounds {
        let queued: usize = window.workers.queued.iter().map(|&q| q as usize).sum();
        // A plan may take queued batches back and decide about their requests anew.
        let taken_back = queued.saturating_mul(self.batch);
        let requests = (window.requests.id.len()).saturating_add(taken_back);
        let requests = requests.max(LENGTH_FLOOR);
        let (routes, lanes) = (self.routes.max(LENGTH_FLOOR), self.lanes.max(LENGTH_FLOOR));
        let rows = self.routes.saturating_mul(lanes);
        let bytes = BYTES_FLOOR
            .saturating_add(requests.saturating_mul(DECISION_BYTES))
            .saturating_add(rows.saturating_mul(LANE_BYTES));
        PlanBounds {
            requests,
            revokes: queued.max(LENGTH_FLOOR),
            routes,
            lanes,
            bytes: bytes.min(bytes_max),
        }
    }
}

// === impl PlanBounds ===

impl PlanBounds {
    /// Checks the length of one list.
    ///
    /// # Errors
    /// The list is longer than any plan for this window needs.
    pub(crate) fn check(list: &str, length: usize, most: usize) -> Result<(), String> {
        if length > most {
            return Err(format!(
                "plan.{list}: {length} entries, at most {most} in this window"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_with_the_requests_and_the_queues_of_the_window() {
        let catalog = CatalogBounds {
            routes: 2,
            lanes: 8,
            batch: 16,
        };
        let mut window = Window::default();
        let small = catalog.in_window(&window, usize::MAX);
        assert_eq!((small.requests, small.lanes), (LENGTH_FLOOR, LENGTH_FLOOR));
        window.requests.id = (0..4_000).collect();
        window.workers.queued = vec![3, 100];
        let large = catalog.in_window(&window, usize::MAX);
        assert_eq!(large.requests, 4_000 + 103 * 16);
        assert!(large.bytes > small.bytes);
        assert_eq!(catalog.in_window(&window, 1_000).bytes, 1_000);
        // 700,000 lanes take more than any window of this catalog allows.
        assert!(large.bytes < 700_000 * 40, "{}", large.bytes);
    }
}
