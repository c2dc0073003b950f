//! The profile file, schema 2: JSON, latencies in microseconds. Schema 1, which has no accuracies,
//! means or slicing overheads, is still read.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ProfileFileError;
use super::json::{self, line, lines, parse};
use super::machine::Machine;

/// The schema that is written.
pub const SCHEMA: u64 = 2;

/// The oldest schema that is still read; what it lacks is absent then.
pub const SCHEMA_OLDEST: u64 = 1;

/// Largest distance of a stated share or ratio from what it follows from.
const TOLERANCE: f64 = 1e-3;

/// A measured profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Version of this layout, [`SCHEMA`].
    pub schema: u64,
    /// How it came to be.
    pub made: Made,
    /// Where it was measured.
    pub machine: Machine,
    /// The apps of a profile that was imported: no zoo knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppCell>,
    /// One entry per worker kind whose energy is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<EnergyCell>,
    /// One entry per worker kind and variant.
    pub models: Vec<ModelCell>,
    /// One entry per variant and exit.
    #[serde(default)]
    pub accuracies: Vec<AccuracyCell>,
    /// One entry per worker kind, variant of several stages, and batch.
    #[serde(default)]
    pub slicing: Vec<SlicingCell>,
    /// One entry per worker kind, variant, run and batch.
    pub latencies: Vec<LatencyCell>,
}

/// How a profile came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// RFC 3339, UTC.
    pub date: String,
    /// The command that measured it.
    pub command: String,
    /// Of what measured it: `switchyard`, `candle`, `rustc`.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// What a reader should know, such as where figures come from that were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An app that only this profile knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppCell {
    /// Its name.
    pub name: String,
    /// Deadline of a request that names none, from its arrival.
    pub slo_us: u64,
}

/// What a worker kind draws while it computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// Where the figures are from, these and the latencies' `energy_uj`.
    pub source: EnergySource,
    /// Mean power in watts.
    pub power_w: f64,
}

/// Where energies are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnergySource {
    /// The processors' counters, of all that ran on them meanwhile.
    Rapl,
    /// The card's counter, of all that ran on it meanwhile.
    Nvml,
    /// Nothing was measured: an operator says what the kind draws.
    Declared,
}

/// What holding a variant takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// Bytes its weights take on the device.
    pub memory_bytes: u64,
    /// Most bytes that a batch of the largest size held beside the weights, inputs left out, as
    /// the allocator counted them. Absent where nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_bytes: Option<u64>,
    /// Time to make it resident, the longest measured.
    pub load_us: u64,
    /// Trained numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// Stages that it can be cut into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
}

/// How often one exit of a variant is right. The same on every kind of worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccuracyCell {
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// The exit.
    pub exit: String,
    /// Where the figures are from.
    pub source: AccuracySource,
    /// Inputs they rest on; 0: unknown.
    pub samples: u64,
    /// Share of right answers on the validation set, 0 to 1.
    pub accuracy: f64,
    /// The same on the class mix that the app expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_accuracy: Option<f64>,
    /// Recall per class, 0 to 1; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall: Vec<f64>,
    /// Rows by true class; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
}

/// Where accuracies are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccuracySource {
    /// Measured with the latencies, on the app's validation set.
    Measured,
    /// The variant's card says so: the validation set cannot be made here.
    Card,
    /// The table that was imported says so.
    Imported,
}

/// What cutting a variant into its stages costs: all stages one by one, activations parked
/// between them, against the same stages in one go, at the median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicingCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// Requests in the batch.
    pub batch: u32,
    /// Cuts, one fewer than there are stages.
    pub cuts: u32,
    /// All stages and the last exit's head in one go.
    pub whole_us: u64,
    /// The sum of the stages, each run by itself, and the head.
    pub sliced_us: u64,
    /// `sliced_us / whole_us`.
    pub ratio: f64,
    /// `(sliced_us - whole_us) / cuts`. Noise can make it negative.
    pub cut_us: f64,
}

