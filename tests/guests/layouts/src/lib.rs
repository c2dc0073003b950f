//! The same window in several memory layouts, for a benchmark.

mod logic;
mod words;

use std::cell::RefCell;

use bindings::switchyard::layouts::fetch;
use exports::switchyard::layouts::shapes::{
    ColumnsWindow, Dispatch, GroupsWindow, Guest, ListsWindow, RecordsWindow, Request,
    RequestColumns, Worker, WorkerColumns,
};
use logic::{WindowView, decide};
use words::WordsWindow;

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

/// Requests and workers in some layout.
struct View<'a, R: ?Sized, W: ?Sized> {
    now: u64,
    requests: &'a R,
    workers: &'a W,
}

/// Pending requests in some layout.
trait Requests {
    fn len(&self) -> usize;
    fn id(&self, at: usize) -> u64;
    fn deadline(&self, at: usize) -> u64;
    fn priority(&self, at: usize) -> u32;
}

/// Workers in some layout.
trait Workers {
    fn len(&self) -> usize;
    fn busy_until(&self, at: usize) -> u64;
}

impl Guest for Layouts {
    fn configure(latencies: Vec<u64>) {
        LATENCIES.set(latencies);
    }

    fn empty() {}

    fn by_lists(window: ListsWindow) -> Vec<Dispatch> {
        plan(window.now, &window.requests, &window.workers)
    }

    fn by_columns(window: ColumnsWindow) -> Vec<Dispatch> {
        let requests = window.requests.unwrap_or_else(none);
        plan(window.now, &requests, &window.workers)
    }

    fn by_groups(window: GroupsWindow) -> Vec<Dispatch> {
        let requests = window.requests.unwrap_or_else(none);
        plan(window.now, &requests, &*window.workers)
    }

    fn by_records(window: RecordsWindow) -> Vec<Dispatch> {
        plan(window.now, &*window.requests, &*window.workers)
    }

    fn by_words(window: Vec<u64>) -> Vec<Dispatch> {
        answer(&WordsWindow::new(&window))
    }

    fn by_calls(now: u64) -> Vec<Dispatch> {
        let (pending, state) = (fetch::pending(), fetch::state());
        plan(now, &pending, &*state)
    }
}

fn none() -> RequestColumns {
    RequestColumns {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        priority: Vec::new(),
        min_accuracy: Vec::new(),
    }
}

fn plan<R: Requests + ?Sized, W: Workers + ?Sized>(
    now: u64,
    requests: &R,
    workers: &W,
) -> Vec<Dispatch> {
    answer(&View {
        now,
        requests,
        workers,
    })
}

fn answer(view: &impl WindowView) -> Vec<Dispatch> {
    let mut plan = Vec::with_capacity(view.requests());
    LATENCIES.with_borrow(|latencies| {
        decide(view, latencies, |request, worker, choice| {
            plan.push(Dispatch {
                request,
                worker,
                choice,
            });
        });
    });
    plan
}

impl<R: Requests + ?Sized, W: Workers + ?Sized> WindowView for View<'_, R, W> {
    fn now(&self) -> u64 {
        self.now
    }

    fn requests(&self) -> usize {
        self.requests.len()
    }

    fn id(&self, request: usize) -> u64 {
        self.requests.id(request)
    }

    fn deadline(&self, request: usize) -> u64 {
        self.requests.deadline(request)
    }

    fn priority(&self, request: usize) -> u32 {
        self.requests.priority(request)
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn busy_until(&self, worker: usize) -> u64 {
        self.workers.busy_until(worker)
    }
}

/// Columns have two types: those that cross with the call, and those that the guest fetches.
macro_rules! shapes {
    ($columns:ty, $worker:ty) => {
        impl Requests for $columns {
            fn len(&self) -> usize {
                self.id.len()
            }

            fn id(&self, at: usize) -> u64 {
                self.id[at]
            }

            fn deadline(&self, at: usize) -> u64 {
                self.deadline[at]
            }

            fn priority(&self, at: usize) -> u32 {
                self.priority[at]
            }
        }

        impl Workers for [$worker] {
            fn len(&self) -> usize {
                self.len()
            }

            fn busy_until(&self, at: usize) -> u64 {
                self[at].busy_until
            }
        }
    };
}

shapes!(RequestColumns, Worker);
shapes!(fetch::RequestColumns, fetch::Worker);

impl Requests for [Request] {
    fn len(&self) -> usize {
        self.len()
    }

    fn id(&self, at: usize) -> u64 {
        self[at].id
    }

    fn deadline(&self, at: usize) -> u64 {
        self[at].deadline
    }

    fn priority(&self, at: usize) -> u32 {
        self[at].priority
    }
}

impl Workers for WorkerColumns {
    fn len(&self) -> usize {
        self.busy_until.len()
    }

    fn busy_until(&self, at: usize) -> u64 {
        self.busy_until[at]
    }
}

// Names such as `a:b/c#d` are no symbols for a native linker.
#[cfg(target_family = "wasm")]
bindings::export!(Layouts with_types_in bindings);
