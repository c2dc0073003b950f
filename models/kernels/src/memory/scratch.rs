//! Memory that each thread keeps for activations.
//!
//! A layer's result lives until the next layer has read it. Allocating it each time costs zeroing
//! or page faults, which for an image of 224 by 224 take longer than some layers.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a cache line: vectors that start at a multiple of it never span two lines.
pub(super) const LINE: usize = 64;

/// Buffers that one thread keeps.
const KEPT_MAX: usize = 16;

/// Values that one thread keeps in total; 64 MiB.
const KEPT_VALUES_MAX: usize = 16 << 20;

thread_local! {
    /// Free buffers of this thread.
    static FREE: RefCell<Vec<Aligned>> = const { RefCell::new(Vec::new()) };
}

/// Whether threads keep buffers.
static KEEPS: AtomicBool = AtomicBool::new(true);

/// Runs `work` while no thread of the process keeps a buffer, so that each one is allocated and freed: a
/// count of the allocated bytes sees all activations.
pub fn without_kept<T>(work: impl FnOnce() -> T) -> T {
    /// Keeps again, also after a panic.
    struct Again;
    impl Drop for Again {
        fn drop(&mut self) {
            KEEPS.store(true, Ordering::Relaxed);
        }
    }
    KEEPS.store(false, Ordering::Relaxed);
    let _again = Again;
    work()
}

/// Values that start at a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T = f32> {
    values: Vec<T>,
    from: usize,
}

/// Memory of the thread, borrowed until it is dropped. Its values are initialised but arbitrary:
/// the borrower writes every one of them.
#[derive(Debug)]
pub struct Buffer {
    memory: Aligned,
    len: usize,
}

// === impl Aligned ===

impl<T: Copy + Default> Aligned<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let slack = LINE / size_of::<T>();
        let values = vec![T::default(); len + slack];
        // Never more than the slack, but the documentation of `align_offset` allows "cannot be
        // aligned".
        let from = values.as_ptr().align_offset(LINE).min(slack);
        Self { values, from }
    }

    fn capacity(&self) -> usize {
        self.values.len() - LINE / size_of::<T>()
    }
}

impl<T: Copy + Default> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[self.from..][..self.capacity()]
    }
}

impl<T: Copy + Default> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let len = self.capacity();
        &mut self.values[self.from..][..len]
    }
}

// === impl Buffer ===

impl Buffer {
    /// `len` arbitrary values.
    pub(crate) fn take(len: usize) -> Self {
        let memory = FREE.with_borrow_mut(|free| {
            if !KEEPS.load(Ordering::Relaxed) {
                free.clear();
            }
            let fits = free.iter().enumerate().filter(|(_, b)| b.capacity() >= len);
            let smallest = fits.min_by_key(|(_, buffer)| buffer.capacity());
            let at = smallest.map(|(at, _)| at);
            at.map(|at| free.remove(at))
        });
        let memory = memory.unwrap_or_else(|| Aligned::zeros(len));
        #[cfg_attr(not(debug_assertions), allow(unused_mut))]
        let mut buffer = Self { memory, len };
        // In debug builds, a value that a kernel forgets to write fails every test.
        #[cfg(debug_assertions)]
        buffer.fill(f32::NAN);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        let len = self.len;
        &mut self.memory[..len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.memory.values);
        let memory = Aligned {
            values,
            from: self.memory.from,
        };
        // A thread that is ending keeps nothing.
        let _ = FREE.try_with(|free| {
            let Ok(mut free) = free.try_borrow_mut() else {
                return;
            };
            if memory.capacity() > KEPT_VALUES_MAX || !KEEPS.load(Ordering::Relaxed) {
                return;
            }
            free.push(memory);
            let kept = |free: &[Aligned]| free.iter().map(Aligned::capacity).sum::<usize>();
            while free.len() > KEPT_MAX || kept(free.as_slice()) > KEPT_VALUES_MAX {
                // The buffer that has been idle longest.
                free.remove(0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_reused() {
        let first = Buffer::take(1000);
        let at = first.as_ptr();
        assert_eq!((first.len(), at.align_offset(LINE)), (1000, 0));
        drop(first);
        let smaller = Buffer::take(10);
        assert_eq!((smaller.len(), smaller.as_ptr()), (10, at));
        // Still borrowed: another buffer is allocated.
        assert_ne!(Buffer::take(10).as_ptr(), at);
    }

    #[test]
    fn a_thread_keeps_little() {
        let many: Vec<Buffer> = (0..3 * KEPT_MAX).map(Buffer::take).collect();
        drop(many);
        drop(Buffer::take(KEPT_VALUES_MAX + 1));
        FREE.with_borrow(|free| {
            assert_eq!(free.len(), KEPT_MAX);
            assert!(free.iter().map(Aligned::capacity).sum::<usize>() <= KEPT_VALUES_MAX);
        });
    }
}
