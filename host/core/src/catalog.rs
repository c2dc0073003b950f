//! The catalog: apps, their variants, the workers and the profile. It stays the same between
//! windows; a change makes a new catalog with a higher generation.

mod confusion;
mod validation;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::ids::{AppId, ExitId, KindId, VariantId, WorkerId};
use crate::profile::Profile;
use crate::time::Micros;

pub use confusion::{Confusion, ConfusionError};
pub use validation::{CatalogError, LATENCY_MAX};

/// Apps, variants, workers and their profile. Positions in the lists are the ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows by one with every change.
    pub generation: u64,
    /// Apps: the models of the Open Inference Protocol.
    pub apps: Vec<App>,
    /// The variants of all apps.
    pub variants: Vec<Variant>,
    /// Names of the worker kinds, such as `cpu-1`.
    pub kinds: Vec<String>,
    /// Processors that run one batch at a time.
    pub workers: Vec<WorkerSpec>,
    /// Latencies at one percentile.
    pub profile: Profile,
}

/// One application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// The model's name in the Open Inference Protocol.
    pub name: String,
    /// The kind of its answers.
    #[serde(default)]
    pub task: Task,
    /// Class names; recall and evidence are in this order. An app that does not classify has a single
    /// one, whose recall is the quality.
    pub classes: Vec<String>,
    /// Deadline of a request that names none, from its arrival.
    pub slo: Micros,
    /// Loss of utility of a late answer.
    pub penalty: Penalty,
    /// Dirichlet parameters of the prior over classes (SneakPeek eq. 8), one per class.
    pub prior: Vec<f64>,
    /// Class frequencies of the test set, which profiled accuracy rests on.
    pub frequencies: Vec<f64>,
    /// Present if requests can be answered from evidence alone.
    pub sneakpeek: Option<SneakPeekModel>,
    /// Treatment of requests that cannot be answered in time.
    pub late: Late,
}

/// Kind of an app's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// One of its classes.
    #[default]
    Classify,
    /// A vector.
    Embed,
    /// A number, or several.
    Regress,
    /// How well the parts of a request fit each other.
    Score,
    /// Tensors of any meaning.
    Tensors,
}

/// Loss of utility of a late answer, as a function of lateness (SneakPeek eq. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Penalty {
    /// Everything is lost at the deadline.
    Step,
    /// In proportion to lateness, all of it at twice the deadline.
    Linear,
    /// Slowly at first, then fast, all of it at twice the deadline.
    Sigmoid,
}

/// Treatment of requests that cannot be answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// The policy serves them as any other, late.
    #[default]
    Serve,
    /// A request that waits ends at its deadline.
    Drop,
    /// The host serves them once nothing else waits.
    Last,
    /// A request ends as soon as no variant can answer it in time.
    Shed,
}

/// The model that guesses a request's class from its nearest neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SneakPeekModel {
    /// Number of neighbours counted, k.
    pub neighbours: u32,
    /// Profiled accuracy of its best guess, 0 to 1.
    pub accuracy: f64,
    /// Profiled recall per class, 0 to 1.
    pub recall: Vec<f64>,
    /// Confusion matrix of its best guesses, if it was measured.
    #[serde(default)]
    pub confusion: Option<Confusion>,
}

/// One model that answers an app's requests: a chain of stages with exits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The model's version in the Open Inference Protocol.
    pub name: String,
    /// The app it belongs to.
    pub app: AppId,
    /// Stages; each can run in a batch of its own.
    pub stages: u32,
    /// Shallow to deep; the last one follows the last stage.
    pub exits: Vec<Exit>,
    /// The accuracies of its exits are stand-ins: its quality is unknown.
    #[serde(default)]
    pub quality_unknown: bool,
    /// Memory that it takes on a worker while resident.
    pub memory_bytes: u64,
    /// The largest batch that may be dispatched.
    pub max_batch: u32,
}

/// A point where a variant can answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Name in answers and metrics.
    pub name: String,
    /// Stages that run before this exit's head.
    pub after_stage: u32,
    /// Profiled accuracy, 0 to 1; for an app that does not classify the quality that its card states.
    pub accuracy: f64,
    /// Profiled recall per class, 0 to 1.
    pub recall: Vec<f64>,
    /// Confusion matrix of its answers, if it was measured.
    #[serde(default)]
    pub confusion: Option<Confusion>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// Name in logs and metrics.
    pub name: String,
    /// Workers of one kind share a profile.
    pub kind: KindId,
    /// Budget for resident variants.
    pub memory_bytes: u64,
    /// Batches that may wait in its queue; a plan that places more is refused.
    pub queue_max: u32,
    /// Partly run requests that may be parked on it; a plan that parks more is refused.
    pub parked_max: u32,
    /// The kinds of batches that it runs; a plan with another one is refused.
    #[serde(default)]
    pub can: Capabilities,
    /// Time that the inputs and answers of a batch take to it and back; 0 for a worker of this process.
    #[serde(default)]
    pub transfer: Micros,
    /// Batches that it may have at a time, at least 1. Those behind the first one wait at the worker, so
    /// that it does not idle while an answer and the next batch are on their way.
    /// No part of recordings: windows show its effect.
    #[serde(skip, default = "one")]
    pub outstanding: u32,
}

