//! What has been measured so far: samples, not yet percentiles, so that an interrupted
//! measurement can go on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::ProfileFileError;
use super::file::{
    AccuracyCell, EnergyCell, LatencyCell, Made, ModelCell, ProfileFile, SCHEMA, SlicingCell,
};
use super::json;
use super::machine::Machine;
use super::samples::{Percentiles, make_monotone, percentiles};
use crate::energy::source_of;

/// Samples by run and batch, and what was found out beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// One entry per worker kind and variant that has been loaded.
    pub models: Vec<ModelCell>,
    /// One entry per variant and exit that has been validated.
    pub accuracies: Vec<AccuracyCell>,
    /// In the order in which they are written: a run's batches follow each other.
    pub(super) runs: Vec<SampledRun>,
    /// Time spent so far, by worker kind and apps, in microseconds.
    pub(super) spent_us: BTreeMap<String, u64>,
}

/// One run of one batch, and how long it took each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SampledRun {
    pub(super) name: RunName,
    pub(super) batch: u32,
    /// The first run, in which buffers grow and caches fill.
    pub(super) cold_us: u64,
    pub(super) samples_us: Vec<u64>,
    #[serde(default)]
    pub(super) metered: Metered,
}

/// Energy, and the time in which it was drawn: counters move too seldom for single runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metered {
    pub(super) uj: u64,
    pub(super) us: u64,
}

/// Names a run in every process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunName {
    pub(super) kind: String,
    pub(super) app: String,
    pub(super) variant: String,
    pub(super) from_stage: u32,
    pub(super) to_stage: u32,
    pub(super) exit: Option<String>,
    /// Stage by stage, parked between them: the sum.
    pub(super) sliced: bool,
}

/// What a measurement must have in common with the one that it continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementId {
    /// The command with its options.
    pub command: String,
    /// Where.
    pub machine: Machine,
    /// Of what measures.
    pub versions: BTreeMap<String, String>,
    /// What is measured: worker kinds and variants, each with what its cells depend on.
    pub subjects: Vec<String>,
}

/// A measurement that is kept in a file until it is complete.
#[derive(Clone, Debug)]
pub struct Unfinished {
    path: PathBuf,
    id: MeasurementId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnfinishedFile {
    id: MeasurementId,
    measurement: Measurement,
}

// === impl Measurement ===

impl Measurement {
    /// The profile that follows from the samples.
    pub fn to_file(&self, made: Made, machine: Machine) -> ProfileFile {
        ProfileFile {
            schema: SCHEMA,
            made,
            machine,
            apps: Vec::new(),
            energy: self.energy(),
            models: self.models.clone(),
            accuracies: self.accuracies.clone(),
            slicing: self.slicing(),
            latencies: self.latencies(),
        }
    }

    /// Cells that have been measured at least once.
    pub fn cells(&self) -> usize {
        self.runs.len()
    }

    /// Adds to the time that something has taken.
    pub fn spend(&mut self, on: &str, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let spent = self.spent_us.entry(on.to_owned()).or_default();
        *spent = spent.saturating_add(time);
    }

    /// The time that something has taken, with what was spent before an interruption.
    pub fn spent(&self, of: &str) -> Duration {
        Duration::from_micros(self.spent_us.get(of).copied().unwrap_or_default())
    }

    fn latencies(&self) -> Vec<LatencyCell> {
        let mut cells: Vec<(&SampledRun, Percentiles)> = self
            .runs
            .iter()
            .filter(|run| !run.name.sliced)
            .map(|run| (run, percentiles(run.samples().to_vec())))
            .collect();
        for run in cells.chunk_by_mut(|(a, _), (b, _)| a.name == b.name) {
            make_monotone(run.iter_mut().map(|(_, measured)| measured));
        }
        let cell = |(run, measured): (&SampledRun, Percentiles)| LatencyCell {
            kind: run.name.kind.clone(),
            app: run.name.app.clone(),
            variant: run.name.variant.clone(),
            from_stage: run.name.from_stage,
            to_stage: run.name.to_stage,
            exit: run.name.exit.clone(),
            batch: run.batch,
            samples: run.samples().len() as u32,
            mean_us: Some(measured.mean_us),
            p50_us: measured.p50_us,
            p95_us: measured.p95_us,
            p99_us: measured.p99_us,
            energy_uj: run
                .metered
                .power_w()
                .map(|power_w| (power_w * measured.mean_us as f64).round() as u64),
        };
        cells.into_iter().map(cell).collect()
    }

