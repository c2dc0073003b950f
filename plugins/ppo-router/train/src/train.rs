//! All of it: updates, validation, checkpoints, curves, the final evaluation, files.

use std::path::{Path, PathBuf};

use ppo_router_net::weights::FORMAT;
use ppo_router_net::{Kind, Meta, Network, WeightsError, batch_pairs};
use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;
use switchyard_sim::{SimError, Workload, WorkloadError};
use thiserror::Error;

use crate::curve::{self, Point, Ratios};
use crate::evaluate::{Evaluation, evaluate};
use crate::learner::{Learner, Task};
use crate::settings::Settings;
use crate::yard::{Yard, YardError};

/// The weights, of the best update that validation saw.
pub const WEIGHTS: &str = "policy.safetensors";
/// Where training was.
pub const CHECKPOINT: &str = "checkpoint.bin";
/// The learning curve.
pub const CURVE_CSV: &str = "curve.csv";
/// And as a plot.
pub const CURVE_SVG: &str = "curve.svg";
/// The final evaluation.
pub const EVALUATION: &str = "evaluation.json";

/// Seeds of validation and of the final evaluation. Those of training are spread over all 64
/// bits by multiplication, and are none of these.
const VALIDATION_SEEDS: [u64; 2] = [910_001, 910_002];
const TEST_SEEDS: [u64; 2] = [920_001, 920_002];

/// What is trained, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The instances.
    pub yard: Yard,
    /// The workload, as text.
    pub workload: String,
    /// Another workload for the first share of the updates: a curriculum.
    pub first: Option<(String, f64)>,
    /// What is observed.
    pub kind: Kind,
    /// The method's numbers.
    pub settings: Settings,
    /// Updates in all.
    pub updates: u64,
    /// Of all draws.
    pub seed: u64,
    /// Where files go.
    pub out: PathBuf,
    /// Go on from the checkpoint there.
    pub resume: bool,
    /// Updates between two looks at validation, and between checkpoints.
    pub every: u64,
    /// Slots of validation.
    pub validation_slots: u64,
    /// Slots of the final evaluation.
    pub test_slots: u64,
    /// Share of violations that is allowed.
    pub violations_max: f64,
    /// What was typed, for the weights' metadata.
    pub command: String,
}

/// After each update.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Updates in all.
    pub updates: u64,
    /// The update just made.
    pub point: &'a Point,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trained {
    /// The update whose weights are kept.
    pub best_update: u64,
    /// What validation saw of it.
    pub validation: Ratios,
    /// The final evaluation.
    pub evaluation: Evaluation,
    /// Every update.
    #[serde(skip)]
    pub curve: Vec<Point>,
}

