//! Memory of weights, in large pages where the system has them.
//!
//! A layer of few rows reads every weight once and computes little with it. In pages of 4 KiB the core looks up
//! an address, and stops fetching ahead, 512 times as often as in pages of 2 MiB.

#![allow(
    unsafe_code,
    reason = "layers share a region, of which each owns a part; `madvise` is a system call"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use super::scratch::{Aligned, LINE};

/// Bytes of a large page.
const PAGE: usize = 2 << 20;

/// Fewer bytes are allocated on their own, so that small models take no large page.
const SHARED_MIN: usize = 256 << 10;

/// The region with room for the next layer.
static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// Values of one layer, which start at a cache line.
#[derive(Debug)]
pub(crate) struct Weights<T = f32>(Place<T>);

#[derive(Debug)]
enum Place<T> {
    Own(Aligned<T>),
    Shared(Part<T>),
}

/// `len` values at `start`, which no other part has.
#[derive(Debug)]
struct Part<T> {
    start: NonNull<T>,
    len: usize,
    /// Kept for as long as the values.
    _region: Arc<Region>,
}

/// Large pages, given back when the last part is dropped.
#[derive(Debug)]
struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

/// A region and its bytes that belong to parts.
struct Open {
    region: Arc<Region>,
    used: usize,
}

// SAFETY: a region is an address; parts reach its memory, each its own.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}
// SAFETY: a part owns its values, as a box would.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Part<T> {}

// === impl Weights ===

impl<T: Copy + Default> Weights<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes < SHARED_MIN {
            return Self(Place::Own(Aligned::zeros(len)));
        }
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Place::Shared(Part::zeros(
            len,
            Open::part(&mut open, bytes),
        )))
    }
}

impl<T: Copy + Default> Deref for Weights<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Place::Own(values) => values,
            Place::Shared(part) => part.values(),
        }
    }
}

impl<T: Copy + Default> DerefMut for Weights<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Place::Own(values) => values,
            Place::Shared(part) => part.values_mut(),
        }
    }
}

// === impl Part ===

impl<T: Copy + Default> Part<T> {
    /// `len` zeros in the bytes of `region` from `from` on, which belong to no other part.
    fn zeros(len: usize, (region, from): (Arc<Region>, usize)) -> Self {
        const { assert!(align_of::<T>() <= LINE) };
        // SAFETY: the bytes lie in the region.
        let start = unsafe { region.start.add(from).cast::<T>() };
        for i in 0..len {
            // SAFETY: `len` values fit into the part's bytes.
            unsafe { start.add(i).write(T::default()) };
        }
        Self {
            start,
            len,
            _region: region,
        }
    }

    fn values(&self) -> &[T] {
        // SAFETY: `zeros` wrote `len` values; only this part reaches them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// === impl Open ===

impl Open {
    /// `bytes` of a region, and where in it they start: of the open one if they fit. Otherwise of a new
    /// one, and the region with more room stays open.
    fn part(open: &mut Option<Self>, bytes: usize) -> (Arc<Region>, usize) {
        let bytes = bytes.next_multiple_of(LINE);
        if let Some(open) = open.as_mut().filter(|open| open.room() >= bytes) {
            let from = open.used;
            open.used += bytes;
            return (open.region.clone(), from);
        }
        let region = Arc::new(Region::of(bytes.next_multiple_of(PAGE)));
        let new = Self {
            region: region.clone(),
            used: bytes,
        };
        if open.as_ref().is_none_or(|open| open.room() < new.room()) {
            *open = Some(new);
        }
        (region, 0)
    }

    fn room(&self) -> usize {
        self.region.layout.size() - self.used
    }
}

// === impl Region ===

impl Region {
    /// `bytes` of arbitrary values; at least one.
    fn of(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, PAGE).expect("weights fit into memory");
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) });
        let start = start.unwrap_or_else(|| handle_alloc_error(layout));
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            // A system without large pages answers with an error, and the memory stays as it is.
            // SAFETY: the advice changes the size of pages, not their contents.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
        Self { start, layout }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the last part is gone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = SHARED_MIN / 4;

    fn region(weights: &Weights) -> *const Region {
        match &weights.0 {
            Place::Shared(part) => Arc::as_ptr(&part._region),
            Place::Own(_) => std::ptr::null(),
        }
    }

    #[test]
    fn layers_have_memory_of_their_own() {
        let mut layers: Vec<Weights> = (1..40).map(|i| Weights::zeros(i * MANY / 4)).collect();
        for (i, layer) in layers.iter_mut().enumerate() {
            assert!(layer.iter().all(|&value| value == 0.0));
            assert_eq!(layer.as_ptr().align_offset(LINE), 0);
            layer.fill(i as f32);
        }
        // Every other one is dropped; the rest keeps its values, and new ones are zeros.
        let kept: Vec<Weights> = layers.into_iter().step_by(2).collect();
        let new: Vec<Weights> = (1..9).map(|i| Weights::zeros(i * MANY)).collect();
        for (i, layer) in kept.iter().enumerate() {
            assert_eq!(layer.len(), (2 * i + 1) * MANY / 4);
            assert!(layer.iter().all(|&value| value == (2 * i) as f32));
        }
        assert!(
            new.iter()
                .flat_map(|layer| layer.iter())
                .all(|&value| value == 0.0)
        );
    }

    #[test]
    fn small_layers_take_no_large_page() {
        let small = Weights::zeros(MANY - 1);
        assert_eq!((small.len(), region(&small)), (MANY - 1, std::ptr::null()));
        assert!(!region(&Weights::zeros(MANY)).is_null());
    }

    #[test]
    fn a_region_is_filled_before_the_next_one_is_taken() {
        let mut open = None;
        let (first, from) = Open::part(&mut open, PAGE / 2 + 1);
        assert_eq!((from, first.layout.size()), (0, PAGE));
        let (same, from) = Open::part(&mut open, PAGE / 4);
        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!(from, PAGE / 2 + LINE);
        // It does not fit, and leaves more room behind it.
        let (second, from) = Open::part(&mut open, PAGE + LINE);
        assert_eq!((from, second.layout.size()), (0, 2 * PAGE));
        let (third, _) = Open::part(&mut open, LINE);
        assert!(Arc::ptr_eq(&second, &third));
    }
}
