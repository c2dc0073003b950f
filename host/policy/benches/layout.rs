//! Why windows cross as columns: the same logic on a list of records, on columns, and on one
//! blob of bytes, in one run.
//!
//! Needs `cargo xtask plugins --with-guests`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/component_file.rs"]
mod component_file;
#[path = "../../../tests/guests/layouts/src/logic.rs"]
mod logic;
#[path = "common/measure.rs"]
mod measure;

use std::cell::RefCell;
use std::hint::black_box;

use component_file::component_file;
use logic::{WindowView, decide};
use measure::{BenchCall, medians_us};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../tests/guests/layouts/wit",
        world: "layouts",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

use bindings::exports::switchyard::layouts::shapes;

const WORKERS: usize = 8;
const LATENCIES: [u64; 16] = [
    9_000, 8_000, 7_000, 6_000, 5_000, 4_500, 4_000, 3_500, 3_000, 2_500, 2_000, 1_500, 1_000, 800,
    600, 400,
];

/// A window in all layouts.
struct LayoutWindow {
    now: u64,
    requests: Vec<shapes::Request>,
    workers: Vec<shapes::Worker>,
    id: Vec<u64>,
    app: Vec<u32>,
    arrival: Vec<u64>,
    deadline: Vec<u64>,
    priority: Vec<u32>,
    min_accuracy: Vec<f32>,
    busy_until: Vec<u64>,
    free_memory: Vec<u64>,
    queued: Vec<u32>,
}

fn main() {
    println!("pending | native us | records us | columns us | blob us");
    println!("------- | --------- | ---------- | ---------- | -------");
    for pending in [1, 64, 1_024, 8_192] {
        let row = measure(&LayoutWindow::new(pending));
        println!(
            "{pending:>7} | {:>9.2} | {:>10.2} | {:>10.2} | {:>7.2}",
            row[0], row[1], row[2], row[3]
        );
        if pending == 1 {
            println!("  empty |         - |       {:.2} (any layout)", row[4]);
        }
    }
}

fn measure(window: &LayoutWindow) -> Vec<f64> {
    let (mut store, instance) = instance();
    let guest = instance.switchyard_layouts_shapes();
    guest.call_configure(&mut store, &LATENCIES).unwrap();
    let store = RefCell::new(store);
    let mut blob = Vec::new();
    let calls: [BenchCall<'_>; 5] = [
        Box::new(|| {
            let mut plan = Vec::with_capacity(window.id.len());
            decide(window, &LATENCIES, |request, worker, choice| {
                plan.push((request, worker, choice));
            });
            black_box(&plan);
        }),
        Box::new(|| {
            let (store, window) = (&mut *store.borrow_mut(), black_box(window));
            let plan = guest
                .call_by_records(store, window.now, &window.requests, &window.workers)
                .unwrap();
            black_box(&plan);
        }),
        Box::new(|| {
            let (store, window) = (&mut *store.borrow_mut(), black_box(window));
            let plan = guest
                .call_by_columns(
                    store,
                    window.now,
                    window.request_columns(),
                    window.worker_columns(),
                )
                .unwrap();
            black_box(&plan);
        }),
        Box::new(|| {
            // Writing the bytes is part of the price of this layout.
            black_box(window).write(&mut blob);
            let plan = guest.call_by_blob(&mut *store.borrow_mut(), &blob).unwrap();
            black_box(&plan);
        }),
        Box::new(|| guest.call_empty(&mut *store.borrow_mut()).unwrap()),
    ];
    let mut calls = calls;
    medians_us(&mut calls)
}

/// An instance as the host runs policies, without a budget: no call runs away.
fn instance() -> (Store<()>, bindings::Layouts) {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false);
    let engine = Engine::new(&config).unwrap();
    let file = component_file("SWITCHYARD_GUESTS", "policies-test", "layouts");
    let component = Component::from_file(&engine, &file).unwrap_or_else(|error| {
        panic!(
            "{}: {error:#}; run `cargo xtask plugins --with-guests` first",
            file.display()
        )
    });
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance =
        bindings::Layouts::instantiate(&mut store, &component, &Linker::new(&engine)).unwrap();
    (store, instance)
}

