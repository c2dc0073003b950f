//! Counting as requests end: exact counts and sums, latencies in a histogram, nothing kept of
//! single requests.

mod across;
mod cell;
mod latency;
mod paired;
mod predictions;
mod report;
mod summary;

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::{Notice, Reply, Run};
use switchyard_core::evidence::posterior;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::request::{Evidence, Outcome};
use switchyard_core::time::{Micros, Time};

use crate::hardware::Cost;
use crate::live::Live;
use cell::{Answer, Cell};

pub use across::{Estimate, Estimates, PartEstimates, t_quantile_975};
pub(crate) use latency::Histogram;
pub use latency::Latencies;
pub use paired::Effect;
pub use predictions::{ClassReport, Predictions};
pub(crate) use report::Closing;
pub use report::{BatchReport, EnergyReport, Part, Report, Served, WorkerReport};
pub use summary::Summary;

/// Everything counted in one run.
#[derive(Debug)]
pub(crate) struct Meters {
    phases: usize,
    /// One per app and phase: an ending request touches one of them. Absent where nothing has
    /// arrived, for a histogram takes 16 kB at least and most streams are of one app.
    cells: Vec<Option<Box<Cell>>>,
    apps: Vec<AppFacts>,
    /// Per variant and exit.
    served: Vec<Vec<u64>>,
    sizes: Vec<u64>,
    workers: Vec<WorkerReport>,
    energy_uj: u64,
    /// Batches whose energy the profile does not know.
    energy_unknown: u64,
    faults: BTreeMap<String, u64>,
    policies_taken_off: u64,
    theta: Vec<f64>,
    /// Answers by true and predicted class, of each app where they are known.
    predictions: Vec<Option<predictions::Counts>>,
}

/// What metrics need of an app.
#[derive(Clone, Debug)]
struct AppFacts {
    /// The fastest way to a complete answer on an idle yard.
    solo_best: Micros,
    /// Its most accurate variants.
    heavy: Vec<VariantId>,
}

// === impl Meters ===

impl Meters {
    pub(crate) fn new(catalog: &Catalog, phases: usize) -> Self {
        let cells = catalog.apps.len() * phases;
        let apps = (0..catalog.apps.len() as u32).map(AppId);
        let workers = catalog.workers.iter();
        Self {
            phases,
            cells: (0..cells).map(|_| None).collect(),
            apps: apps.map(|app| AppFacts::of(app, catalog)).collect(),
            served: catalog
                .variants
                .iter()
                .map(|v| vec![0; v.exits.len()])
                .collect(),
            sizes: Vec::new(),
            workers: workers.map(|w| WorkerReport::named(&w.name)).collect(),
            energy_uj: 0,
            energy_unknown: 0,
            faults: BTreeMap::new(),
            policies_taken_off: 0,
            theta: Vec::new(),
            predictions: predictions::Counts::of(catalog),
        }
    }

    pub(crate) fn arrived(&mut self, app: AppId, phase: u32) {
        self.cell(app, phase).arrivals += 1;
    }

    fn cell(&mut self, app: AppId, phase: u32) -> &mut Cell {
        self.cells[app.index() * self.phases + phase as usize].get_or_insert_default()
    }

    pub(crate) fn started(&mut self, run: &Run, cost: Cost) {
        let size = run.requests.len();
        if self.sizes.len() <= size {
            self.sizes.resize(size + 1, 0);
        }
        self.sizes[size] += 1;
        let worker = &mut self.workers[run.worker.index()];
        worker.batches += 1;
        worker.busy_us += cost.service.0;
        worker.load_us += cost.load.0;
        worker.loads += u64::from(cost.load > Micros::ZERO);
        match cost.energy_uj {
            Some(energy_uj) => self.energy_uj += energy_uj,
            None => self.energy_unknown += 1,
        }
    }

    pub(crate) fn noticed(&mut self, notice: &Notice) {
        if let Notice::PolicyFaulted(faulted) = notice {
            let kind = faulted.fault.kind.label().to_owned();
            *self.faults.entry(kind).or_default() += 1;
            self.policies_taken_off += u64::from(faulted.taken_off);
        }
    }

