//! The same window in three memory layouts, for a benchmark.

mod blob;
mod logic;

use std::cell::RefCell;

use blob::BlobWindow;
use exports::switchyard::layouts::shapes::{
    Dispatch, DispatchColumns, Guest, Request, RequestColumns, Worker, WorkerColumns,
};
use logic::{WindowView, decide};

#[allow(missing_docs, clippy::all)] // Generated; the documentation is in the WIT.
mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "layouts",
    });
}

pub use bindings::exports;

thread_local! {
    static LATENCIES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The component.
pub struct Layouts;

struct RecordsWindow {
    now: u64,
    requests: Vec<Request>,
    workers: Vec<Worker>,
}

struct ColumnsWindow {
    now: u64,
    requests: RequestColumns,
    workers: WorkerColumns,
}

impl Guest for Layouts {
    fn configure(latencies: Vec<u64>) {
        LATENCIES.set(latencies);
    }

    fn empty() {}

    fn by_records(now: u64, requests: Vec<Request>, workers: Vec<Worker>) -> Vec<Dispatch> {
        let mut plan = Vec::with_capacity(requests.len());
        let window = RecordsWindow {
            now,
            requests,
            workers,
        };
        LATENCIES.with_borrow(|latencies| {
            decide(&window, latencies, |request, worker, choice| {
                plan.push(Dispatch {
                    request,
                    worker,
                    choice,
                });
            });
        });
        plan
    }

    fn by_columns(now: u64, requests: RequestColumns, workers: WorkerColumns) -> DispatchColumns {
        let count = requests.id.len();
        let mut plan = DispatchColumns {
            request: Vec::with_capacity(count),
            worker: Vec::with_capacity(count),
            choice: Vec::with_capacity(count),
        };
        let window = ColumnsWindow {
            now,
            requests,
            workers,
        };
        LATENCIES.with_borrow(|latencies| {
            decide(&window, latencies, |request, worker, choice| {
                plan.request.push(request);
                plan.worker.push(worker);
                plan.choice.push(choice);
            });
        });
        plan
    }

    fn by_blob(window: Vec<u8>) -> Vec<u8> {
        let window = BlobWindow::new(&window);
        let mut plan = Vec::with_capacity(16 * window.requests());
        LATENCIES.with_borrow(|latencies| {
            decide(&window, latencies, |request, worker, choice| {
                plan.extend_from_slice(&request.to_le_bytes());
                plan.extend_from_slice(&worker.to_le_bytes());
                plan.extend_from_slice(&choice.to_le_bytes());
            });
        });
        plan
    }
}

impl WindowView for RecordsWindow {
    fn now(&self) -> u64 {
        self.now
    }

    fn requests(&self) -> usize {
        self.requests.len()
    }

    fn id(&self, request: usize) -> u64 {
        self.requests[request].id
    }

    fn deadline(&self, request: usize) -> u64 {
        self.requests[request].deadline
    }

    fn priority(&self, request: usize) -> u32 {
        self.requests[request].priority
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn busy_until(&self, worker: usize) -> u64 {
        self.workers[worker].busy_until
    }
}

impl WindowView for ColumnsWindow {
    fn now(&self) -> u64 {
        self.now
    }

    fn requests(&self) -> usize {
        self.requests.id.len()
    }

    fn id(&self, request: usize) -> u64 {
        self.requests.id[request]
    }

    fn deadline(&self, request: usize) -> u64 {
        self.requests.deadline[request]
    }

    fn priority(&self, request: usize) -> u32 {
        self.requests.priority[request]
    }

    fn workers(&self) -> usize {
        self.workers.busy_until.len()
    }

    fn busy_until(&self, worker: usize) -> u64 {
        self.workers.busy_until[worker]
    }
}

// Names such as `a:b/c#d` are no symbols for a native linker.
#[cfg(target_family = "wasm")]
bindings::export!(Layouts with_types_in bindings);
