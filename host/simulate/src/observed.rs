//! Every request, batch or window of a run as a row. A run is the same each time, so the rows are those
//! of the runs whose means a report shows.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::event::{Launch, Notice, Reply};
use switchyard_core::ids::{ExitId, VariantId};
use switchyard_core::request::Outcome;
use switchyard_core::time::Time;
use switchyard_sim::{BatchCost, Observer};

use crate::tables::{ColumnTable, NameList, Values};

/// The rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// One per request, in the order of their ends.
    Requests,
    /// One per batch, in the order of their starts.
    Batches,
    /// One per window, in their order.
    Windows,
}

/// Collects rows of several kinds of one run.
pub(crate) struct RowCollectors(Vec<RowCollector>);

/// Collects the rows of one run.
enum RowCollector {
    Requests(RequestRows),
    Batches(BatchRows),
    Windows(WindowRows),
}

#[derive(Default)]
struct RequestRows {
    request: Vec<u64>,
    app: Vec<i32>,
    arrival_us: Vec<u64>,
    latency_us: Vec<u64>,
    outcome: Vec<i32>,
    variant: Vec<i32>,
    exit: Vec<i32>,
    worker: Vec<i32>,
    batch: Vec<i64>,
    batch_size: Vec<i64>,
    started_us: Vec<i64>,
    window: Vec<i64>,
    exits: NameList,
    catalog: Arc<Catalog>,
    /// The worker of each batch that has started.
    workers: HashMap<u64, i32>,
}

#[derive(Default)]
struct BatchRows {
    batch: Vec<u64>,
    worker: Vec<i32>,
    variant: Vec<i32>,
    from_stage: Vec<u64>,
    to_stage: Vec<u64>,
    exit: Vec<i32>,
    size: Vec<u64>,
    start_us: Vec<u64>,
    load_us: Vec<u64>,
    service_us: Vec<u64>,
    energy_j: Vec<f64>,
    exits: NameList,
    catalog: Arc<Catalog>,
}

#[derive(Default)]
pub(crate) struct WindowRows {
    window: Vec<u64>,
    at_us: Vec<u64>,
    because: Vec<i32>,
    pending: Vec<u64>,
    dispatches: Vec<u64>,
    dispatched: Vec<u64>,
    revokes: Vec<u64>,
    rejects: Vec<u64>,
    answers: Vec<u64>,
    by: Vec<i32>,
    rescue: Vec<u8>,
    fault: Vec<i32>,
    causes: NameList,
    policies: NameList,
    faults: NameList,
    /// The fault of the window that is decided next.
    failed: Option<String>,
}

// === impl RowCollectors ===

impl RowCollectors {
    pub(crate) fn new(kinds: &[RowKind], catalog: &Arc<Catalog>) -> Self {
        let of_kind = |&kind: &RowKind| RowCollector::new(kind, catalog);
        Self(kinds.iter().map(of_kind).collect())
    }

    /// The rows by kind, with the point, policy and seed of their run.
    pub(crate) fn finish(self, point: &str, policy: &str, seed: u64) -> Vec<ColumnTable> {
        let name = |name: &str, rows| NameList::of([name.to_owned()]).with(vec![0; rows]);
        let with_run = |collector: RowCollector| {
            let rows = collector.rows();
            let run = ColumnTable::default()
                .with("point", name(point, rows))
                .with("policy", name(policy, rows))
                .with("seed", Values::Whole(vec![seed; rows]));
            collector.finish(run)
        };
        self.0.into_iter().map(with_run).collect()
    }
}

impl Observer for RowCollectors {
    fn ran(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        for collector in &mut self.0 {
            collector.ran(now, launch, cost);
        }
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        self.0.iter_mut().for_each(|own| own.ended(now, reply));
    }

    fn decided(&mut self, decision: &Arc<Decision>) {
        self.0.iter_mut().for_each(|own| own.decided(decision));
    }

    fn noticed(&mut self, notice: &Notice) {
        self.0.iter_mut().for_each(|own| own.noticed(notice));
    }
}

// === impl RowCollector ===