    pub(crate) fn ended(&mut self, now: Time, live: &Live, reply: &Reply, catalog: &Catalog) {
        let app = reply.app;
        let answer = match reply.outcome {
            Outcome::Answered {
                variant,
                exit,
                in_time,
            } => {
                self.served[variant.index()][exit.index()] += 1;
                let heavy = self.apps[app.index()].heavy.contains(&variant);
                Some(answered(catalog, live, variant, exit, in_time, heavy))
            }
            Outcome::ShortCircuited { in_time } => {
                Some(self.short_circuited(catalog, app, live, reply.evidence.as_ref(), in_time))
            }
            _ => None,
        };
        let Some(answer) = answer else {
            return self.cell(app, live.phase).unanswered(&reply.outcome);
        };
        if let (Some(counts), Some(predicted)) =
            (&mut self.predictions[app.index()], answer.predicted)
        {
            counts.record(live.label as usize, predicted);
        }
        let waited = reply.ran.map_or(reply.latency, |ran| {
            Micros(reply.latency.0 - now.since(ran.since).0)
        });
        let solo_best = self.apps[app.index()].solo_best;
        let loss = catalog.apps[app.index()]
            .penalty
            .loss(live.deadline, reply.latency);
        let cell = self.cell(app, live.phase);
        cell.answered(
            &answer,
            live.deadline,
            reply.latency,
            waited,
            solo_best,
            loss,
        );
    }

    /// The class the evidence speaks for most, the first of equals, as the live server answers.
    fn short_circuited(
        &mut self,
        catalog: &Catalog,
        app: AppId,
        live: &Live,
        evidence: Option<&Evidence>,
        in_time: bool,
    ) -> Answer {
        let app = &catalog.apps[app.index()];
        let counts = evidence.map_or(&[][..], |counts| counts.as_slice());
        posterior(&app.prior, counts, &mut self.theta);
        let mut guess = 0;
        for (class, &theta) in self.theta.iter().enumerate() {
            if theta > self.theta[guess] {
                guess = class;
            }
        }
        let (profiled, expected) = app.sneakpeek.as_ref().map_or((0.0, 0.0), |model| {
            let recall = model.recall.get(live.label as usize);
            (model.accuracy, recall.copied().unwrap_or(model.accuracy))
        });
        Answer {
            profiled,
            expected,
            correct: guess == live.label as usize,
            predicted: Some(guess),
            in_time,
            heavy: false,
            short_circuit: true,
        }
    }
}

/// An answer is right with the recall of its request's class (SneakPeek eq. 7).
fn answered(
    catalog: &Catalog,
    live: &Live,
    variant: VariantId,
    exit: ExitId,
    in_time: bool,
    heavy: bool,
) -> Answer {
    let variant = &catalog.variants[variant.index()];
    let exit = &variant.exits[exit.index()];
    let (label, hardness) = (live.label as usize, live.hardness);
    let expected = exit.recall.get(label).copied().unwrap_or(exit.accuracy);
    let classes = catalog.apps[variant.app.index()].classes.len();
    Answer {
        profiled: exit.accuracy,
        expected,
        correct: hardness < expected,
        predicted: predictions::predicted(exit, classes, label, expected, hardness),
        in_time,
        heavy,
        short_circuit: false,
    }
}

// === impl AppFacts ===

impl AppFacts {
    fn of(app: AppId, catalog: &Catalog) -> Self {
        let workers = (0..catalog.workers.len() as u32).map(WorkerId);
        let solo_best = workers
            .flat_map(|worker| {
                let alone =
                    move |(id, variant): (VariantId, &switchyard_core::catalog::Variant)| {
                        catalog.latency(worker, id, variant.last_exit(), 1)
                    };
                catalog.variants_of(app).filter_map(alone)
            })
            .min();
        let accuracy = |id: VariantId| {
            let variant = &catalog.variants[id.index()];
            variant.exits[variant.last_exit().index()].accuracy
        };
        let all = || catalog.variants_of(app).map(|(id, _)| id);
        let best = all().map(accuracy).fold(0.0, f64::max);
        Self {
            solo_best: solo_best.unwrap_or_default(),
            heavy: all().filter(|&id| accuracy(id) >= best).collect(),
        }
    }
}
