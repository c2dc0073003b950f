//! The fields of a profile file. Names and order of the fields are the file's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// The schema that is written.
pub const SCHEMA: u64 = 2;

/// The oldest schema that is read. It has no accuracies, means or slicing overheads.
pub const SCHEMA_OLDEST: u64 = 1;

/// A profile. Latencies are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Version of this layout, [`SCHEMA`].
    pub schema: u64,
    /// When, by which command and with which versions it was measured.
    pub made: Provenance,
    /// The machine it was measured on.
    pub machine: Machine,
    /// The apps of an imported profile, which no zoo has.
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
    /// One entry per worker kind, variant and length, for variants whose requests differ in length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<LengthCell>,
    /// One entry per worker kind, variant, stage range and batch.
    pub latencies: Vec<LatencyCell>,
}

/// When, by which command and with which versions a profile was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// RFC 3339, UTC.
    pub date: String,
    /// The command that measured it.
    pub command: String,
    /// Versions that latencies depend on: of `switchyard`, `candle` and `rustc`.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Notes to the reader, such as the origin of figures that were not measured.
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

/// The power of a worker kind while it computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// Where `power_w` and the `energy_uj` of the kind's latencies come from.
    pub source: EnergySource,
    /// Mean power in watts.
    pub power_w: f64,
}

/// Where energies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnergySource {
    /// The processors' counters, which count everything that runs on the processors.
    Rapl,
    /// The GPU's counter, which counts everything that runs on the GPU.
    Nvml,
    /// The operator's statement; nothing was measured.
    Declared,
}

/// Memory and load time of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// Bytes its weights take, as in the catalog.
    pub memory_bytes: u64,
    /// Most bytes that a batch of the largest size held, without weights and inputs, as the
    /// allocator counted them. Absent if no allocator counted.
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
    /// The engine that computes it, such as `rten`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

/// Accuracy of one exit of a variant. The same on every kind of worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccuracyCell {
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// The exit.
    pub exit: String,
    /// Where the figures come from.
    pub source: AccuracySource,
    /// Inputs they rest on; 0: unknown.
    pub samples: u64,
    /// Share of right answers on the validation set, 0 to 1.
    pub accuracy: f64,
    /// The same on the class mix that the app expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_accuracy: Option<f64>,
    /// Recall per class, 0 to 1; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall: Vec<f64>,
    /// Counts, rows by true class, columns by answer; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
}

/// Where accuracies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccuracySource {
    /// Measured together with the latencies, on the app's validation set.
    Measured,
    /// The variant's card, because the validation set cannot be made here.
    Card,
    /// The imported table.
    Imported,
}

/// The price of cutting a variant into its stages: the time of all stages one by one, with
/// activations parked between them, against the same stages in one go, at the median.
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
    /// The sum over the stages, each measured alone, and the head.
    pub sliced_us: u64,
    /// `sliced_us / whole_us`.
    pub ratio: f64,
    /// `(sliced_us - whole_us) / cuts`. Noise can make it negative.
    pub cut_us: f64,
}

/// Latency of a whole variant with one request of a length: its tokens, if it is a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// The length.
    pub length: u32,
    /// Whether the requests of all other cells have this length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_typical: bool,
    /// Repetitions that the median rests on.
    pub samples: u32,
    /// Median.
    pub p50_us: u64,
}

/// Latency of one stage range for one batch size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyCell {
    /// Worker kind, such as `cpu-1t`.
    pub kind: String,
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit whose head ran afterwards; without an exit the activations were parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Requests in the batch.
    pub batch: u32,
    /// Repetitions the percentiles rest on; 0: filled in by an importer, not measured.
    pub samples: u32,
    /// Mean, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<u64>,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Energy of the batch in microjoules, if known; the [`EnergyCell`] of its kind has the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
}

// === impl AccuracyCell ===

impl AccuracyCell {
    /// The accuracy on a class mix: the mean of the recalls, weighted by the shares of the classes.
    /// `None` if a recall is unknown.
    pub fn on_mix(recall: &[f64], mix: &[f64]) -> Option<f64> {
        let fits = !recall.is_empty() && recall.len() == mix.len();
        fits.then(|| recall.iter().zip(mix).map(|(r, share)| r * share).sum())
    }
}

// === impl LatencyCell ===

impl LatencyCell {
    /// Whether it is of this kind and variant.
    pub fn is_of(&self, kind: &str, app: &str, variant: &str) -> bool {
        self.kind == kind && self.app == app && self.variant == variant
    }
}
