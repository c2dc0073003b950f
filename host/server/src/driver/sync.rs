//! The synchronisation of `combining`. The loom test replaces this module by loom's types.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

pub(super) use tokio::task::yield_now;
