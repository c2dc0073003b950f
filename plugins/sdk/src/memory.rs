//! Memory of a policy: free lists by size before the standard allocator.
//!
//! A window crosses the boundary as some thirty lists. Each is allocated and freed, with much the
//! same sizes in every window. Here each takes a few instructions; the standard allocator of wasm
//! takes more than the logic of most policies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;

/// Smallest piece, and alignment of all: 2 to this power bytes.
const SMALLEST: u32 = 4;
/// Largest piece that is kept in a list: 64 KiB.
const LARGEST: u32 = 16;
const CLASSES: usize = (LARGEST - SMALLEST + 1) as usize;

/// Freed pieces by powers of two; larger pieces go to the standard allocator. A piece keeps its
/// class for ever, so that a policy keeps the most pieces of each class that it has used at once.
pub struct FreeLists {
    /// The first free piece of each class, whose first bytes point to the next one.
    heads: UnsafeCell<[*mut u8; CLASSES]>,
}

// SAFETY: without atomics, wasm has one thread. On other targets the type is not `Sync`.
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
unsafe impl Sync for FreeLists {}

// === impl FreeLists ===

impl FreeLists {
    /// Empty lists.
    #[allow(clippy::new_without_default)] // Made in a constant.
    pub const fn new() -> Self {
        Self {
            heads: UnsafeCell::new([ptr::null_mut(); CLASSES]),
        }
    }
}

/// The class of pieces that a layout is served from, and the layout of those.
fn class_of(layout: Layout) -> Option<(usize, Layout)> {
    let exponent = layout.size().max(1).next_power_of_two().ilog2();
    let exponent = exponent.max(SMALLEST);
    if exponent > LARGEST || layout.align() > 1 << SMALLEST {
        return None;
    }
    let piece = Layout::from_size_align(1 << exponent, 1 << SMALLEST).ok()?;
    Some(((exponent - SMALLEST) as usize, piece))
}

// SAFETY: a piece comes from one list or from the system, has the size and alignment of its class,
// which are at least those of the layout, and is in no list while it is in use.
unsafe impl GlobalAlloc for FreeLists {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((class, piece)) = class_of(layout) else {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: one thread, and no call of this allocator inside. A piece in a list is free, and
        // its first bytes hold the address of the next one since it came there.
        unsafe {
            let head = &mut (*self.heads.get())[class];
            if head.is_null() {
                return System.alloc(piece);
            }
            let taken = *head;
            *head = taken.cast::<*mut u8>().read();
            taken
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some((class, _)) = class_of(layout) else {
            // SAFETY: the caller's promise is passed on: the piece came from the system.
            return unsafe { System.dealloc(pointer, layout) };
        };
        // SAFETY: the piece is free, large and aligned enough for an address.
        unsafe {
            let head = &mut (*self.heads.get())[class];
            pointer.cast::<*mut u8>().write(*head);
            *head = pointer;
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(new_size, layout.align()) else {
            return ptr::null_mut();
        };
        match (class_of(layout), class_of(wanted)) {
            (Some((old, _)), Some((new, _))) if old == new => return pointer,
            // SAFETY: the caller's promise is passed on: the piece came from the system.
            (None, None) => return unsafe { System.realloc(pointer, layout, new_size) },
            _ => {}
        }
        // SAFETY: both pieces hold at least the smaller size, and do not overlap.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(pointer, moved, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_freed_piece_is_used_again() {
        let lists = FreeLists::new();
        // SAFETY: every piece is given back as it was taken, and not used after.
        unsafe {
            let (one, two) = (lists.alloc(layout(40)), lists.alloc(layout(64)));
            assert_ne!(one, two);
            lists.dealloc(one, layout(40));
            lists.dealloc(two, layout(64));
            assert_eq!(
                lists.alloc(layout(33)),
                two,
                "of one class, last in first out"
            );
            assert_eq!(lists.alloc(layout(64)), one);
            assert_eq!(one as usize % 16, 0);
        }
    }

    #[test]
    fn a_reallocated_piece_keeps_its_bytes() {
        let lists = FreeLists::new();
        let sizes = [1, 16, 17, 300, 65_536, 65_537, 200_000, 70_000, 5];
        // SAFETY: the piece is reallocated with the size it has.
        unsafe {
            let mut piece = lists.alloc(layout(sizes[0]));
            piece.write(7);
            for pair in sizes.windows(2) {
                piece = lists.realloc(piece, layout(pair[0]), pair[1]);
                assert_eq!(piece.read(), 7, "{pair:?}");
                // All of it can be written to.
                piece.add(pair[1] - 1).write(7);
                piece.write(7);
            }
        }
    }

    #[test]
    fn other_layouts_go_to_the_system() {
        assert_eq!(class_of(layout(65_537)), None);
        let aligned = Layout::from_size_align(8, 64).unwrap();
        assert_eq!(class_of(aligned), None);
        assert_eq!(class_of(layout(0)).unwrap().0, 0);
        assert_eq!(class_of(layout(65_536)).unwrap().0, CLASSES - 1);
    }
}
