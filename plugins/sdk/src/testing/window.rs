//! Windows line by line.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::convert::to_raw;
use crate::ids::VariantId;
use crate::window::PlacedState;

/// Builds a window. Methods that describe a request change the one added last, or all of the group
/// that [`requests`](Self::requests) added last. Requests have the ids 1, 2, and so on, in the order
/// they were added; workers are idle by default.
#[derive(Clone)]
pub struct WindowBuilder<'a> {
    catalog: &'a Catalog,
    window: raw::Window,
    requests: Vec<RequestRow>,
    /// Position of the first request of the group added last.
    group: usize,
}

/// One request, before it becomes part of the columns.
#[derive(Clone)]
struct RequestRow {
    id: u64,
    app: u32,
    arrival: u64,
    deadline: Option<u64>,
    priority: u32,
    min_quality: f32,
    cost: f32,
    progress: Option<(u32, u32, u32)>,
    evidence: Option<Vec<u32>>,
}

// === impl WindowBuilder ===

impl<'a> WindowBuilder<'a> {
    /// A window at 1 s on the host's clock, opened by an arrival.
    pub fn new(catalog: &'a Catalog) -> Self {
        let n = catalog.workers().len();
        let workers = catalog.workers();
        let free_memory = workers.map(|worker| worker.memory_bytes).collect();
        let window = raw::Window {
            id: 1,
            now: 1_000_000,
            because: raw::Causes::ARRIVAL,
            workers: raw::Workers {
                index: None,
                busy_until: vec![0; n],
                free_at: vec![0; n],
                running_since: vec![0; n],
                running_variant: vec![u32::MAX; n],
                queued: vec![0; n],
                parked: vec![0; n],
                free_memory,
                up: vec![1; n],
            },
            arrival_rate: vec![0.0; catalog.apps().len()],
            ..to_raw::empty_window()
        };
        Self {
            catalog,
            window,
            requests: Vec::new(),
            group: 0,
        }
    }

    /// The time, on the host's clock. Call it before the requests, which arrive now by default.
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
    pub fn request(self, app: &str) -> Self {
        self.requests(1, app)
    }

    /// A group of equal requests, as by [`request`](Self::request).
    ///
    /// # Panics
    /// The catalog has no such app.
    pub fn requests(mut self, count: usize, app: &str) -> Self {
        let app = self.catalog.app_named(app);
        let app = app.expect("the catalog has this app").id.0;
        self.group = self.requests.len();
        let ids = (self.group as u64 + 1..).take(count);
        let arrival = self.window.now;
        self.requests.extend(ids.map(|id| RequestRow {
            id,
            app,
            arrival,
            deadline: None,
            priority: 0,
            min_quality: 0.0,
            cost: 1.0,
            progress: None,
            evidence: None,
        }));
        self
    }

    /// Time since the arrival.
    pub fn age_us(self, age_us: u64) -> Self {
        let arrival = self.window.now - age_us;
        self.describe(|row| row.arrival = arrival)
    }

    /// Time left to the deadline; negative once it has passed.
    pub fn slack_us(self, slack_us: i64) -> Self {
        let deadline = self.window.now.saturating_add_signed(slack_us);
        self.describe(|row| row.deadline = Some(deadline))
    }

    /// The priority.
    pub fn priority(self, priority: u32) -> Self {
        self.describe(|row| row.priority = priority)
    }

    /// Least quality that the client asks for.
    pub fn min_quality(self, quality: f32) -> Self {
        self.describe(|row| row.min_quality = quality)
    }

    /// The cost of the request in rows of the profile; 1 by default.
    pub fn cost(self, rows: f32) -> Self {
        self.describe(|row| row.cost = rows)
    }

    /// Observed over profiled latency of a kind of workers; 1 for the others.
    ///
    /// # Panics
    /// The catalog has no such kind.
    pub fn slowdown(mut self, kind: usize, ratio: f64) -> Self {
        let kinds = self.catalog.kinds();
        let by_kind = self.window.slowdown.get_or_insert_with(|| vec![1.0; kinds]);
        by_kind[kind] = ratio;
        self
    }