impl RowCollector {
    fn new(kind: RowKind, catalog: &Arc<Catalog>) -> Self {
        let catalog = Arc::clone(catalog);
        match kind {
            RowKind::Requests => Self::Requests(RequestRows {
                catalog,
                ..RequestRows::default()
            }),
            RowKind::Batches => Self::Batches(BatchRows {
                catalog,
                ..BatchRows::default()
            }),
            RowKind::Windows => Self::Windows(WindowRows::default()),
        }
    }

    /// The rows, after the columns `before`.
    fn finish(self, before: ColumnTable) -> ColumnTable {
        match self {
            Self::Requests(rows) => rows.finish(before),
            Self::Batches(rows) => rows.finish(before),
            Self::Windows(rows) => rows.finish(before),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Requests(rows) => rows.request.len(),
            Self::Batches(rows) => rows.batch.len(),
            Self::Windows(rows) => rows.window.len(),
        }
    }
}

impl Observer for RowCollector {
    fn ran(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        match self {
            Self::Requests(rows) => {
                let worker = i32::try_from(launch.worker.0).unwrap_or(-1);
                rows.workers.insert(launch.batch.0, worker);
            }
            Self::Batches(rows) => rows.add(now, launch, cost),
            Self::Windows(_) => {}
        }
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        if let Self::Requests(rows) = self {
            rows.add(now, reply);
        }
    }

    fn decided(&mut self, decision: &Arc<Decision>) {
        if let Self::Windows(rows) = self {
            rows.add(decision);
        }
    }

    fn noticed(&mut self, notice: &Notice) {
        if let (Self::Windows(rows), Notice::PolicyFaulted(faulted)) = (self, notice) {
            rows.failed = Some(faulted.fault.to_string());
        }
    }
}

// === impl RequestRows ===

impl RequestRows {
    fn add(&mut self, now: Time, reply: &Reply) {
        let answered = match reply.outcome {
            Outcome::Answered { variant, exit, .. } => Some((variant, exit)),
            _ => None,
        };
        self.request.push(reply.request.0);
        self.app.push(code(reply.app.0));
        self.arrival_us.push(now.0.saturating_sub(reply.latency.0));
        self.latency_us.push(reply.latency.0);
        let label = reply.outcome.label();
        let outcome = Outcome::LABELS.iter().position(|known| *known == label);
        self.outcome.push(outcome.map_or(-1, |at| at as i32));
        self.variant
            .push(answered.map_or(-1, |(variant, _)| code(variant.0)));
        let exit = answered.and_then(|(variant, exit)| exit_name(&self.catalog, variant, exit));
        self.exit
            .push(exit.map_or(-1, |name| self.exits.code(name)));
        let worker = reply.ran.and_then(|ran| self.workers.get(&ran.batch.0));
        self.worker.push(worker.copied().unwrap_or(-1));
        self.batch
            .push(reply.ran.map_or(-1, |ran| signed(ran.batch.0)));
        self.batch_size
            .push(reply.ran.map_or(-1, |ran| i64::from(ran.size)));
        self.started_us
            .push(reply.ran.map_or(-1, |ran| signed(ran.since.0)));
        let window = reply.decided.as_ref().map(|decided| decided.window);
        self.window.push(window.map_or(-1, signed));
    }

    fn finish(self, before: ColumnTable) -> ColumnTable {
        let names = Names::of(&self.catalog);
        let outcomes = NameList::of(Outcome::LABELS.map(str::to_owned));
        before
            .with("request", Values::Whole(self.request))
            .with("app", names.apps.with(self.app))
            .with("arrival_us", Values::Whole(self.arrival_us))
            .with("latency_us", Values::Whole(self.latency_us))
            .with("outcome", outcomes.with(self.outcome))
            .with("variant", names.variants.with(self.variant))
            .with("exit", self.exits.with(self.exit))
            .with("worker", names.workers.with(self.worker))
            .with("batch", Values::Signed(self.batch))
            .with("batch_size", Values::Signed(self.batch_size))
            .with("started_us", Values::Signed(self.started_us))
            .with("window", Values::Signed(self.window))
    }
}

// === impl BatchRows ===

