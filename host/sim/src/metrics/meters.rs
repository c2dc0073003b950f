//! Counting during a run.

use std::collections::BTreeMap;

use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::event::{Launch, Notice, Reply};
use switchyard_core::evidence::posterior;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::request::{Evidence, Outcome};
use switchyard_core::time::{Micros, Time};

use super::predictions;
use super::report::WorkerReport;
use super::sums::{AnsweredRequest, RequestSums, RequestTimes};
use crate::hardware::BatchCost;
use crate::live::LiveRequest;

/// All counts of one run.
#[derive(Debug)]
pub(crate) struct Meters {
    /// The part of each latency that the server does not know.
    wire: Micros,
    pub(super) phases: usize,
    /// By app and then phase: an ending request changes one of them. Boxed when the first request
    /// arrives, because a histogram takes at least 16 kB and most streams are for one app.
    pub(super) sums: Vec<Option<Box<RequestSums>>>,
    apps: Vec<AppFacts>,
    /// Answers by variant and exit.
    pub(super) served: Vec<Vec<u64>>,
    /// Batches by size.
    pub(super) sizes: Vec<u64>,
    pub(super) workers: Vec<WorkerReport>,
    pub(super) energy_uj: u64,
    /// Batches whose energy the profile does not know.
    pub(super) energy_unknown: u64,
    pub(super) faults: BTreeMap<String, u64>,
    pub(super) policies_taken_off: u64,
    /// Scratch space of posteriors.
    theta: Vec<f64>,
    /// By app; absent if an exit's confusion matrix is unknown.
    pub(super) predictions: Vec<Option<predictions::PredictionCounts>>,
}

/// The facts about an app that metrics need.
#[derive(Clone, Debug)]
struct AppFacts {
    /// The shortest latency of a complete answer, alone on an idle worker.
    solo_best: Micros,
    /// Its most accurate variants.
    heavy: Vec<VariantId>,
}

// === impl Meters ===

impl Meters {
    pub(crate) fn new(catalog: &Catalog, phases: usize) -> Self {
        let parts = catalog.apps.len() * phases;
        let apps = (0..catalog.apps.len() as u32).map(AppId);
        let workers = catalog.workers.iter();
        Self {
            wire: Micros::ZERO,
            phases,
            sums: (0..parts).map(|_| None).collect(),
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
            predictions: predictions::PredictionCounts::of(catalog),
        }
    }

    /// Adds the time between client and server to every latency.
    pub(crate) fn with_wire(mut self, wire: Micros) -> Self {
        self.wire = wire;
        self
    }

    pub(crate) fn arrived(&mut self, app: AppId, phase: u32) {
        self.sums(app, phase).arrivals += 1;
    }

    fn sums(&mut self, app: AppId, phase: u32) -> &mut RequestSums {
        self.sums[app.index() * self.phases + phase as usize].get_or_insert_default()
    }

    pub(crate) fn started(&mut self, launch: &Launch, cost: BatchCost) {
        let size = launch.requests.len();
        if self.sizes.len() <= size {
            self.sizes.resize(size + 1, 0);
        }
        self.sizes[size] += 1;
        let worker = &mut self.workers[launch.worker.index()];
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

    /// Batches of a live server, by the sizes that its answers name: a batch of 4 is named 4 times.
    pub(crate) fn answered_in_batches(&mut self, answers: &[u64]) {
        let sizes = (0u64..).zip(answers);
        self.sizes = sizes
            .map(|(size, answers)| match size {
                0 => 0,
                size => (answers + size / 2) / size,
            })
            .collect();
    }

    /// Faults of a policy on a live server, by kind.
    pub(crate) fn faulted(&mut self, faults: &BTreeMap<String, u64>, is_taken_off: bool) {
        self.faults.clone_from(faults);
        self.policies_taken_off = u64::from(is_taken_off);
    }

    pub(crate) fn ended(
        &mut self,
        now: Time,
        live: &LiveRequest,
        reply: &Reply,
        catalog: &Catalog,
    ) {
        let app = reply.app;
        let latency = reply.latency + self.wire;
        let at_client = latency <= live.deadline;
        let answer = match reply.outcome {
            Outcome::Answered {
                variant,
                exit,
                in_time,
            } => {
                self.served[variant.index()][exit.index()] += 1;
                let heavy = self.apps[app.index()].heavy.contains(&variant);
                let in_time = in_time && at_client;
                Some(answered(catalog, live, variant, exit, in_time, heavy))
            }
            Outcome::ShortCircuited { in_time } => {
                let in_time = in_time && at_client;
                Some(self.short_circuited(catalog, app, live, reply.evidence.as_ref(), in_time))
            }
            _ => None,
        };
        let Some(answer) = answer else {
            return self.sums(app, live.phase).unanswered(&reply.outcome);
        };
        if let (Some(counts), Some(predicted)) =
            (&mut self.predictions[app.index()], answer.predicted)
        {
            counts.record(live.label as usize, predicted);
        }
        let waited = reply.ran.map_or(reply.latency, |ran| {
            Micros(reply.latency.0 - now.since(ran.since).0)
        });
        let times = RequestTimes {
            deadline: live.deadline,
            latency,
            waited,
            solo_best: self.apps[app.index()].solo_best,
        };
        let penalty = &catalog.apps[app.index()].penalty;
        let loss = penalty.loss(live.deadline, latency);
        self.sums(app, live.phase).answered(&answer, &times, loss);
    }

    /// The most likely class given the evidence, the first one of equals, as on the live server.
    fn short_circuited(
        &mut self,
        catalog: &Catalog,
        app: AppId,
        live: &LiveRequest,
        evidence: Option<&Evidence>,
        in_time: bool,
    ) -> AnsweredRequest {
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
        AnsweredRequest {
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
    live: &LiveRequest,
    variant: VariantId,
    exit: ExitId,
    in_time: bool,
    heavy: bool,
) -> AnsweredRequest {
    let variant = &catalog.variants[variant.index()];
    let exit = &variant.exits[exit.index()];
    let (label, hardness) = (live.label as usize, live.hardness);
    let expected = exit.recall.get(label).copied().unwrap_or(exit.accuracy);
    let classes = catalog.apps[variant.app.index()].classes.len();
    AnsweredRequest {
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
                let alone = move |(id, variant): (VariantId, &Variant)| {
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