    /// Mean power by kind, of the kinds that were metered.
    fn energy(&self) -> Vec<EnergyCell> {
        let mut kinds = BTreeMap::<&str, Metered>::new();
        for run in self.runs.iter().filter(|run| !run.name.sliced) {
            kinds.entry(&run.name.kind).or_default().add(run.metered);
        }
        let cell = |(kind, metered): (&str, Metered)| {
            Some(EnergyCell {
                kind: kind.to_owned(),
                source: source_of(kind)?,
                power_w: rounded(metered.power_w()?, 1e3),
            })
        };
        kinds.into_iter().filter_map(cell).collect()
    }

    /// Compares medians of samples that were taken in turn.
    fn slicing(&self) -> Vec<SlicingCell> {
        let sliced = self.runs.iter().filter(|run| run.name.sliced);
        sliced
            .filter_map(|sliced| self.slicing_of(sliced))
            .collect()
    }

    fn slicing_of(&self, sliced: &SampledRun) -> Option<SlicingCell> {
        let name = RunName {
            sliced: false,
            ..sliced.name.clone()
        };
        let is_whole = |run: &&SampledRun| run.batch == sliced.batch && run.name == name;
        let whole = self.runs.iter().find(is_whole)?;
        let median = |run: &SampledRun| percentiles(run.samples().to_vec()).p50_us;
        let (whole_us, sliced_us) = (median(whole), median(sliced));
        let cuts = name.to_stage.checked_sub(1).filter(|&cuts| cuts > 0)?;
        let lost = sliced_us as f64 - whole_us as f64;
        Some(SlicingCell {
            batch: sliced.batch,
            cuts,
            whole_us,
            sliced_us,
            ratio: rounded(sliced_us as f64 / whole_us as f64, 1e4),
            cut_us: rounded(lost / f64::from(cuts), 10.0),
            kind: name.kind,
            app: name.app,
            variant: name.variant,
        })
    }
}

// === impl Metered ===

impl Metered {
    pub(super) fn add(&mut self, more: Self) {
        self.uj += more.uj;
        self.us += more.us;
    }

    /// None when nothing was metered.
    fn power_w(self) -> Option<f64> {
        (self.us > 0).then(|| self.uj as f64 / self.us as f64)
    }
}

// === impl SampledRun ===

impl SampledRun {
    /// What was measured; the first run alone when there was time for no other.
    fn samples(&self) -> &[u64] {
        if self.samples_us.is_empty() {
            std::slice::from_ref(&self.cold_us)
        } else {
            &self.samples_us
        }
    }
}

// === impl MeasurementId ===

impl MeasurementId {
    /// The first thing that differs, in words.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.machine != other.machine {
            return Some(format!("on {:?}", other.machine.cpu));
        }
        if self.versions != other.versions {
            return Some(format!("with {:?}", other.versions));
        }
        if self.command != other.command {
            return Some(format!("by `{}`", other.command));
        }
        (self.subjects != other.subjects).then(|| "of other variants".to_owned())
    }
}

// === impl Unfinished ===

impl Unfinished {
    /// Where the measurement for the profile `out` is kept meanwhile.
    pub fn new(out: &Path, id: MeasurementId) -> Self {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".unfinished");
        Self {
            path: out.with_file_name(name),
            id,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was kept of the same measurement; none when there is nothing.
    ///
    /// # Errors
    /// What is kept is of another measurement, or cannot be read; the reason in words.
    pub fn read(&self) -> Result<Option<Measurement>, String> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        let kept: UnfinishedFile =
            json::parse(&self.path, &text).map_err(|error| error.to_string())?;
        match self.id.difference(&kept.id) {
            None => Ok(Some(kept.measurement)),
            Some(how) => Err(format!("{}: measured {how}", self.path.display())),
        }
    }

    /// Keeps what there is.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, measurement: &Measurement) -> Result<(), ProfileFileError> {
        let failed = |source| ProfileFileError::io(&self.path, source);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let kept = UnfinishedFile {
            id: self.id.clone(),
            measurement: measurement.clone(),
        };
        let text = serde_json::to_string(&kept).map_err(|error| failed(error.into()))?;
        json::replace(&self.path, &text)
    }

    /// Removes the file: the profile is complete.
    pub fn remove(&self) {
        // One that is left over is found to be complete, or of another measurement.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn rounded(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}
