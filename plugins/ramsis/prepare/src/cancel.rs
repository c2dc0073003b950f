//! Cancellation.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::PrepareError;

/// A flag that another thread may set to cancel the generation of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CancelFlag<'a>(pub(crate) Option<&'a AtomicBool>);

// === impl CancelFlag ===

impl CancelFlag<'_> {
    pub(crate) fn check(self) -> Result<(), PrepareError> {
        match self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(PrepareError::Cancelled),
            _ => Ok(()),
        }
    }
}