impl BatchRows {
    fn add(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        self.batch.push(launch.batch.0);
        self.worker.push(code(launch.worker.0));
        self.variant.push(code(launch.variant.0));
        self.from_stage.push(launch.from_stage.into());
        self.to_stage.push(launch.to_stage.into());
        let exit = launch.exit;
        let exit = exit.and_then(|exit| exit_name(&self.catalog, launch.variant, exit));
        self.exit
            .push(exit.map_or(-1, |name| self.exits.code(name)));
        self.size.push(launch.requests.len() as u64);
        self.start_us.push(now.0);
        self.load_us.push(cost.load.0);
        self.service_us.push(cost.service.0);
        let energy_j = cost.energy_uj.map(|energy_uj| energy_uj as f64 / 1e6);
        self.energy_j.push(energy_j.unwrap_or(f64::NAN));
    }

    fn finish(self, before: ColumnTable) -> ColumnTable {
        let names = Names::of(&self.catalog);
        before
            .with("batch", Values::Whole(self.batch))
            .with("worker", names.workers.with(self.worker))
            .with("variant", names.variants.with(self.variant))
            .with("from_stage", Values::Whole(self.from_stage))
            .with("to_stage", Values::Whole(self.to_stage))
            .with("exit", self.exits.with(self.exit))
            .with("size", Values::Whole(self.size))
            .with("start_us", Values::Whole(self.start_us))
            .with("load_us", Values::Whole(self.load_us))
            .with("service_us", Values::Whole(self.service_us))
            .with("energy_j", Values::Number(self.energy_j))
    }
}

// === impl WindowRows ===

impl WindowRows {
    pub(crate) fn add(&mut self, decision: &Decision) {
        let Decision {
            window,
            plan,
            by,
            rescue,
        } = decision;
        self.window.push(window.id);
        self.at_us.push(window.now.0);
        let causes: Vec<&str> = window.because.names().collect();
        self.because.push(self.causes.code(&causes.join("+")));
        self.pending.push(window.len() as u64);
        self.dispatches.push(plan.dispatches.len() as u64);
        self.dispatched.push(plan.members.len() as u64);
        self.revokes.push(plan.revokes.len() as u64);
        self.rejects.push(plan.rejects.len() as u64);
        self.answers.push(plan.answers.len() as u64);
        self.by.push(self.policies.code(by));
        self.rescue.push((*rescue).into());
        let failed = self.failed.take();
        self.fault
            .push(failed.map_or(-1, |reason| self.faults.code(&reason)));
    }

    pub(crate) fn finish(self, before: ColumnTable) -> ColumnTable {
        before
            .with("window", Values::Whole(self.window))
            .with("at_us", Values::Whole(self.at_us))
            .with("because", self.causes.with(self.because))
            .with("pending", Values::Whole(self.pending))
            .with("dispatches", Values::Whole(self.dispatches))
            .with("dispatched", Values::Whole(self.dispatched))
            .with("revokes", Values::Whole(self.revokes))
            .with("rejects", Values::Whole(self.rejects))
            .with("answers", Values::Whole(self.answers))
            .with("by", self.policies.with(self.by))
            .with("rescue", Values::Flag(self.rescue))
            .with("fault", self.faults.with(self.fault))
    }
}

/// Names of the catalog, by position.
struct Names {
    apps: NameList,
    variants: NameList,
    workers: NameList,
}

// === impl Names ===

impl Names {
    fn of(catalog: &Catalog) -> Self {
        Self {
            apps: NameList::of(catalog.apps.iter().map(|app| app.name.clone())),
            // Two apps may have variants of one name: positions stay apart.
            variants: NameList::of(catalog.variants.iter().map(|variant| {
                let app = &catalog.apps[variant.app.index()].name;
                format!("{app}/{}", variant.name)
            })),
            workers: NameList::of(catalog.workers.iter().map(|worker| worker.name.clone())),
        }
    }
}

fn exit_name(catalog: &Catalog, variant: VariantId, exit: ExitId) -> Option<&str> {
    let variant = catalog.variants.get(variant.index())?;
    Some(variant.exits.get(exit.0 as usize)?.name.as_str())
}

fn code(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(-1)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