    /// The labels of the neighbours, one count per class.
    pub fn evidence(self, counts: &[u32]) -> Self {
        self.describe(|row| row.evidence = Some(counts.to_vec()))
    }

    /// The request has run some stages of a variant on a worker.
    pub fn parked(mut self, worker: u32, variant: u32, stages_run: u32) -> Self {
        let added = (self.requests.len() - self.group) as u32;
        self.window.workers.parked[worker as usize] += added;
        self.describe(|row| row.progress = Some((worker, variant, stages_run)))
    }

    /// The worker runs a variant for this long from now.
    pub fn busy(mut self, worker: usize, variant: u32, for_us: u64) -> Self {
        let (now, workers) = (self.window.now, &mut self.window.workers);
        workers.running_variant[worker] = variant;
        workers.running_since[worker] = now;
        workers.busy_until[worker] = now + for_us;
        workers.free_at[worker] = now + for_us;
        self
    }

    /// Batches wait in the worker's queue and end after this time from now.
    pub fn queued(mut self, worker: usize, batches: u32, done_in_us: u64) -> Self {
        self.window.workers.queued[worker] = batches;
        self.window.workers.free_at[worker] = self.window.now + done_in_us;
        self
    }

    /// A request that is not pending: in a lane (batch 0), queued or running on a worker; `age_us`
    /// is the time since its arrival. Ids count up from 1,000.
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
        let arrival = self.window.now - age_us;
        let placed = self
            .window
            .placed
            .get_or_insert_with(to_raw::nothing_placed);
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
        let residents = self.window.residents.get_or_insert_default();
        residents.push(raw::Resident { worker, variant });
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
        let window = &mut self.window;
        if !self.requests.is_empty() {
            window.requests = Some(to_raw::no_requests());
        }
        if self.requests.iter().any(|row| row.cost != 1.0) {
            window.cost = Some(self.requests.iter().map(|row| row.cost).collect());
        }
        for (index, row) in (0u32..).zip(self.requests) {
            let slo = self.catalog.app(crate::AppId(row.app)).slo;
            let columns = window.requests.get_or_insert_with(to_raw::no_requests);
            columns.id.push(row.id);
            columns.app.push(row.app);
            columns.arrival.push(row.arrival);
            columns
                .deadline
                .push(row.deadline.unwrap_or(row.arrival + slo));
            columns.priority.push(row.priority);
            columns.min_quality.push(row.min_quality);
            if let Some((worker, variant, stages_run)) = row.progress {
                window.progress.get_or_insert_default().push(raw::Progress {
                    index,
                    worker,
                    variant,
                    stages_run,
                });
            }
            if let Some(counts) = row.evidence {
                let evidence = window.evidence.get_or_insert_with(|| raw::Evidence {
                    index: Vec::new(),
                    counts: Vec::new(),
                });
                evidence.index.push(index);
                evidence.counts.extend(counts);
            }
        }
        self.window
    }

    fn describe(mut self, change: impl Fn(&mut RequestRow)) -> Self {
        assert!(!self.requests.is_empty(), "a request comes first");
        self.requests[self.group..].iter_mut().for_each(change);
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::testing::{CatalogBuilder, WindowBuilder};

    #[test]
    fn a_description_is_of_the_whole_group_added_last() {
        let catalog = CatalogBuilder::new()
            .app("a", &["x"])
            .variant("net", &[0.9])
            .stages(2)
            .worker("w")
            .build();
        let window = WindowBuilder::new(&catalog)
            .request("a")
            .slack_us(50)
            .requests(2, "a")
            .slack_us(150)
            .parked(0, 0, 1)
            .request("a")
            .build();
        let now = window.now;
        let requests = window.requests.as_ref().unwrap();
        assert_eq!(requests.id, [1, 2, 3, 4]);
        let deadlines = [now + 50, now + 150, now + 150, now + 100_000];
        assert_eq!(requests.deadline, deadlines);
        assert_eq!(window.workers.parked, [2]);
        let parked = window.progress.iter().flatten().map(|p| p.index);
        assert_eq!(parked.collect::<Vec<_>>(), [1, 2]);
    }
}
