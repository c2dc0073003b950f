//! What there is to choose from: apps, their variants, the workers. Stays the same between
//! windows; a change makes a new catalog with a higher generation.

mod confusion;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ids::{AppId, ExitId, KindId, VariantId, WorkerId};
use crate::profile::Profile;
use crate::time::Micros;

pub use confusion::{Confusion, ConfusionError};

/// Apps, variants, workers and their profile. Positions in the lists are the ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows by one with every change.
    pub generation: u64,
    /// What clients call models.
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
    /// As clients name it.
    pub name: String,
    /// Class names; recall and evidence are in this order.
    pub classes: Vec<String>,
    /// Deadline of a request that names none, from its arrival.
    pub slo: Micros,
    /// Loss of utility of a late answer.
    pub penalty: Penalty,
    /// Dirichlet parameters of the prior over classes (SneakPeek eq. 8), one per class.
    pub prior: Vec<f64>,
    /// Class frequencies of the test set, which profiled accuracy rests on.
    pub frequencies: Vec<f64>,
    /// Present where requests can be answered from evidence alone.
    pub sneakpeek: Option<SneakPeekModel>,
    /// Requests are dropped once their deadline has passed.
    pub drops_late: bool,
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

/// The model that guesses a request's class from its nearest neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SneakPeekModel {
    /// Number of neighbours counted, k.
    pub neighbours: u32,
    /// Profiled accuracy of its best guess, 0 to 1.
    pub accuracy: f64,
    /// Profiled recall per class, 0 to 1.
    pub recall: Vec<f64>,
    /// What its best guesses are, where it is known.
    #[serde(default)]
    pub confusion: Option<Confusion>,
}

/// One way of answering an app's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The v2 version name.
    pub name: String,
    /// The app it belongs to.
    pub app: AppId,
    /// Stages that can be run apart from each other.
    pub stages: u32,
    /// Shallow to deep; the last one follows the last stage.
    pub exits: Vec<Exit>,
    /// Taken from a worker's memory while resident.
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
    /// Profiled accuracy, 0 to 1.
    pub accuracy: f64,
    /// Profiled recall per class, 0 to 1.
    pub recall: Vec<f64>,
    /// What its answers are, where it is known.
    #[serde(default)]
    pub confusion: Option<Confusion>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// Name in logs and metrics.
    pub name: String,
    /// Which profile applies.
    pub kind: KindId,
    /// Budget for resident models.
    pub memory_bytes: u64,
    /// Batches that may wait in its queue; a plan that places more is refused.
    pub queue_max: u32,
    /// Partly run requests that may be parked on it; a plan that parks more is refused.
    pub parked_max: u32,
}

/// Why a catalog is not one.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("catalog: {field}: {reason}")]
pub struct CatalogError {
    /// The entry at fault, such as `variants[2].exits[0].recall`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
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
            // Also where the deadline is 0 and x infinite.
            _ if x >= 1.0 => 1.0,
            Self::Linear => x,
            Self::Sigmoid => {
                // With multiplications only: the same bits on every machine.
                let inverse = (1.0 - x) / x;
                1.0 / (1.0 + inverse * inverse * inverse)
            }
        }
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

    /// The variants of one app, with their ids.
    pub fn variants_of(&self, app: AppId) -> impl Iterator<Item = (VariantId, &Variant)> {
        (0u32..)
            .map(VariantId)
            .zip(&self.variants)
            .filter(move |(_, variant)| variant.app == app)
    }

    /// Worst-case latency of a whole run (all stages up to `exit`) on a worker's kind.
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

    /// Checks that every reference and every number makes sense.
    ///
    /// # Errors
    /// The first field that does not, by name.
    pub fn validate(&self) -> Result<(), CatalogError> {
        for (i, app) in self.apps.iter().enumerate() {
            app.validate()
                .map_err(|e| e.inside(&format!("apps[{i}]")))?;
        }
        for (i, variant) in self.variants.iter().enumerate() {
            let at = format!("variants[{i}]");
            let app = self
                .app(variant.app)
                .ok_or_else(|| CatalogError::new("app", "no such app").inside(&at))?;
            variant.validate(app).map_err(|e| e.inside(&at))?;
        }
        for (i, worker) in self.workers.iter().enumerate() {
            if worker.kind.index() >= self.kinds.len() {
                return Err(
                    CatalogError::new("kind", "no such kind").inside(&format!("workers[{i}]"))
                );
            }
        }
        self.profile.validate(self)
    }
}

