//! A whole training: updates, validation, checkpoints, curves, the final evaluation, files.

use std::path::{Path, PathBuf};

use ppo_router_net::meta::FORMAT;
use ppo_router_net::{Kind, Meta, Network, batch_pairs};
use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;
use switchyard_sim::Workload;

use crate::curve::{self, CurvePoint, Ratios};
use crate::error::TrainError;
use crate::evaluate::{Evaluation, evaluate};
use crate::learner::{Learner, UpdateTask};
use crate::settings::TrainSettings;
use crate::test_bed::TestBed;

/// The weights of the best validated update.
pub const WEIGHTS: &str = "policy.safetensors";
/// The state of the training.
pub const CHECKPOINT: &str = "checkpoint.bin";
/// The learning curve.
pub const CURVE_CSV: &str = "curve.csv";
/// The learning curve as a plot.
pub const CURVE_SVG: &str = "curve.svg";
/// The final evaluation.
pub const EVALUATION: &str = "evaluation.json";

/// Seeds of validation and of the final evaluation. Training seeds are multiplied over 64 bits and
/// never equal these.
const VALIDATION_SEEDS: [u64; 2] = [910_001, 910_002];
const TEST_SEEDS: [u64; 2] = [920_001, 920_002];

/// The options of a training.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The instances and their service times.
    pub test_bed: TestBed,
    /// The workload, as text.
    pub workload: String,
    /// Another workload for the first share of the updates: a curriculum.
    pub first: Option<(String, f64)>,
    /// The observation.
    pub kind: Kind,
    /// The hyperparameters.
    pub settings: TrainSettings,
    /// Number of updates.
    pub updates: u64,
    /// Seed of all draws.
    pub seed: u64,
    /// Folder of the files.
    pub out: PathBuf,
    /// Resume from the checkpoint in `out`.
    pub resume: bool,
    /// Updates between validations and between checkpoints.
    pub every: u64,
    /// Slots of validation.
    pub validation_slots: u64,
    /// Slots of the final evaluation.
    pub test_slots: u64,
    /// Allowed share of violations.
    pub violations_max: f64,
    /// The command, for the weights' metadata.
    pub command: String,
}

/// The progress after an update.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Number of updates.
    pub updates: u64,
    /// The last update.
    pub point: &'a CurvePoint,
}

/// The result of a training.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trained {
    /// The update whose weights are kept.
    pub best_update: u64,
    /// Its validation.
    pub validation: Ratios,
    /// The final evaluation.
    pub evaluation: Evaluation,
    /// All updates.
    #[serde(skip)]
    pub curve: Vec<CurvePoint>,
}

/// The content of `checkpoint.bin`.
#[derive(Debug, Serialize, Deserialize)]
struct TrainingCheckpoint {
    meta: String,
    learner: Learner,
    curve: Vec<CurvePoint>,
    best: Option<(CurvePoint, Vec<u8>)>,
}

/// The metadata of weights for a test bed.
#[must_use]
pub fn meta(
    test_bed: &TestBed,
    kind: Kind,
    hidden: &[usize],
    workload: &str,
    seed: u64,
    command: &str,
) -> Meta {
    let layout = test_bed.layout(kind);
    let outputs =
        test_bed.instances() + test_bed.models.len() * batch_pairs(&test_bed.batches).len();
    let ends = ([layout.width()], [outputs]);
    Meta {
        format: FORMAT,
        models: test_bed.models_of_instances(),
        variants: test_bed.models.iter().map(|m| m.variant.clone()).collect(),
        batches: test_bed.batches.clone(),
        layers: [&ends.0[..], hidden, &ends.1].concat(),
        slot_us: test_bed.slot_us,
        deadline_us: test_bed.deadline_us,
        workload: workload.to_owned(),
        seed,
        command: command.to_owned(),
        layout,
    }
}

