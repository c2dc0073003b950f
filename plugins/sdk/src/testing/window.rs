//! Windows line by line.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::ids::VariantId;
use crate::window::PlacedState;

/// Builds a window. Methods that describe a request change the one added last. Requests have
/// the ids 1, 2, and so on, in the order they were added; workers are idle until told
/// otherwise.
#[derive(Clone)]
pub struct WindowBuilder<'a> {
    catalog: &'a Catalog,
    window: raw::Window,
    requests: Vec<Row>,
}

#[derive(Clone)]
struct Row {
    id: u64,
    app: u32,
    arrival: u64,
    deadline: Option<u64>,
    priority: u32,
    min_accuracy: f32,
    progress: Option<(u32, u32, u32)>,
    evidence: Option<Vec<u32>>,
}

// === impl WindowBuilder ===

impl<'a> WindowBuilder<'a> {
    /// A window at 1 s on the host's clock, opened by an arrival.
    pub fn new(catalog: &'a Catalog) -> Self {
        let n = catalog.workers().len();
        let free_memory = catalog
            .workers()
            .map(|worker| worker.memory_bytes)
            .collect();
        let window = raw::Window {
            id: 1,
            now: 1_000_000,
            because: raw::Causes::ARRIVAL,
            requests: no_requests(),
            workers: raw::Workers {
                busy_until: vec![0; n],
                free_at: vec![0; n],
                running_since: vec![0; n],
                running_variant: vec![u32::MAX; n],
                queued: vec![0; n],
                parked: vec![0; n],
                free_memory,
                up: vec![1; n],
            },
            placed: nothing_placed(),
            residents: Vec::new(),
            arrival_rate: vec![0.0; catalog.apps().len()],
            completions: Vec::new(),
        };
        Self {
            catalog,
            window,
            requests: Vec::new(),
        }
    }

    /// The time, on the host's clock. Comes before the requests, which arrive now unless
    /// told otherwise.
    pub fn now_us(mut self, now_us: u64) -> Self {
        self.window.now = now_us;
        self
    }

    /// Why it was opened.
    pub fn because(mut self, causes: raw::Causes) -> Self {
        self.window.because = causes;
        self
    }

    /// A pending request that arrived just now, with its app's deadline.
    ///
    /// # Panics
    /// The catalog has no such app.
    pub fn request(mut self, app: &str) -> Self {
        let app = self
            .catalog
            .app_named(app)
            .expect("the catalog has this app")
            .id
            .0;
        self.requests.push(Row {
            id: self.requests.len() as u64 + 1,
            app,
            arrival: self.window.now,
            deadline: None,
            priority: 0,
            min_accuracy: 0.0,
            progress: None,
            evidence: None,
        });
        self
    }

    /// Several alike.
    pub fn requests(self, count: usize, app: &str) -> Self {
        (0..count).fold(self, |window, _| window.request(app))
    }

    /// How long ago the request arrived.
    pub fn age_us(mut self, age_us: u64) -> Self {
        self.last().arrival = self.window.now - age_us;
        self
    }

    /// Time left to the request's deadline; negative once it has passed.
    pub fn slack_us(mut self, slack_us: i64) -> Self {
        self.last().deadline = Some(self.window.now.saturating_add_signed(slack_us));
        self
    }

    /// The request's priority.
    pub fn priority(mut self, priority: u32) -> Self {
        self.last().priority = priority;
        self
    }

    /// The accuracy its client asks for.
    pub fn min_accuracy(mut self, accuracy: f32) -> Self {
        self.last().min_accuracy = accuracy;
        self
    }

    /// The labels of its neighbours, one count per class.
    pub fn evidence(mut self, counts: &[u32]) -> Self {
        self.last().evidence = Some(counts.to_vec());
        self
    }

    /// The request has run some stages of a variant on a worker.
    pub fn parked(mut self, worker: u32, variant: u32, stages_run: u32) -> Self {
        self.last().progress = Some((worker, variant, stages_run));
        self.window.workers.parked[worker as usize] += 1;
        self
    }

