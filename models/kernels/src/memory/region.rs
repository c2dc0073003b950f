//! Address space for many layers, in large pages. A page takes memory from the first layer on it to the last.

#![allow(
    unsafe_code,
    reason = "layers share a mapping, of which each owns a part; giving its pages back is a system call"
)]

use std::ptr::NonNull;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::{MmapOptions, MmapRaw};

use super::scratch::LINE;

/// Bytes of a large page.
const PAGE: usize = 2 << 20;

/// Bytes that are mapped at once, unless one layer has more.
const REGION: usize = 32 * PAGE;

/// The region with room for the next layer.
static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// `len` values at `start`, which no other part has.
#[derive(Debug)]
pub(super) struct Part<T> {
    start: NonNull<T>,
    len: usize,
    /// Where its bytes are in the region.
    from: usize,
    bytes: usize,
    region: Arc<Region>,
}

/// Large pages that parts lie on.
#[derive(Debug)]
struct Region {
    map: MmapRaw,
    /// Bytes of the mapping before the first page.
    before: usize,
    /// Parts on each page.
    pages: Mutex<Vec<u16>>,
}

/// A region and its bytes that belong to parts, or did.
struct Open {
    region: Arc<Region>,
    used: usize,
}

// SAFETY: a part owns its values, as a box would.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Part<T> {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Part ===

impl<T: Copy + Default> Part<T> {
    /// `len` zeros; none if the system has no addresses for them.
    pub(super) fn zeros(len: usize) -> Option<Self> {
        const { assert!(align_of::<T>() <= LINE) };
        let bytes = len
            .checked_mul(size_of::<T>())?
            .checked_next_multiple_of(LINE)?;
        let (region, from) = Open::part(&mut locked(&OPEN), bytes)?;
        let start = region.at(from)?.cast::<T>();
        for i in 0..len {
            // SAFETY: `len` values fit into the part's bytes, which belong to no other part.
            unsafe { start.add(i).write(T::default()) };
        }
        Some(Self {
            start,
            len,
            from,
            bytes,
            region,
        })
    }

    pub(super) fn values(&self) -> &[T] {
        // SAFETY: `zeros` wrote `len` values; only this part reaches them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(super) fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        self.region.give_back(self.from, self.bytes);
    }
}

// === impl Open ===

impl Open {
    /// `bytes` of a region, and where in it they start: of the open one if they fit. Otherwise of a new
    /// one, and the region with more room stays open.
    fn part(open: &mut Option<Self>, bytes: usize) -> Option<(Arc<Region>, usize)> {
        if let Some(open) = open.as_mut().filter(|open| open.room() >= bytes) {
            let from = open.used;
            open.used += bytes;
            open.region.take(from, bytes);
            return Some((open.region.clone(), from));
        }
        let region = Arc::new(Region::of(bytes.max(REGION))?);
        region.take(0, bytes);
        let new = Self {
            region: region.clone(),
            used: bytes,
        };
        if open.as_ref().is_none_or(|open| open.room() < new.room()) {
            *open = Some(new);
        }
        Some((region, 0))
    }

    fn room(&self) -> usize {
        self.region.bytes() - self.used
    }
}

// === impl Region ===

impl Region {
    /// At least `bytes`, in whole pages; none if the system has no addresses for them.
    fn of(bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE)?;
        // The system aligns to smaller pages.
        let mapped = bytes.checked_add(PAGE)?;
        let map = MmapOptions::new().len(mapped).no_reserve_swap().map_anon();
        let map = MmapRaw::from(map.ok()?);
        let before = map.as_ptr().align_offset(PAGE).min(PAGE);
        // A system without large pages answers with an error, and the memory stays as it is.
        #[cfg(target_os = "linux")]
        let _ = map.advise_range(memmap2::Advice::HugePage, before, bytes);
        Some(Self {
            map,
            before,
            pages: Mutex::new(vec![0; bytes / PAGE]),
        })
    }

    fn bytes(&self) -> usize {
        self.map.len() - PAGE
    }

    /// The address of a byte.
    fn at(&self, from: usize) -> Option<NonNull<u8>> {
        let from = self.before + from;
        debug_assert!(from < self.map.len());
        // SAFETY: the byte lies in the mapping.
        NonNull::new(unsafe { self.map.as_mut_ptr().add(from) })
    }

    fn take(&self, from: usize, bytes: usize) {
        let mut pages = locked(&self.pages);
        pages[from / PAGE..(from + bytes).div_ceil(PAGE)]
            .iter_mut()
            .for_each(|parts| *parts += 1);
    }

    /// A part is gone: the system takes back the memory of pages on which no other lies.
    fn give_back(&self, from: usize, bytes: usize) {
        let mut pages = locked(&self.pages);
        let first = from / PAGE;
        let end = (from + bytes).div_ceil(PAGE);
        for parts in &mut pages[first..end] {
            *parts -= 1;
        }
        // Others may lie on the first and on the last page only.
        let first = first + usize::from(pages[first] > 0);
        let end = end - usize::from(first < end && pages[end - 1] > 0);
        #[cfg(unix)]
        if first < end {
            use memmap2::UncheckedAdvice::DontNeed;
            let (from, bytes) = (self.before + first * PAGE, (end - first) * PAGE);
            // Without it the memory stays until the region is gone.
            // SAFETY: no part lies on these pages, and none is placed there before `pages` is unlocked.
            let _ = unsafe { self.map.unchecked_advise_range(DontNeed, from, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_filled_before_the_next_one_is_taken() {
        let mut open = None;
        let (first, from) = Open::part(&mut open, PAGE / 2 + LINE).unwrap();
        assert_eq!((from, first.bytes()), (0, REGION));
        let (same, from) = Open::part(&mut open, REGION - PAGE).unwrap();
        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!(from, PAGE / 2 + LINE);
        // It does not fit, and leaves less room behind it.
        let (second, from) = Open::part(&mut open, REGION + LINE).unwrap();
        assert_eq!((from, second.bytes()), (0, REGION + PAGE));
        let (third, _) = Open::part(&mut open, LINE).unwrap();
        assert!(Arc::ptr_eq(&second, &third));
    }

    #[test]
    fn a_page_without_layers_takes_no_memory() {
        let region = Region::of(4 * PAGE).unwrap();
        let parts = [
            (0, PAGE + LINE),
            (PAGE + LINE, 2 * PAGE),
            (3 * PAGE + LINE, LINE),
        ];
        for (from, bytes) in parts {
            region.take(from, bytes);
        }
        let bytes_of = |page: usize| region.at(page * PAGE + 2 * LINE).unwrap();
        for page in 0..4 {
            // SAFETY: the byte lies in the region, which nothing else reaches.
            unsafe { bytes_of(page).write(7) };
        }
        // SAFETY: as above.
        let left = || [0, 1, 2, 3].map(|page| unsafe { bytes_of(page).read() });
        region.give_back(parts[1].0, parts[1].1);
        assert_eq!(left(), [7, 7, 0, 7]);
        region.give_back(parts[0].0, parts[0].1);
        assert_eq!(left(), [0, 0, 0, 7]);
        region.give_back(parts[2].0, parts[2].1);
        assert_eq!(left(), [0; 4]);
    }
}