/// How long one run of one batch takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// First stage run.
    pub from_stage: u32,
    /// One past the last stage run.
    pub to_stage: u32,
    /// The exit whose head ran afterwards; without one the activations were parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Requests in the batch.
    pub batch: u32,
    /// Repetitions the percentiles rest on; 0: not measured but filled in by an importer.
    pub samples: u32,
    /// Mean, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<u64>,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Energy of the batch in microjoules, where it is known; its kind's [`EnergyCell`] says how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
}

/// Read first, so that a newer file is refused for its version, not for a field.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u64,
}

// === impl ProfileFile ===

impl ProfileFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no profile of a schema that is read, or has a field that makes no sense.
    pub fn load(path: &Path) -> Result<Self, ProfileFileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ProfileFileError::io(path, source))?;
        let found = parse::<SchemaOnly>(path, &text)?.schema;
        if !(SCHEMA_OLDEST..=SCHEMA).contains(&found) {
            return Err(ProfileFileError::Schema {
                file: path.to_path_buf(),
                found,
                oldest: SCHEMA_OLDEST,
                newest: SCHEMA,
            });
        }
        let mut profile: Self = parse(path, &text)?;
        profile.schema = SCHEMA;
        profile
            .check()
            .map_err(|(field, reason)| ProfileFileError::field(path, field, reason))?;
        Ok(profile)
    }

    /// Writes the file whole or not at all: a reader never sees half of it.
    ///
    /// # Errors
    /// The folder cannot be made or the file not written.
    pub fn save(&self, path: &Path) -> Result<(), ProfileFileError> {
        json::save(path, &self.to_json())
    }

    /// An app that it brings.
    pub fn app(&self, name: &str) -> Option<&AppCell> {
        self.apps.iter().find(|app| app.name == name)
    }

    /// Leaves out what is about other apps.
    pub fn keep_apps(&mut self, keeps: impl Fn(&str) -> bool) {
        self.apps.retain(|app| keeps(&app.name));
        self.models.retain(|cell| keeps(&cell.app));
        self.accuracies.retain(|cell| keeps(&cell.app));
        self.slicing.retain(|cell| keeps(&cell.app));
        self.latencies.retain(|cell| keeps(&cell.app));
    }

    /// As written: one line per entry, so that profiles can be read and compared.
    pub fn to_json(&self) -> String {
        let made = line(&self.made);
        let machine = line(&self.machine);
        let apps = match lines(&self.apps) {
            none if none.is_empty() => none,
            apps => format!("  \"apps\": [{apps}],\n"),
        };
        let energy = match lines(&self.energy) {
            none if none.is_empty() => none,
            energy => format!("  \"energy\": [{energy}],\n"),
        };
        let lists = [
            ("models", lines(&self.models)),
            ("accuracies", lines(&self.accuracies)),
            ("slicing", lines(&self.slicing)),
            ("latencies", lines(&self.latencies)),
        ]
        .map(|(name, lines)| format!("  \"{name}\": [{lines}]"))
        .join(",\n");
        format!(
            "{{\n  \"schema\": {},\n  \"made\": {made},\n  \"machine\": {machine},\n{apps}{energy}{lists}\n}}\n",
            self.schema
        )
    }

    /// Takes an operator's word for what a kind draws while it computes, in watts: its batches take
    /// this times their mean latency. What was measured stays.
    pub fn declare_power(&mut self, kind: &str, power_w: f64) {
        let known = self.energy.iter().find(|cell| cell.kind == kind);
        if known.is_some_and(|cell| cell.source != EnergySource::Declared) {
            return;
        }
        self.energy.retain(|cell| cell.kind != kind);
        self.energy.push(EnergyCell {
            kind: kind.to_owned(),
            source: EnergySource::Declared,
            power_w,
        });
        for cell in self.latencies.iter_mut().filter(|cell| cell.kind == kind) {
            let mean_us = cell.mean_us.unwrap_or(cell.p50_us);
            cell.energy_uj = Some((power_w * mean_us as f64).round() as u64);
        }
    }

    fn check(&self) -> Result<(), (String, String)> {
        let mut kinds = HashSet::new();
        for (i, cell) in self.energy.iter().enumerate() {
            if !(cell.power_w.is_finite() && cell.power_w >= 0.0) {
                let reason = "must be finite and not negative".to_owned();
                return Err((format!("energy[{i}].power_w"), reason));
            }
            if !kinds.insert(&cell.kind) {
                return Err((format!("energy[{i}].kind"), "is given twice".to_owned()));
            }
        }
        let mut models = HashSet::new();
        for (i, cell) in self.models.iter().enumerate() {
            if !models.insert((&cell.kind, &cell.app, &cell.variant)) {
                return Err((format!("models[{i}]"), "measured twice".to_owned()));
            }
        }
        let mut exits = HashSet::new();
        for (i, cell) in self.accuracies.iter().enumerate() {
            cell.check()
                .map_err(|(field, reason)| (format!("accuracies[{i}].{field}"), reason))?;
            if !exits.insert((&cell.app, &cell.variant, &cell.exit)) {
                return Err((format!("accuracies[{i}]"), "measured twice".to_owned()));
            }
        }
        for (i, cell) in self.slicing.iter().enumerate() {
            cell.check()
                .map_err(|(field, reason)| (format!("slicing[{i}].{field}"), reason.to_owned()))?;
        }
        let mut cells = HashSet::new();
        for (i, cell) in self.latencies.iter().enumerate() {
            cell.check().map_err(|(field, reason)| {
                (format!("latencies[{i}].{field}"), reason.to_owned())
            })?;
            if !cells.insert(cell.key()) {
                return Err((format!("latencies[{i}]"), "measured twice".to_owned()));
            }
        }
        Ok(())
    }
}