    /// The worker runs a variant for so long from now.
    pub fn busy(mut self, worker: usize, variant: u32, for_us: u64) -> Self {
        let (now, workers) = (self.window.now, &mut self.window.workers);
        workers.running_variant[worker] = variant;
        workers.running_since[worker] = now;
        workers.busy_until[worker] = now + for_us;
        workers.free_at[worker] = now + for_us;
        self
    }

    /// Batches wait in the worker's queue, and are done so long from now.
    pub fn queued(mut self, worker: usize, batches: u32, done_in_us: u64) -> Self {
        self.window.workers.queued[worker] = batches;
        self.window.workers.free_at[worker] = self.window.now + done_in_us;
        self
    }

    /// A request that is not pending: in a lane (batch 0), queued or running on a worker, with
    /// so much time since it arrived. Its id follows those placed before it, from 1,000 on.
    ///
    /// # Panics
    /// The catalog has no such variant.
    pub fn placed(
        mut self,
        worker: u32,
        variant: u32,
        batch: u64,
        state: PlacedState,
        age_us: u64,
    ) -> Self {
        let app = self.catalog.variant(VariantId(variant)).app();
        let (arrival, placed) = (self.window.now - age_us, &mut self.window.placed);
        placed.id.push(1_000 + placed.id.len() as u64);
        placed.app.push(app.0);
        placed.arrival.push(arrival);
        placed.deadline.push(arrival + self.catalog.app(app).slo);
        placed.worker.push(worker);
        placed.variant.push(variant);
        placed.batch.push(batch);
        placed.state.push(match state {
            PlacedState::Lane => 0,
            PlacedState::Queued => 1,
            PlacedState::Running => 2,
        });
        self
    }

    /// Requests of the app per second.
    pub fn arrival_rate(mut self, app: usize, per_s: f64) -> Self {
        self.window.arrival_rate[app] = per_s;
        self
    }

    /// The worker is away.
    pub fn away(mut self, worker: usize) -> Self {
        self.window.workers.up[worker] = 0;
        self
    }

    /// The worker holds a variant.
    pub fn resident(mut self, worker: u32, variant: u32) -> Self {
        self.window
            .residents
            .push(raw::Resident { worker, variant });
        self
    }

    /// Every worker holds every variant.
    pub fn all_resident(mut self) -> Self {
        for worker in self.catalog.workers() {
            for variant in self.catalog.variants() {
                self = self.resident(worker.id.0, variant.id.0);
            }
        }
        self
    }

    /// The window.
    pub fn build(mut self) -> raw::Window {
        self.requests.sort_by_key(|row| row.arrival);
        let columns = &mut self.window.requests;
        for (index, row) in (0u32..).zip(self.requests) {
            let slo = self.catalog.app(crate::AppId(row.app)).slo;
            columns.id.push(row.id);
            columns.app.push(row.app);
            columns.arrival.push(row.arrival);
            columns
                .deadline
                .push(row.deadline.unwrap_or(row.arrival + slo));
            columns.priority.push(row.priority);
            columns.min_accuracy.push(row.min_accuracy);
            if let Some((worker, variant, stages_run)) = row.progress {
                columns.progress.push(raw::Progress {
                    index,
                    worker,
                    variant,
                    stages_run,
                });
            }
            if let Some(counts) = row.evidence {
                columns.evidence_index.push(index);
                columns.evidence_counts.extend(counts);
            }
        }
        self.window
    }

    fn last(&mut self) -> &mut Row {
        self.requests.last_mut().expect("a request comes first")
    }
}

fn no_requests() -> raw::Requests {
    raw::Requests {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        priority: Vec::new(),
        min_accuracy: Vec::new(),
        progress: Vec::new(),
        evidence_index: Vec::new(),
        evidence_counts: Vec::new(),
    }
}

fn nothing_placed() -> raw::Placed {
    raw::Placed {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        worker: Vec::new(),
        variant: Vec::new(),
        batch: Vec::new(),
        state: Vec::new(),
    }
}