impl App {
    fn validate(&self) -> Result<(), CatalogError> {
        let classes = self.classes.len();
        if self.slo == Micros::ZERO {
            return Err(CatalogError::new("slo", "must be positive"));
        }
        if self.prior.len() != classes || !self.prior.iter().all(|a| a.is_finite() && *a > 0.0) {
            return Err(CatalogError::new(
                "prior",
                "needs one positive number per class",
            ));
        }
        check_shares("frequencies", &self.frequencies, classes)?;
        if let Some(model) = &self.sneakpeek {
            check_shares("sneakpeek.recall", &model.recall, classes)?;
            check_shares("sneakpeek.accuracy", &[model.accuracy], 1)?;
            let confusion = model.confusion.as_ref();
            self.check_confusion("SneakPeek model", confusion, &model.recall)?;
        }
        Ok(())
    }

    /// `of` is named beside the app and the class at fault.
    fn check_confusion(
        &self,
        of: &str,
        confusion: Option<&Confusion>,
        recall: &[f64],
    ) -> Result<(), CatalogError> {
        let checked = confusion.map_or(Ok(()), |confusion| confusion.validate(recall));
        checked.map_err(|error| CatalogError {
            field: format!(
                "confusion of app {}, {of}, {}",
                self.name,
                self.class(error.class)
            ),
            reason: error.reason,
        })
    }

    /// A class by its name, or by its position where it has none.
    pub fn class(&self, position: usize) -> String {
        match self.classes.get(position) {
            Some(name) => format!("class {name}"),
            None => format!("class {position}"),
        }
    }
}

impl Variant {
    /// The exit with this id, if there is one.
    pub fn exit(&self, id: ExitId) -> Option<&Exit> {
        self.exits.get(id.index())
    }

    /// The exit after the last stage.
    ///
    /// A validated catalog has one in every variant.
    pub fn last_exit(&self) -> ExitId {
        ExitId(self.exits.len().saturating_sub(1) as u32)
    }

    fn validate(&self, app: &App) -> Result<(), CatalogError> {
        if self.stages == 0 {
            return Err(CatalogError::new("stages", "must be at least 1"));
        }
        if self.max_batch == 0 {
            return Err(CatalogError::new("max_batch", "must be at least 1"));
        }
        if self.exits.last().map(|e| e.after_stage) != Some(self.stages) {
            return Err(CatalogError::new(
                "exits",
                "the last exit must follow the last stage",
            ));
        }
        for (i, exit) in self.exits.iter().enumerate() {
            let at = format!("exits[{i}]");
            if exit.after_stage == 0 || i > 0 && exit.after_stage <= self.exits[i - 1].after_stage {
                return Err(
                    CatalogError::new("after_stage", "must grow from exit to exit").inside(&at),
                );
            }
            check_shares("recall", &exit.recall, app.classes.len()).map_err(|e| e.inside(&at))?;
            check_shares("accuracy", &[exit.accuracy], 1).map_err(|e| e.inside(&at))?;
            let of = format!("variant {}, exit {}", self.name, exit.name);
            app.check_confusion(&of, exit.confusion.as_ref(), &exit.recall)
                .map_err(|e| e.inside(&at))?;
        }
        Ok(())
    }
}

impl CatalogError {
    pub(crate) fn new(field: &str, reason: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn inside(mut self, at: &str) -> Self {
        self.field = format!("{at}.{}", self.field);
        self
    }
}

fn check_shares(field: &str, values: &[f64], len: usize) -> Result<(), CatalogError> {
    if values.len() == len && values.iter().all(|v| (0.0..=1.0).contains(v)) {
        return Ok(());
    }
    Err(CatalogError::new(
        field,
        &format!("needs {len} numbers between 0 and 1"),
    ))
}