/// Trains and writes weights, curve and evaluation. Stops early if `progress` returns false.
///
/// # Errors
/// Invalid options, a file that cannot be written, an error of the simulator.
pub fn train(
    options: &TrainOptions,
    progress: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Result<Trained, TrainError> {
    let test_bed = &options.test_bed;
    test_bed.validate()?;
    let workload: Workload = options.workload.parse()?;
    let forever = Micros(u64::MAX);
    let scenario = test_bed.scenario(workload.clone(), forever);
    scenario.validate()?;
    let first = match &options.first {
        Some((text, share)) => Some((test_bed.scenario(text.parse()?, forever), *share)),
        None => None,
    };
    let hidden = &options.settings.hidden;
    let (seed, command) = (options.seed, &options.command);
    let meta = meta(
        test_bed,
        options.kind,
        hidden,
        &options.workload,
        seed,
        command,
    );
    let task = UpdateTask {
        test_bed,
        scenario: &scenario,
        kind: options.kind,
        settings: &options.settings,
        meta: &meta,
        seed,
    };
    let mut run = TrainingRun::begin(options, &task)?;
    while run.learner.updates < options.updates {
        let share = run.learner.updates as f64 / options.updates as f64;
        let early = first.as_ref().filter(|(_, until)| share < *until);
        let scenario = early.map_or(&scenario, |(scenario, _)| scenario);
        let task = UpdateTask { scenario, ..task };
        let evaluated = run.learner.update(&task, share)?;
        let update = run.learner.updates;
        let slots = update * options.settings.slots as u64;
        run.curve.push(CurvePoint::new(update, slots, &evaluated));
        let last = update == options.updates;
        if last || update.is_multiple_of(options.every.max(1)) {
            run.validate(&task, &workload)?;
            run.save()?;
        }
        let point = run.curve.last().unwrap_or(&CurvePoint::default()).clone();
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

/// A training in progress.
struct TrainingRun<'a> {
    options: &'a TrainOptions,
    learner: Learner,
    curve: Vec<CurvePoint>,
    best: Option<(CurvePoint, Network)>,
}

// === impl TrainingRun ===

impl<'a> TrainingRun<'a> {
    fn begin(options: &'a TrainOptions, task: &UpdateTask<'_>) -> Result<Self, TrainError> {
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
        let kept: TrainingCheckpoint =
            postcard::from_bytes(&bytes).map_err(|error| wrong(error.to_string()))?;
        if kept.meta != identity(options) || !kept.learner.fits(task) {
            return Err(wrong(
                "is of another training; use its options or another folder".to_owned(),
            ));
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

    /// Validates the current weights without noise, and keeps them if they are the best so far.
    fn validate(&mut self, task: &UpdateTask<'_>, workload: &Workload) -> Result<(), TrainError> {
        let network = self.learner.network(task)?;
        let slots = self.options.validation_slots / VALIDATION_SEEDS.len() as u64;
        let evaluated = evaluate(&network, task.test_bed, workload, slots, &VALIDATION_SEEDS)?;
        let Some(point) = self.curve.last_mut() else {
            return Ok(());
        };
        let validation = Ratios {
            goodput: evaluated.overall.goodput_ratio,
            violation: evaluated.overall.violation_ratio,
            heavy: evaluated.overall.heavy_share,
        };
        point.validation = Some(validation);
        let bounds = evaluated.bounds.iter();
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
        let checkpoint = TrainingCheckpoint {
            meta: identity(self.options),
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

    fn finish(self, task: &UpdateTask<'_>, workload: &Workload) -> Result<Trained, TrainError> {
        let (point, network) = match self.best {
            Some(ref best) => best.clone(),
            None => (CurvePoint::default(), self.learner.network(task)?),
        };
        let slots = self.options.test_slots / TEST_SEEDS.len() as u64;
        let evaluation = evaluate(&network, task.test_bed, workload, slots, &TEST_SEEDS)?;
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

/// Plots trainings from several seeds as `curve.svg` in a folder.
///
/// # Errors
/// The file cannot be written.
pub fn draw_seeds(title: &str, trained: &[Trained], folder: &Path) -> Result<(), TrainError> {
    let curves: Vec<Vec<CurvePoint>> = trained.iter().map(|one| one.curve.clone()).collect();
    let path = folder.join(CURVE_SVG);
    let text = curve::svg_of_seeds(title, &curves);
    write(&path, text.as_bytes()).map_err(|source| TrainError::File { path, source })
}

/// Writes atomically: an interrupted training leaves the previous file.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("part");
    std::fs::write(&temporary, bytes)?;
    std::fs::rename(temporary, path)
}

/// Meeting the violation limit comes first, then goodput; above the limit fewer violations.
fn is_better(new: &Ratios, old: &Ratios, limit: f64) -> bool {
    match (new.violation <= limit, old.violation <= limit) {
        (true, true) => new.goodput > old.goodput,
        (false, false) => new.violation < old.violation,
        (new_meets, _) => new_meets,
    }
}

/// The inputs that must be equal to resume from a checkpoint.
fn identity(options: &TrainOptions) -> String {
    let TrainOptions {
        test_bed,
        workload,
        first,
        kind,
        settings,
        seed,
        ..
    } = options;
    format!("{test_bed:?} {kind:?} {settings:?} {seed} {workload} {first:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_violation_limit_comes_before_goodput() {
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
