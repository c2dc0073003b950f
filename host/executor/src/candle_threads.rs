//! How many threads candle uses.
//!
//! candle 0.11 computes on several threads in three ways (read from its sources):
//! - Matrix products ask `gemm` for `get_num_threads()` parts and run them with `par_iter` on the
//!   rayon pool of the calling thread. candle reads the number anew for every product: from
//!   `RAYON_NUM_THREADS`, otherwise it counts the physical cores by parsing `/proc/cpuinfo`. On a
//!   machine with 2 cores a product of 94x65 by 65x32 takes 49 us without the variable and 12 us
//!   with it.
//! - Softmax, norms and convolutions use `par_iter`, also on the rayon pool of the caller.
//! - Element-wise operations on at least 65,536 numbers use one pool of the whole process, with
//!   `CANDLE_NUM_THREADS` threads and one lock: workers wait for each other, the pool's threads
//!   spin, and a panic inside poisons the lock for good.
//!
//! A [`Worker`](crate::worker::Worker) runs inside a rayon pool of its own, which settles the second
//! way and bounds the first. [`configure_candle`] settles the rest with both variables:
//! `RAYON_NUM_THREADS` is the number of threads of the largest worker (a smaller worker runs its
//! parts one after another); `CANDLE_NUM_THREADS` is 1, so that the pool of the process has neither
//! threads nor a lock that workers meet at. candle has no other setting for either.

/// candle reads it for each matrix product.
const PARTS: &str = "RAYON_NUM_THREADS";
/// candle reads it when it starts the pool of the process.
const PROCESS_POOL: &str = "CANDLE_NUM_THREADS";

/// Fits candle to workers of at most `threads_max` threads. A variable that the operator has set
/// keeps its value.
///
/// Does nothing if the process has a second thread, which might read the environment meanwhile, or
/// on a system that does not tell; so call it early in `main`. [`candle_misfit`] tells whether it
/// took effect.
pub fn configure_candle(threads_max: usize) {
    if !is_only_thread() {
        return;
    }
    for (name, value) in [(PARTS, threads_max.max(1)), (PROCESS_POOL, 1)] {
        if std::env::var_os(name).is_none() {
            set(name, value);
        }
    }
}

/// Why candle is not configured for workers of at most `threads_max` threads, with the variables to
/// set; `None` if it is.
pub fn candle_misfit(threads_max: usize) -> Option<String> {
    let read = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<usize>().ok())
    };
    let (parts, pool) = (read(PARTS), read(PROCESS_POOL));
    if parts == Some(threads_max.max(1)) && pool == Some(1) {
        return None;
    }
    let shown = |value: Option<usize>| value.map_or("unset".to_owned(), |value| value.to_string());
    Some(format!(
        "{PARTS} is {} and {PROCESS_POOL} is {}; workers of up to {threads_max} threads run best \
         with {} and 1",
        shown(parts),
        shown(pool),
        threads_max.max(1)
    ))
}

/// Whether the process has no thread but the calling one. Only a thread can start another, so the
/// answer `true` holds until the caller starts one.
fn is_only_thread() -> bool {
    // One entry per thread, on Linux. On other systems the folder does not exist.
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return false;
    };
    threads.count() == 1
}

#[allow(
    unsafe_code,
    reason = "candle takes these settings from the environment only; \
              the sole caller has checked that no other thread exists"
)]
fn set(name: &str, value: usize) {
    // SAFETY: `set_var` is safe while no other thread reads or writes the environment. The caller
    // has checked that the process has one thread, which is in this function.
    unsafe { std::env::set_var(name, value.to_string()) };
}