fn one() -> u32 {
    1
}

/// The kinds of batches that a worker runs. Workers of this process run all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Batches that begin after the first stage or end before the last one.
    pub stage_ranges: bool,
    /// Answers of exits before the last one.
    pub exits: bool,
    /// It keeps activations, so that requests can be parked on it.
    pub parking: bool,
}

// === impl Penalty ===

impl Penalty {
    /// The share of an answer's worth that is lost (gamma of SneakPeek eq. 2), 0 to 1, `after`
    /// its arrival; `deadline` counts from there too. Zero up to the deadline, then with
    /// x = (after - deadline) / deadline: 1; min(1, x); 1 / (1 + (x / (1 - x))^-3).
    pub fn loss(self, deadline: Micros, after: Micros) -> f64 {
        if after <= deadline {
            return 0.0;
        }
        let x = (after.0 - deadline.0) as f64 / deadline.0 as f64;
        match self {
            Self::Step => 1.0,
            // A deadline of 0 makes x infinite.
            _ if x >= 1.0 => 1.0,
            Self::Linear => x,
            Self::Sigmoid => {
                // Multiplications only, for the same bits on every machine.
                let inverse = (1.0 - x) / x;
                1.0 / (1.0 + inverse * inverse * inverse)
            }
        }
    }
}

// === impl Task ===

impl Task {
    /// Whether an answer is one of the app's classes.
    pub fn is_classify(self) -> bool {
        self == Self::Classify
    }
}

// === impl Capabilities ===

impl Capabilities {
    /// Everything.
    pub const ALL: Self = Self {
        stage_ranges: true,
        exits: true,
        parking: true,
    };
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::ALL
    }
}

// === impl Late ===

impl Late {
    /// Requests that wait end at their deadline or earlier.
    pub fn drops(self) -> bool {
        matches!(self, Self::Drop | Self::Shed)
    }

    /// The host keeps requests that cannot be answered in time out of the way of the others.
    pub fn is_guarded(self) -> bool {
        matches!(self, Self::Last | Self::Shed)
    }
}

// === impl Catalog ===

impl Catalog {
    /// The app with this id, if there is one.
    pub fn app(&self, id: AppId) -> Option<&App> {
        self.apps.get(id.index())
    }

    /// The variant with this id, if there is one.
    pub fn variant(&self, id: VariantId) -> Option<&Variant> {
        self.variants.get(id.index())
    }

    /// The worker with this id, if there is one.
    pub fn worker(&self, id: WorkerId) -> Option<&WorkerSpec> {
        self.workers.get(id.index())
    }

    /// All apps, in order.
    pub fn app_ids(&self) -> impl Iterator<Item = AppId> + use<> {
        (0..self.apps.len() as u32).map(AppId)
    }

    /// The variants of one app, with their ids.
    pub fn variants_of(&self, app: AppId) -> impl Iterator<Item = (VariantId, &Variant)> {
        (0u32..)
            .map(VariantId)
            .zip(&self.variants)
            .filter(move |(_, variant)| variant.app == app)
    }

    /// Profiled latency of a batch from the first stage to `exit` on a worker; none if there is
    /// no such worker, variant or exit, or it was not measured.
    pub fn latency(
        &self,
        worker: WorkerId,
        variant: VariantId,
        exit: ExitId,
        batch: u32,
    ) -> Option<Micros> {
        let to_stage = self.variant(variant)?.exits.get(exit.index())?.after_stage;
        let kind = self.worker(worker)?.kind;
        self.profile
            .latency(kind, variant, 0, to_stage, Some(exit), batch)
    }

    /// The same for a batch whose requests cost as much together.
    pub fn latency_of(
        &self,
        worker: WorkerId,
        variant: VariantId,
        exit: ExitId,
        cost: Cost,
    ) -> Option<Micros> {
        let to_stage = self.variant(variant)?.exits.get(exit.index())?.after_stage;
        let kind = self.worker(worker)?.kind;
        self.profile
            .latency_of(kind, variant, 0, to_stage, Some(exit), cost)
    }
}

// === impl App ===

impl App {
    /// `class NAME`, or `class POSITION` past the end of the names.
    pub fn class(&self, position: usize) -> String {
        match self.classes.get(position) {
            Some(name) => format!("class {name}"),
            None => format!("class {position}"),
        }
    }
}

// === impl Variant ===

impl Variant {
    /// The exit with this id, if there is one.
    pub fn exit(&self, id: ExitId) -> Option<&Exit> {
        self.exits.get(id.index())
    }

    /// Profiled quality of an exit, 0 to 1: its accuracy where the app classifies, otherwise the quality
    /// that its card states. None if it is unknown, or there is no such exit.
    pub fn quality(&self, id: ExitId) -> Option<f64> {
        let exit = self.exit(id).filter(|_| !self.quality_unknown);
        exit.map(|exit| exit.accuracy)
    }

    /// The exit after the last stage.
    ///
    /// A validated catalog has one in every variant.
    pub fn last_exit(&self) -> ExitId {
        ExitId(self.exits.len().saturating_sub(1) as u32)
    }
}
