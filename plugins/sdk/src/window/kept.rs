//! The workers of a policy that is sent only those that changed.

use crate::bindings::exports::switchyard::policy::scheduling as raw;

/// All workers as of the last window, brought up to date by the rows of those that changed. So every
/// window shows all workers, and reads them from columns that crossed once.
pub(crate) struct KeptWorkers {
    /// The last window was decided, so that the host goes on from `columns`.
    is_current: bool,
    columns: raw::Workers,
}

// === impl KeptWorkers ===

impl KeptWorkers {
    pub(crate) fn new() -> Self {
        Self {
            is_current: false,
            columns: raw::Workers {
                index: None,
                busy_until: Vec::new(),
                free_at: Vec::new(),
                running_since: Vec::new(),
                running_variant: Vec::new(),
                queued: Vec::new(),
                parked: Vec::new(),
                free_memory: Vec::new(),
                up: Vec::new(),
            },
        }
    }

    /// Completes the workers of a window. Returns those that changed; none: the window showed all.
    ///
    /// # Errors
    /// The rows cannot be put in. A host does not send such windows.
    pub(crate) fn complete(
        &mut self,
        workers: &mut raw::Workers,
    ) -> Result<Option<Vec<u32>>, String> {
        let is_current = std::mem::take(&mut self.is_current);
        let Some(index) = workers.index.take() else {
            return Ok(None);
        };
        if !is_current {
            let reason = "window: workers.index: only changed workers, without a window before";
            return Err(reason.to_owned());
        }
        if !self.put(&index, workers) {
            return Err("window: workers.index: no such row or worker".to_owned());
        }
        std::mem::swap(&mut self.columns, workers);
        Ok(Some(index))
    }

    /// Keeps the columns of a window that was decided.
    pub(crate) fn keep(&mut self, workers: &mut raw::Workers) {
        std::mem::swap(&mut self.columns, workers);
        self.is_current = true;
    }

    /// False if a row or a worker is not there.
    fn put(&mut self, index: &[u32], rows: &raw::Workers) -> bool {
        let kept = &mut self.columns;
        put(&mut kept.busy_until, index, &rows.busy_until)
            && put(&mut kept.free_at, index, &rows.free_at)
            && put(&mut kept.running_since, index, &rows.running_since)
            && put(&mut kept.running_variant, index, &rows.running_variant)
            && put(&mut kept.queued, index, &rows.queued)
            && put(&mut kept.parked, index, &rows.parked)
            && put(&mut kept.free_memory, index, &rows.free_memory)
            && put(&mut kept.up, index, &rows.up)
    }
}

fn put<T: Copy>(column: &mut [T], index: &[u32], rows: &[T]) -> bool {
    index.len() == rows.len()
        && index.iter().zip(rows).all(|(&at, &row)| {
            let slot = column.get_mut(at as usize);
            slot.map(|slot| *slot = row).is_some()
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{CatalogBuilder, WindowBuilder};

    fn three() -> raw::Workers {
        let catalog = CatalogBuilder::new()
            .worker("a")
            .worker("b")
            .worker("c")
            .build();
        WindowBuilder::new(&catalog).build().workers
    }

    /// The row of one worker, of three.
    fn row(of: u32, queued: u32) -> raw::Workers {
        let mut row = three();
        row.index = Some(vec![of]);
        for column in [
            &mut row.busy_until,
            &mut row.free_at,
            &mut row.running_since,
        ] {
            column.truncate(1);
        }
        for column in [&mut row.running_variant, &mut row.parked, &mut row.up] {
            column.truncate(1);
        }
        row.free_memory.truncate(1);
        row.queued = vec![queued];
        row
    }

    #[test]
    fn rows_are_put_into_the_columns_of_the_window_before() {
        let mut kept = KeptWorkers::new();
        let mut window = three();
        assert_eq!(kept.complete(&mut window), Ok(None));
        kept.keep(&mut window);
        for (of, queued, all) in [(1, 5, [0, 5, 0]), (2, 7, [0, 5, 7])] {
            let mut window = row(of, queued);
            assert_eq!(kept.complete(&mut window), Ok(Some(vec![of])));
            assert_eq!(window.queued, all);
            assert!(window.index.is_none() && window.up == [1; 3]);
            kept.keep(&mut window);
        }
    }

    #[test]
    fn rows_without_the_columns_they_belong_to_are_an_error() {
        let mut kept = KeptWorkers::new();
        kept.complete(&mut row(0, 1)).unwrap_err();
        let mut window = three();
        kept.complete(&mut window).unwrap();
        kept.keep(&mut window);
        kept.complete(&mut row(3, 1)).unwrap_err();
        // That window was not decided.
        let error = kept.complete(&mut row(0, 1)).unwrap_err();
        assert!(error.contains("without a window before"), "{error}");
    }
}
