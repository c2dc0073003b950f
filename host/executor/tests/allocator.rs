//! The counting allocator, in a test program of its own: a process has one allocator.
#![allow(missing_docs)]

use std::hint::black_box;

use switchyard_executor::allocator::{CountingAllocator, peak_of};
use switchyard_kernels::{FeatureMap, without_kept};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MEBI: u64 = 1 << 20;

/// One test: the allocations of a second one would be counted too.
#[test]
fn the_most_that_was_held_at_once_is_counted() {
    let kept = black_box(vec![1_u8; 64 << 20]);
    let (length, peak) = peak_of(|| {
        drop(black_box(vec![1_u8; 3 << 20]));
        let first = black_box(vec![1_u8; 2 << 20]);
        let second = black_box(vec![1_u8; 4 << 20]);
        first.len() + second.len()
    });
    assert_eq!(length, 6 << 20);
    let peak = peak.expect("the allocator is installed");
    assert!((6 * MEBI..7 * MEBI).contains(&peak), "{peak}");

    // Buffers that threads keep are no new memory, unless none is kept.
    let image = || FeatureMap::new([1, 512, 512, 4]);
    drop(image());
    let (_, peak) = peak_of(|| drop(image()));
    assert!(peak.expect("it still is") < MEBI, "the buffer is kept");
    without_kept(|| {
        drop(image());
        let (_, peak) = peak_of(|| drop(image()));
        let peak = peak.expect("it still is");
        assert!((4 * MEBI..5 * MEBI).contains(&peak), "{peak}");
    });

    // Memory that is freed meanwhile gives room; a growing vector counts once.
    let (grown, peak) = peak_of(|| {
        drop(kept);
        let mut grown = black_box(Vec::<u8>::new());
        // One by one, so that it is reallocated again and again.
        (0..1 << 20).for_each(|_| grown.push(1));
        grown.len()
    });
    assert_eq!(grown as u64, MEBI);
    assert!(peak.expect("it still is") < MEBI, "64 MiB were freed first");
}
