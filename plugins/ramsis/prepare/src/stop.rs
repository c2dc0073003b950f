//! Being asked to stop.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::PrepareError;

/// A flag that someone else may set while a table is being made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stop<'a>(pub(crate) Option<&'a AtomicBool>);

// === impl Stop ===

impl Stop<'_> {
    pub(crate) fn check(self) -> Result<(), PrepareError> {
        match self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(PrepareError::Cancelled),
            _ => Ok(()),
        }
    }
}
