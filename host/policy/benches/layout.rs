//! The layouts that a window could cross in, with the same logic on each of them, in one run:
//! one list per field as in contract 0.1; columns and absent fields as in 0.2; records for the workers or for
//! everything; one list of words; calls that fetch the parts.
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
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, Store};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../tests/guests/layouts/wit",
        world: "layouts",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

use bindings::exports::switchyard::layouts::shapes;
use bindings::switchyard::layouts::fetch;

const LATENCIES: [u64; 16] = [
    9_000, 8_000, 7_000, 6_000, 5_000, 4_500, 4_000, 3_500, 3_000, 2_500, 2_000, 1_500, 1_000, 800,
    600, 400,
];

/// A window in the host's columns.
#[derive(Clone, Default)]
struct Columns {
    now: u64,
    id: Vec<u64>,
    app: Vec<u32>,
    arrival: Vec<u64>,
    deadline: Vec<u64>,
    priority: Vec<u32>,
    min_accuracy: Vec<f32>,
    busy_until: Vec<u64>,
    free_at: Vec<u64>,
    running_since: Vec<u64>,
    running_variant: Vec<u32>,
    queued: Vec<u32>,
    parked: Vec<u32>,
    free_memory: Vec<u64>,
    up: Vec<u8>,
    arrival_rate: Vec<f64>,
}

fn main() {
    let layouts = ["lists", "columns", "groups", "records", "words", "calls"];
    print!("pending | workers | native us");
    layouts
        .iter()
        .for_each(|layout| print!(" | {layout:>7} us (x)"));
    println!();
    for (pending, workers) in [
        (0, 2),
        (0, 8),
        (0, 64),
        (1, 2),
        (1, 8),
        (64, 8),
        (1_024, 8),
        (1_024, 64),
    ] {
        let row = measure(&Columns::new(pending, workers));
        print!("{pending:>7} | {workers:>7} | {:>9.2}", row[0]);
        for time in &row[1..7] {
            print!(" | {time:>6.2} ({:>4.1})", time / row[0]);
        }
        println!(" | empty call {:.2}", row[7]);
    }
}

fn measure(window: &Columns) -> Vec<f64> {
    let (mut store, instance) = instance(window);
    let guest = instance.switchyard_layouts_shapes();
    guest.call_configure(&mut store, &LATENCIES).unwrap();
    let store = RefCell::new(store);
    let (mut words, mut rows) = (Vec::new(), (Vec::new(), Vec::new()));
    let mut workers = Vec::new();
    let mut calls: [BenchCall<'_>; 8] = [
        Box::new(|| {
            let mut plan = Vec::with_capacity(window.id.len());
            decide(black_box(window), &LATENCIES, |request, worker, choice| {
                plan.push((request, worker, choice));
            });
            black_box(&plan);
        }),
        Box::new(|| {
            let window = black_box(window).lists();
            let plan = guest.call_by_lists(&mut *store.borrow_mut(), window);
            black_box(&plan.unwrap());
        }),
        Box::new(|| {
            let window = black_box(window).columns();
            let plan = guest.call_by_columns(&mut *store.borrow_mut(), window);
            black_box(&plan.unwrap());
        }),
        Box::new(|| {
            let window = black_box(window);
            // Making the records is part of the price of this layout.
            window.write_workers(&mut workers);
            let plan = guest.call_by_groups(&mut *store.borrow_mut(), window.groups(&workers));
            black_box(&plan.unwrap());
        }),
        Box::new(|| {
            let window = black_box(window);
            window.write_requests(&mut rows.0);
            window.write_workers(&mut rows.1);
            let window = window.records(&rows.0, &rows.1);
            let plan = guest.call_by_records(&mut *store.borrow_mut(), window);
            black_box(&plan.unwrap());
        }),
        Box::new(|| {
            black_box(window).write_words(&mut words);
            let plan = guest.call_by_words(&mut *store.borrow_mut(), &words);
            black_box(&plan.unwrap());
        }),
        Box::new(|| {
            let plan = guest.call_by_calls(&mut *store.borrow_mut(), window.now);
            black_box(&plan.unwrap());
        }),
        Box::new(|| guest.call_empty(&mut *store.borrow_mut()).unwrap()),
    ];
    medians_us(&mut calls)
}

/// An instance as the host runs policies, without a budget: no call runs away.
fn instance(window: &Columns) -> (Store<Columns>, bindings::Layouts) {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .epoch_interruption(true)
        .wasm_relaxed_simd(false);
    let engine = Engine::new(&config).unwrap();
    let file = component_file("SWITCHYARD_GUESTS", "policies-test", "layouts");
    let component = Component::from_file(&engine, &file).unwrap_or_else(|error| {
        panic!(
            "{}: {error:#}; run `cargo xtask plugins --with-guests` first",
            file.display()
        )
    });
    let mut store = Store::new(&engine, window.clone());
    store.set_epoch_deadline(u64::MAX / 2);
    let mut linker = Linker::new(&engine);
    bindings::Layouts::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
    let instance = bindings::Layouts::instantiate(&mut store, &component, &linker).unwrap();
    (store, instance)
}

impl fetch::Host for Columns {
    fn pending(&mut self) -> fetch::RequestColumns {
        fetch::RequestColumns {
            id: self.id.clone(),
            app: self.app.clone(),
            arrival: self.arrival.clone(),
            deadline: self.deadline.clone(),
            priority: self.priority.clone(),
            min_accuracy: self.min_accuracy.clone(),
        }
    }