impl LayoutWindow {
    fn new(pending: u64) -> Self {
        let now = 10_000_000;
        let requests: Vec<_> = (0..pending)
            .map(|n| shapes::Request {
                id: 1_000 + n,
                app: (n % 3) as u32,
                arrival: now - pending + n,
                // Neither sorted nor random: neighbours differ, and the pattern repeats late.
                deadline: now + (n * 7_919) % 10_007 * 10,
                priority: (n % 2) as u32,
                min_accuracy: 0.0,
            })
            .collect();
        let workers: Vec<_> = (0..WORKERS as u64)
            .map(|n| shapes::Worker {
                busy_until: now + 100 * n,
                free_memory: 1 << 30,
                queued: 0,
            })
            .collect();
        Self {
            now,
            id: requests.iter().map(|r| r.id).collect(),
            app: requests.iter().map(|r| r.app).collect(),
            arrival: requests.iter().map(|r| r.arrival).collect(),
            deadline: requests.iter().map(|r| r.deadline).collect(),
            priority: requests.iter().map(|r| r.priority).collect(),
            min_accuracy: requests.iter().map(|r| r.min_accuracy).collect(),
            busy_until: workers.iter().map(|w| w.busy_until).collect(),
            free_memory: workers.iter().map(|w| w.free_memory).collect(),
            queued: workers.iter().map(|w| w.queued).collect(),
            requests,
            workers,
        }
    }

    fn request_columns(&self) -> shapes::RequestColumns<'_> {
        shapes::RequestColumns {
            id: &self.id,
            app: &self.app,
            arrival: &self.arrival,
            deadline: &self.deadline,
            priority: &self.priority,
            min_accuracy: &self.min_accuracy,
        }
    }

    fn worker_columns(&self) -> shapes::WorkerColumns<'_> {
        shapes::WorkerColumns {
            busy_until: &self.busy_until,
            free_memory: &self.free_memory,
            queued: &self.queued,
        }
    }

    fn write(&self, blob: &mut Vec<u8>) {
        blob.clear();
        blob.extend_from_slice(&self.now.to_le_bytes());
        blob.extend_from_slice(&(self.requests.len() as u32).to_le_bytes());
        blob.extend_from_slice(&(self.workers.len() as u32).to_le_bytes());
        for request in &self.requests {
            blob.extend_from_slice(&request.id.to_le_bytes());
            blob.extend_from_slice(&request.app.to_le_bytes());
            blob.extend_from_slice(&request.arrival.to_le_bytes());
            blob.extend_from_slice(&request.deadline.to_le_bytes());
            blob.extend_from_slice(&request.priority.to_le_bytes());
            blob.extend_from_slice(&request.min_accuracy.to_le_bytes());
        }
        for worker in &self.workers {
            blob.extend_from_slice(&worker.busy_until.to_le_bytes());
            blob.extend_from_slice(&worker.free_memory.to_le_bytes());
            blob.extend_from_slice(&worker.queued.to_le_bytes());
        }
    }
}

impl WindowView for LayoutWindow {
    fn now(&self) -> u64 {
        self.now
    }

    fn requests(&self) -> usize {
        self.id.len()
    }

    fn id(&self, request: usize) -> u64 {
        self.id[request]
    }

    fn deadline(&self, request: usize) -> u64 {
        self.deadline[request]
    }

    fn priority(&self, request: usize) -> u32 {
        self.priority[request]
    }

    fn workers(&self) -> usize {
        self.busy_until.len()
    }

    fn busy_until(&self, worker: usize) -> u64 {
        self.busy_until[worker]
    }
}
