//! The pools of threads in which rten runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rten::{RunOptions, ThreadPool};

/// Pools that run no batch now. A batch borrows one with as many threads as its worker has.
static IDLE_POOLS: Mutex<Vec<IdlePool>> = Mutex::new(Vec::new());

/// A pool and its threads.
type IdlePool = (usize, Arc<ThreadPool>);

/// A pool that is returned when this is dropped, also after a panic.
pub(in crate::networks::onnx) struct BorrowedPool(IdlePool);

// === impl BorrowedPool ===

impl BorrowedPool {
    pub(in crate::networks::onnx) fn new(threads: usize) -> Self {
        let mut idle = idle_pools();
        let at = idle.iter().position(|(of, _)| *of == threads);
        let known = at.map(|at| idle.swap_remove(at));
        drop(idle);
        Self(known.unwrap_or_else(|| (threads, Arc::new(ThreadPool::with_num_threads(threads)))))
    }

    /// A run of rten in it.
    pub(in crate::networks::onnx) fn options(&self) -> RunOptions {
        RunOptions::default().with_thread_pool(Some(Arc::clone(&self.0.1)))
    }

    /// Runs `work` on its threads, which rten and this program's kernels share.
    pub(in crate::networks::onnx) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.1.run(work)
    }
}

impl Drop for BorrowedPool {
    fn drop(&mut self) {
        let (threads, pool) = &self.0;
        idle_pools().push((*threads, Arc::clone(pool)));
    }
}

fn idle_pools() -> MutexGuard<'static, Vec<IdlePool>> {
    // Its contents are consistent at every point where a panic can happen.
    IDLE_POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}