// === impl AccuracyCell ===

impl AccuracyCell {
    /// Of the class mix: the recalls, weighted.
    pub fn on_mix(recall: &[f64], mix: &[f64]) -> Option<f64> {
        let fits = !recall.is_empty() && recall.len() == mix.len();
        fits.then(|| recall.iter().zip(mix).map(|(r, share)| r * share).sum())
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let shares = [("accuracy", Some(self.accuracy))]
            .into_iter()
            .chain([("workload_accuracy", self.workload_accuracy)])
            .chain(self.recall.iter().map(|&recall| ("recall", Some(recall))));
        for (field, share) in shares {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err((field, "must be 0 to 1".to_owned()));
            }
        }
        let classes = self.confusion.len();
        if self.confusion.iter().any(|row| row.len() != classes) {
            return Err(("confusion", format!("must be {classes} by {classes}")));
        }
        if classes > 0 && self.recall.len() != classes {
            return Err(("recall", format!("needs {classes} numbers")));
        }
        Ok(())
    }
}

// === impl SlicingCell ===

impl SlicingCell {
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.batch == 0 {
            return Err(("batch", "must be at least 1"));
        }
        if self.cuts == 0 {
            return Err(("cuts", "must be at least 1"));
        }
        if self.whole_us == 0 {
            return Err(("whole_us", "must be at least 1"));
        }
        let ratio = self.sliced_us as f64 / self.whole_us as f64;
        if (self.ratio - ratio).abs() > TOLERANCE {
            return Err(("ratio", "must be sliced_us / whole_us"));
        }
        Ok(())
    }
}

// === impl LatencyCell ===

impl LatencyCell {
    /// Whether it is of this kind and variant.
    pub fn is_run(&self, kind: &str, app: &str, variant: &str) -> bool {
        self.kind == kind && self.app == app && self.variant == variant
    }

    fn key(&self) -> (&str, &str, &str, u32, u32, Option<&str>, u32) {
        (
            &self.kind,
            &self.app,
            &self.variant,
            self.from_stage,
            self.to_stage,
            self.exit.as_deref(),
            self.batch,
        )
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.batch == 0 {
            return Err(("batch", "must be at least 1"));
        }
        if self.from_stage >= self.to_stage {
            return Err(("to_stage", "must follow from_stage"));
        }
        if self.p95_us < self.p50_us {
            return Err(("p95_us", "must not be below p50_us"));
        }
        if self.p99_us < self.p95_us {
            return Err(("p99_us", "must not be below p95_us"));
        }
        Ok(())
    }
}
