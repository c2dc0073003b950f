//! The trace of a row that has not ended.

use switchyard_core::time::Time;

use crate::traces::{BatchTrace, CallTrace, WindowTrace};

/// Filled by the driver until the row ends.
pub(super) struct RowTrace {
    pub(super) call: CallTrace,
    pub(super) deadline: Time,
    /// Rows of its call.
    pub(super) rows: usize,
    pub(super) windows: Vec<WindowTrace>,
    pub(super) batches: Vec<BatchTrace>,
}
