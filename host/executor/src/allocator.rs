//! A global allocator that counts on demand: how much memory a batch takes.
//!
//! The resident size of a process tells little about one batch, because the system's allocator
//! keeps freed memory and uses it again. Counting the requested bytes is exact, and the same in
//! every run.
//!
//! The binary installs [`CountingAllocator`]. While nothing is counted it costs one relaxed load
//! per call. [`keep_freed`] spares the worker threads the page faults of glibc's defaults.

#![allow(
    unsafe_code,
    reason = "the trait `GlobalAlloc` is unsafe to implement, and no other one can count; `mallopt` \
              is a function of C"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, with a count of the bytes held.
pub struct CountingAllocator;

static COUNTING: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// Freed memory at the end of a heap that glibc keeps for the next batch: several activations.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: i32 = 32 << 20;

/// Allocations above this are mapped one by one. Activations of one layer are smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: i32 = 8 << 20;

/// One count at a time: the process has one allocator.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `work` and returns the most bytes that the whole process held at once beyond those held
/// before, so no other work should run meanwhile. `None` if [`CountingAllocator`] is not installed.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    // A panic in `work` poisons the lock; the next count sets all counters anew.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    HELD.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
    let probe = std::hint::black_box(Vec::<u8>::with_capacity(64));
    let is_installed = HELD.load(Ordering::Relaxed) > 0;
    drop(probe);
    PEAK.store(0, Ordering::Relaxed);
    let done = work();
    COUNTING.store(false, Ordering::Relaxed);
    let peak = u64::try_from(PEAK.load(Ordering::Relaxed)).unwrap_or_default();
    (done, is_installed.then_some(peak))
}

/// Has glibc keep what a batch frees for the next one. By default it gives activations back to the
/// system after every large batch; the page faults of the next batch take 5 to 10 % of its time.
///
/// Called before the first thread starts. `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_` in
/// the environment take precedence. Other C libraries are left as they are.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (option, value, variable) in [
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES, "MALLOC_TRIM_THRESHOLD_"),
        (
            libc::M_MMAP_THRESHOLD,
            MAPPED_BYTES,
            "MALLOC_MMAP_THRESHOLD_",
        ),
    ] {
        if std::env::var_os(variable).is_none() {
            // SAFETY: `mallopt` takes two numbers and changes the allocator's own state only.
            // It returns 0 for a value out of range; the default then stays.
            unsafe { libc::mallopt(option, value) };
        }
    }
}

fn count(by: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        let held = HELD.fetch_add(by, Ordering::Relaxed) + by;
        PEAK.fetch_max(held, Ordering::Relaxed);
    }
}

/// Layouts are never larger than `isize::MAX`.
fn signed(bytes: usize) -> isize {
    bytes as isize
}

// === impl CountingAllocator ===

// SAFETY: every answer is the system allocator's; counting touches none of its memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: the pointer came from the system allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(signed(new_size) - signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Page faults of this thread so far: the tenth field of its `stat`.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_name = stat.rsplit_once(") ").unwrap().1;
        behind_name.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn a_batch_takes_the_memory_of_the_last_one_without_page_faults() {
        keep_freed();
        // A thread of its own has a heap of its own, as a worker has.
        let grown = std::thread::spawn(|| {
            let batch = || {
                let layers: Vec<_> = (0..4).map(|_| vec![1.0_f32; 1 << 18]).collect();
                std::hint::black_box(layers);
            };
            batch();
            let before = faults();
            (0..10).for_each(|_| batch());
            faults() - before
        });
        // Ten batches of 4 MiB: 10,240 pages.
        assert!(grown.join().unwrap() < 1000);
    }
}
