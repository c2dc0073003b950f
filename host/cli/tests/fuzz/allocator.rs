//! Memory that the current thread holds, and the most that it held.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator with counts per thread.
struct PerThread;

fn add(bytes: i64) {
    // At the end of a thread its counts may be gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes unchanged to the system's allocator.
unsafe impl GlobalAlloc for PerThread {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: PerThread = PerThread;

/// The result of a call, and the most bytes that it held at once on this thread. Calls may be nested.
pub(crate) fn peak_of<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let (before, outer) = (HELD.get(), PEAK.get());
    PEAK.set(before);
    let result = call();
    let peak = PEAK.get();
    PEAK.set(outer.max(peak));
    (result, (peak - before).max(0) as u64)
}

#[test]
fn the_most_that_a_call_held_is_counted() {
    let (length, peak) = peak_of(|| {
        drop(std::hint::black_box(vec![1_u8; 5 << 20]));
        std::hint::black_box(vec![1_u8; 3 << 20]).len()
    });
    assert_eq!(length, 3 << 20);
    assert!(((5 << 20)..(6 << 20)).contains(&peak), "{peak}");
}