    fn state(&mut self) -> Vec<fetch::Worker> {
        let worker = |w: usize| fetch::Worker {
            busy_until: self.busy_until[w],
            free_at: self.free_at[w],
            running_since: self.running_since[w],
            running_variant: self.running_variant[w],
            queued: self.queued[w],
            parked: self.parked[w],
            free_memory: self.free_memory[w],
            up: self.up[w] != 0,
        };
        (0..self.up.len()).map(worker).collect()
    }
}

impl Columns {
    fn new(pending: u64, workers: u64) -> Self {
        let now = 10_000_000;
        let mut made = Self {
            now,
            arrival_rate: vec![100.0; 3],
            ..Self::default()
        };
        for n in 0..pending {
            made.id.push(1_000 + n);
            made.app.push((n % 3) as u32);
            made.arrival.push(now - pending + n);
            // Neither sorted nor random: neighbours differ, and the pattern repeats late.
            made.deadline.push(now + (n * 7_919) % 10_007 * 10);
            made.priority.push((n % 2) as u32);
            made.min_accuracy.push(0.0);
        }
        for n in 0..workers {
            made.busy_until.push(now + 100 * n);
            made.free_at.push(now + 200 * n);
            made.running_since.push(now);
            made.running_variant.push(0);
            made.queued.push(0);
            made.parked.push(0);
            made.free_memory.push(1 << 30);
            made.up.push(1);
        }
        made
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

    fn pending(&self) -> Option<shapes::RequestColumns<'_>> {
        (!self.id.is_empty()).then(|| self.request_columns())
    }

    fn worker_columns(&self) -> shapes::WorkerColumns<'_> {
        shapes::WorkerColumns {
            busy_until: &self.busy_until,
            free_at: &self.free_at,
            running_since: &self.running_since,
            running_variant: &self.running_variant,
            queued: &self.queued,
            parked: &self.parked,
            free_memory: &self.free_memory,
            up: &self.up,
        }
    }

    fn lists(&self) -> shapes::ListsWindow<'_> {
        shapes::ListsWindow {
            id: 1,
            now: self.now,
            because: 1,
            requests: self.request_columns(),
            progress: &[],
            evidence_index: &[],
            evidence_counts: &[],
            workers: self.worker_columns(),
            placed: shapes::PlacedColumns {
                id: &[],
                app: &[],
                arrival: &[],
                deadline: &[],
                worker: &[],
                variant: &[],
                batch: &[],
                state: &[],
            },
            residents: &[],
            arrival_rate: &self.arrival_rate,
            completions: &[],
        }
    }

    fn columns(&self) -> shapes::ColumnsWindow<'_> {
        shapes::ColumnsWindow {
            id: 1,
            now: self.now,
            because: 1,
            requests: self.pending(),
            progress: None,
            evidence: None,
            workers: self.worker_columns(),
            placed: None,
            residents: None,
            arrival_rate: &self.arrival_rate,
            completions: None,
        }
    }

    fn groups<'a>(&'a self, workers: &'a [shapes::Worker]) -> shapes::GroupsWindow<'a> {
        shapes::GroupsWindow {
            id: 1,
            now: self.now,
            because: 1,
            requests: self.pending(),
            progress: None,
            evidence: None,
            workers,
            placed: None,
            residents: None,
            arrival_rate: &self.arrival_rate,
            completions: None,
        }
    }

    fn records<'a>(
        &'a self,
        requests: &'a [shapes::Request],
        workers: &'a [shapes::Worker],
    ) -> shapes::RecordsWindow<'a> {
        shapes::RecordsWindow {
            id: 1,
            now: self.now,
            because: 1,
            requests,
            progress: None,
            evidence: None,
            workers,
            placed: None,
            residents: None,
            arrival_rate: &self.arrival_rate,
            completions: None,
        }
    }

    fn write_workers(&self, rows: &mut Vec<shapes::Worker>) {
        rows.clear();
        rows.extend((0..self.up.len()).map(|w| shapes::Worker {
            busy_until: self.busy_until[w],
            free_at: self.free_at[w],
            running_since: self.running_since[w],
            running_variant: self.running_variant[w],
            queued: self.queued[w],
            parked: self.parked[w],
            free_memory: self.free_memory[w],
            up: self.up[w] != 0,
        }));
    }

    fn write_requests(&self, rows: &mut Vec<shapes::Request>) {
        rows.clear();
        rows.extend((0..self.id.len()).map(|r| shapes::Request {
            id: self.id[r],
            app: self.app[r],
            arrival: self.arrival[r],
            deadline: self.deadline[r],
            priority: self.priority[r],
            min_accuracy: self.min_accuracy[r],
        }));
    }

    fn write_words(&self, words: &mut Vec<u64>) {
        words.clear();
        words.extend([self.now, self.id.len() as u64, self.up.len() as u64]);
        for column in [&self.id, &self.arrival, &self.deadline] {
            words.extend_from_slice(column);
        }
        push_halves(words, self.app.iter().copied());
        push_halves(words, self.priority.iter().copied());
        push_halves(words, self.min_accuracy.iter().map(|v| v.to_bits()));
        for column in [
            &self.busy_until,
            &self.free_at,
            &self.running_since,
            &self.free_memory,
        ] {
            words.extend_from_slice(column);
        }
        for column in [&self.running_variant, &self.queued, &self.parked] {
            push_halves(words, column.iter().copied());
        }
        push_halves(words, self.up.iter().map(|&up| u32::from(up)));
        words.extend(self.arrival_rate.iter().map(|rate| rate.to_bits()));
    }
}

/// Two values of 32 bits in each word.
fn push_halves(words: &mut Vec<u64>, column: impl ExactSizeIterator<Item = u32>) {
    let mut column = column;
    while let Some(low) = column.next() {
        let high = column.next().unwrap_or_default();
        words.push(u64::from(low) | u64::from(high) << 32);
    }
}

impl WindowView for Columns {
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
