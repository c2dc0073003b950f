//! Memory does not grow with simulated time. A binary of its own, because it counts allocations.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Scenario, run};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting bytes held and their peak.
struct Counting;

// SAFETY: every call goes unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes held at once, above those held before.
fn peak_bytes(requests_max: u64) -> usize {
    let catalog = catalog();
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let scenario = Scenario {
        requests_max,
        duration: Micros(u64::MAX),
        ..Scenario::new(catalog, "mmpp:900,100,5,5".parse().unwrap())
    };
    let edf = Contender::new("edf", EarliestDeadlineFirst::default);
    let report = run(&scenario, &edf, 1).unwrap();
    assert_eq!(report.total.arrivals, requests_max);
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn ten_times_as_many_requests_take_no_more_memory() {
    let (short, long) = (peak_bytes(30_000), peak_bytes(300_000));
    // A longer run has higher peaks of the queue; kept requests would be 10 MB.
    assert!(long < short + 200_000, "{short} bytes grew to {long}");
}

fn catalog() -> Arc<Catalog> {
    let row = |batch, us| ProfileRow {
        kind: KindId(0),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency: Micros(us),
        energy_uj: None,
    };
    let app = App {
        name: "a".to_owned(),
        task: Task::Classify,
        classes: vec!["x".to_owned()],
        slo: Micros::from_millis(20),
        penalty: Penalty::Step,
        prior: vec![1.0],
        frequencies: vec![1.0],
        sneakpeek: None,
        late: Late::Serve,
    };
    let exit = Exit {
        name: "final".to_owned(),
        after_stage: 1,
        accuracy: 0.9,
        recall: vec![0.9],
        confusion: None,
    };
    let variant = Variant {
        name: "v".to_owned(),
        app: AppId(0),
        stages: 1,
        exits: vec![exit],
        memory_bytes: 1,
        max_batch: 8,
        quality_unknown: false,
    };
    let worker = |w| WorkerSpec {
        name: format!("w{w}"),
        kind: KindId(0),
        memory_bytes: 10,
        queue_max: 2,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    };
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app],
        variants: vec![variant],
        kinds: vec!["cpu".to_owned()],
        workers: (0..4).map(worker).collect(),
        profile: Profile::new(0.95, [row(1, 2_000), row(8, 5_000)], []),
    })
}
