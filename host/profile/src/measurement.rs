//! A measurement: samples instead of percentiles, so that an interrupted one can continue.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::samples::{Percentiles, make_monotone, percentiles};
use crate::schema::{
    AccuracyCell, EnergyCell, EnergySource, LatencyCell, LengthCell, ModelCell, ProfileFile,
    Provenance, SCHEMA, SlicingCell,
};

/// Samples of every cell, memory, load times and accuracies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// One entry per worker kind and variant that has been loaded.
    pub models: Vec<ModelCell>,
    /// One entry per worker kind, variant and length, for variants whose requests differ in length.
    #[serde(default)]
    pub lengths: Vec<LengthCell>,
    /// One entry per variant and exit that has been validated.
    pub accuracies: Vec<AccuracyCell>,
    /// In the order in which the profile lists them: the batches of a stage range are neighbours.
    #[serde(rename = "runs")]
    pub(crate) cells: Vec<SampledCell>,
    /// Time spent so far, by worker kind and apps, in microseconds.
    pub(crate) spent_us: BTreeMap<String, u64>,
}

/// Samples of one stage range for one batch size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SampledCell {
    pub(crate) name: CellName,
    pub(crate) batch: u32,
    /// The warm-up, in which buffers grow and caches fill; 0 if there was none.
    pub(crate) cold_us: u64,
    pub(crate) samples_us: Vec<u64>,
    #[serde(default)]
    pub(crate) metered: MeteredEnergy,
}

/// Energy, and the time in which it was drawn. Counters move about once a millisecond, too seldom
/// for single samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeteredEnergy {
    pub(crate) uj: u64,
    pub(crate) us: u64,
}

/// Names the cells of a stage range in every process, one cell per batch size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellName {
    pub(crate) kind: String,
    pub(crate) app: String,
    pub(crate) variant: String,
    pub(crate) from_stage: u32,
    pub(crate) to_stage: u32,
    pub(crate) exit: Option<String>,
    /// The sum over the single stages, with requests parked between them.
    pub(crate) sliced: bool,
}

// === impl Measurement ===

impl Measurement {
    /// The profile that follows from the samples.
    pub fn to_file(&self, made: Provenance, machine: Machine) -> ProfileFile {
        ProfileFile {
            schema: SCHEMA,
            made,
            machine,
            apps: Vec::new(),
            energy: self.energy(),
            models: self.models.clone(),
            accuracies: self.accuracies.clone(),
            slicing: self.slicing(),
            lengths: self.lengths.clone(),
            latencies: self.latencies(),
        }
    }

    /// The number of cells that have a sample or a warm-up.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Adds to the time that has been spent on an account.
    pub fn spend(&mut self, account: &str, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let spent = self.spent_us.entry(account.to_owned()).or_default();
        *spent = spent.saturating_add(time);
    }

    /// The time that has been spent on an account, interruptions included.
    pub fn spent(&self, account: &str) -> Duration {
        Duration::from_micros(self.spent_us.get(account).copied().unwrap_or_default())
    }

    fn latencies(&self) -> Vec<LatencyCell> {
        let mut cells: Vec<(&SampledCell, Percentiles)> = self
            .cells
            .iter()
            .filter(|cell| !cell.name.sliced)
            .map(|cell| (cell, percentiles(cell.samples().to_vec())))
            .collect();
        for range in cells.chunk_by_mut(|(a, _), (b, _)| a.name == b.name) {
            make_monotone(range.iter_mut().map(|(_, measured)| measured));
        }
        let latency = |(cell, measured): (&SampledCell, Percentiles)| LatencyCell {
            kind: cell.name.kind.clone(),
            app: cell.name.app.clone(),
            variant: cell.name.variant.clone(),
            from_stage: cell.name.from_stage,
            to_stage: cell.name.to_stage,
            exit: cell.name.exit.clone(),
            batch: cell.batch,
            samples: cell.samples().len() as u32,
            mean_us: Some(measured.mean_us),
            p50_us: measured.p50_us,
            p95_us: measured.p95_us,
            p99_us: measured.p99_us,
            energy_uj: cell
                .metered
                .power_w()
                .map(|power_w| (power_w * measured.mean_us as f64).round() as u64),
        };
        cells.into_iter().map(latency).collect()
    }

    /// Mean power by kind, for the kinds whose energy was metered.
    fn energy(&self) -> Vec<EnergyCell> {
        let mut kinds = BTreeMap::<&str, MeteredEnergy>::new();
        for cell in self.cells.iter().filter(|cell| !cell.name.sliced) {
            kinds.entry(&cell.name.kind).or_default().add(cell.metered);
        }
        let energy = |(kind, metered): (&str, MeteredEnergy)| {
            Some(EnergyCell {
                kind: kind.to_owned(),
                source: EnergySource::of_kind(kind)?,
                power_w: rounded(metered.power_w()?, 1e3),
            })
        };
        kinds.into_iter().filter_map(energy).collect()
    }

    /// Compares medians of samples that were taken in turn.
    fn slicing(&self) -> Vec<SlicingCell> {
        let sliced = self.cells.iter().filter(|cell| cell.name.sliced);
        sliced
            .filter_map(|sliced| self.slicing_of(sliced))
            .collect()
    }

    fn slicing_of(&self, sliced: &SampledCell) -> Option<SlicingCell> {
        let name = CellName {
            sliced: false,
            ..sliced.name.clone()
        };
        let is_whole = |cell: &&SampledCell| cell.batch == sliced.batch && cell.name == name;
        let whole = self.cells.iter().find(is_whole)?;
        let median = |cell: &SampledCell| percentiles(cell.samples().to_vec()).p50_us;
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

// === impl MeteredEnergy ===

impl MeteredEnergy {
    pub(crate) fn add(&mut self, more: Self) {
        self.uj += more.uj;
        self.us += more.us;
    }

    /// `None` if nothing was metered.
    fn power_w(self) -> Option<f64> {
        (self.us > 0).then(|| self.uj as f64 / self.us as f64)
    }
}

// === impl SampledCell ===

impl SampledCell {
    /// The samples; the warm-up alone if there was no time for a sample.
    fn samples(&self) -> &[u64] {
        if self.samples_us.is_empty() {
            std::slice::from_ref(&self.cold_us)
        } else {
            &self.samples_us
        }
    }
}

fn rounded(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}
