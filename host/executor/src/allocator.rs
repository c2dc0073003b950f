//! A global allocator that counts on demand: how much memory a batch takes.
//!
//! The resident size of a process tells little about one batch, because the system's allocator
//! keeps freed memory and uses it again. Counting the requested bytes is exact, and the same in
//! every run.
//!
//! The binary installs [`CountingAllocator`]. While nothing is counted it costs one relaxed load
//! per call.

#![allow(
    unsafe_code,
    reason = "the trait `GlobalAlloc` is unsafe to implement, and no other one can count"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, with a count of the bytes held.
pub struct CountingAllocator;

static COUNTING: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

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