/// Why training stopped.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The yard makes no sense.
    #[error(transparent)]
    Yard(#[from] YardError),
    /// The workload makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A number of the method makes no sense.
    #[error("settings: {field}: {reason}")]
    Settings {
        /// Which one.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The simulator stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The networks became unusable: training diverged.
    #[error("training diverged: {0}")]
    Diverged(#[from] WeightsError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A checkpoint of another training.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Why it cannot be gone on from.
        reason: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Checkpoint {
    meta: String,
    learner: Learner,
    curve: Vec<Point>,
    best: Option<(Point, Vec<u8>)>,
}

/// The metadata of what is trained for a yard.
#[must_use]
pub fn meta(
    yard: &Yard,
    kind: Kind,
    hidden: &[usize],
    workload: &str,
    seed: u64,
    command: &str,
) -> Meta {
    let layout = yard.layout(kind);
    let outputs = yard.instances() + yard.models.len() * batch_pairs(&yard.batches).len();
    let ends = ([layout.width()], [outputs]);
    Meta {
        format: FORMAT,
        models: yard.models_of_instances(),
        variants: yard.models.iter().map(|m| m.variant.clone()).collect(),
        batches: yard.batches.clone(),
        layers: [&ends.0[..], hidden, &ends.1].concat(),
        slot_us: yard.slot_us,
        deadline_us: yard.deadline_us,
        workload: workload.to_owned(),
        seed,
        command: command.to_owned(),
        layout,
    }
}

/// Trains and writes weights, curve and evaluation. `progress` may stop it early: it returns
/// whether to go on.
///
/// # Errors
/// Options that make no sense, files that cannot be written, a simulation that broke.
pub fn train(
    options: &Options,
    progress: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Result<Trained, TrainError> {
    let yard = &options.yard;
    yard.validate()?;
    let workload: Workload = options.workload.parse()?;
    let forever = Micros(u64::MAX);
    let scenario = yard.scenario(workload.clone(), forever);
    scenario.validate()?;
    let first = match &options.first {
        Some((text, share)) => Some((yard.scenario(text.parse()?, forever), *share)),
        None => None,
    };
    let hidden = &options.settings.hidden;
    let (seed, command) = (options.seed, &options.command);
    let meta = meta(yard, options.kind, hidden, &options.workload, seed, command);
    let task = Task {
        yard,
        scenario: &scenario,
        kind: options.kind,
        settings: &options.settings,
        meta: &meta,
        seed,
    };
    let mut run = Run::begin(options, &task)?;
    while run.learner.updates < options.updates {
        let share = run.learner.updates as f64 / options.updates as f64;
        let early = first.as_ref().filter(|(_, until)| share < *until);
        let scenario = early.map_or(&scenario, |(scenario, _)| scenario);
        let task = Task { scenario, ..task };
        let seen = run.learner.update(&task, share)?;
        let update = run.learner.updates;
        let slots = update * options.settings.slots as u64;
        run.curve.push(Point::new(update, slots, &seen));
        let last = update == options.updates;
        if last || update.is_multiple_of(options.every.max(1)) {
            run.validate(&task, &workload)?;
            run.save()?;
        }
        let point = run.curve.last().unwrap_or(&Point::default()).clone();
        let updates = options.updates;
        let point = &point;
        if !progress(&Progress { updates, point }) && !last {
            run.validate(&task, &workload)?;
            run.save()?;
            break;
        }
    }
    run.finish(&task, &workload)
}

struct Run<'a> {
    options: &'a Options,
    learner: Learner,
    curve: Vec<Point>,
    best: Option<(Point, Network)>,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn begin(options: &'a Options, task: &Task<'_>) -> Result<Self, TrainError> {
        let out = &options.out;
        std::fs::create_dir_all(out).map_err(|source| TrainError::File {
            path: out.clone(),
            source,
        })?;
        let fresh = Learner::try_new(task)?;
        let path = out.join(CHECKPOINT);
        if !options.resume {
            return Ok(Self {
                options,
                learner: fresh,
                curve: Vec::new(),
                best: None,
            });
        }
        let wrong = |reason: String| TrainError::Checkpoint {
            path: path.clone(),
            reason,
        };
        let bytes = std::fs::read(&path).map_err(|source| TrainError::File {
            path: path.clone(),
            source,
        })?;
        let kept: Checkpoint =
            postcard::from_bytes(&bytes).map_err(|error| wrong(error.to_string()))?;
        if kept.meta != identity(task) || !kept.learner.fits(task) {
            return Err(wrong("is of another training".to_owned()));
        }
        let best = kept.best.map(|(point, bytes)| {
            let network = Network::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
            Ok::<_, TrainError>((point, network))
        });
        Ok(Self {
            options,
            learner: kept.learner,
            curve: kept.curve,
            best: best.transpose()?,
        })
    }

    /// Looks at the present weights without noise and keeps them if they are the best so far.
    fn validate(&mut self, task: &Task<'_>, workload: &Workload) -> Result<(), TrainError> {
        let network = self.learner.network(task)?;
        let slots = self.options.validation_slots / VALIDATION_SEEDS.len() as u64;
        let seen = evaluate(&network, task.yard, workload, slots, &VALIDATION_SEEDS)?;
        let Some(point) = self.curve.last_mut() else {
            return Ok(());
        };
        let validation = Ratios {
            goodput: seen.overall.goodput_ratio,
            violation: seen.overall.violation_ratio,
            heavy: seen.overall.heavy_share,
        };
        point.validation = Some(validation);
        let bounds = seen.bounds.iter();
        point.bounds = bounds.map(|b| (b.min_mean, b.max_mean)).collect();
        let limit = self.options.violations_max;
        let best = self.best.as_ref().and_then(|(point, _)| point.validation);
        if best.is_none_or(|best| is_better(&validation, &best, limit)) {
            self.best = Some((point.clone(), network));
        }
        Ok(())
    }

    fn save(&self) -> Result<(), TrainError> {
        let title = format!("{}, seed {}", self.options.workload, self.options.seed);
        self.write(CURVE_CSV, curve::csv(&self.curve).as_bytes())?;
        self.write(CURVE_SVG, curve::svg(&title, &self.curve).as_bytes())?;
        let best = match &self.best {
            Some((point, network)) => {
                let bytes = network.to_bytes()?;
                self.write(WEIGHTS, &bytes)?;
                Some((point.clone(), bytes))
            }
            None => None,
        };
        let checkpoint = Checkpoint {
            meta: identity_of(self.options),
            learner: self.learner.clone(),
            curve: self.curve.clone(),
            best,
        };
        let bytes = postcard::to_allocvec(&checkpoint);
        let bytes = bytes.map_err(|error| TrainError::Checkpoint {
            path: self.options.out.join(CHECKPOINT),
            reason: error.to_string(),
        })?;
        self.write(CHECKPOINT, &bytes)
    }

    fn finish(self, task: &Task<'_>, workload: &Workload) -> Result<Trained, TrainError> {
        let (point, network) = match self.best {
            Some(ref best) => best.clone(),
            None => (Point::default(), self.learner.network(task)?),
        };
        let slots = self.options.test_slots / TEST_SEEDS.len() as u64;
        let evaluation = evaluate(&network, task.yard, workload, slots, &TEST_SEEDS)?;
        let trained = Trained {
            best_update: point.update,
            validation: point.validation.unwrap_or_default(),
            evaluation,
            curve: self.curve.clone(),
        };
        let text = serde_json::to_string_pretty(&trained).unwrap_or_default();
        self.write(EVALUATION, (text + "\n").as_bytes())?;
        Ok(trained)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), TrainError> {
        let path = self.options.out.join(name);
        write(&path, bytes).map_err(|source| TrainError::File { path, source })
    }
}

/// Draws trainings of one kind from several seeds together, as `curve.svg` in a folder.
///
/// # Errors
/// The file cannot be written.
pub fn draw_seeds(title: &str, trained: &[Trained], folder: &Path) -> Result<(), TrainError> {
    let curves: Vec<Vec<Point>> = trained.iter().map(|one| one.curve.clone()).collect();
    let path = folder.join(CURVE_SVG);
    let text = curve::svg_of_seeds(title, &curves);
    write(&path, text.as_bytes()).map_err(|source| TrainError::File { path, source })
}

/// Whole or not at all: a training that is cut off leaves the file before.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension("part");
    std::fs::write(&beside, bytes)?;
    std::fs::rename(beside, path)
}

/// Meeting the requirement comes first, then goodput; without it fewer violations.
fn is_better(new: &Ratios, old: &Ratios, limit: f64) -> bool {
    match (new.violation <= limit, old.violation <= limit) {
        (true, true) => new.goodput > old.goodput,
        (false, false) => new.violation < old.violation,
        (new_meets, _) => new_meets,
    }
}

/// What must be the same for a checkpoint to be gone on from.
fn identity(task: &Task<'_>) -> String {
    format!(
        "{:?} {:?} {:?} {}",
        task.yard, task.kind, task.settings, task.seed
    )
}

fn identity_of(options: &Options) -> String {
    let Options {
        yard,
        kind,
        settings,
        seed,
        ..
    } = options;
    format!("{yard:?} {kind:?} {settings:?} {seed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirement_comes_before_goodput() {
        let ratios = |goodput, violation| Ratios {
            goodput,
            violation,
            heavy: 0.0,
        };
        let (safe, rich, worse) = (ratios(0.7, 0.01), ratios(0.8, 0.03), ratios(0.6, 0.05));
        assert!(is_better(&safe, &rich, 0.02) && !is_better(&rich, &safe, 0.02));
        assert!(is_better(&rich, &worse, 0.02));
        assert!(is_better(&ratios(0.71, 0.02), &safe, 0.02));
    }
}
