//! Measured profiles: the file, the machine it belongs to, and how to measure one.
//!
//! A profile belongs to the machine it was measured on. [`ProfileFile::matches_machine`] is what
//! keeps another machine's latencies from being used silently.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use switchyard_core::catalog::{App, Confusion, ConfusionError, Variant};
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_models::Precision;

mod error;
mod file;
pub mod import;
mod json;
mod machine;
mod measure;
mod measurement;
mod samples;
mod yard;

pub use error::{ProfileError, ProfileFileError, ProfileMismatch};
pub use file::{
    AccuracyCell, AccuracySource, AppCell, EnergyCell, EnergySource, LatencyCell, Made, ModelCell,
    ProfileFile, SCHEMA, SCHEMA_OLDEST, SlicingCell,
};
pub use machine::Machine;
pub use measure::{
    KindToMeasure, MeasureError, MeasureOptions, MeasureProgress, Subject, Watch, kind_name,
    measure,
};
pub use measurement::{Measurement, MeasurementId, Unfinished};

/// Which of the measured percentiles a policy plans with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// What the papers plan with.
    #[default]
    P95,
    /// The tail.
    P99,
}

/// Names of a catalog: positions in these lists are the core's ids.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Worker kinds.
    pub kinds: &'a [String],
    /// Apps.
    pub apps: &'a [App],
    /// Variants of all apps.
    pub variants: &'a [Variant],
}

// === impl Made ===

impl Made {
    /// Now, by this command and this build.
    pub fn now(command: impl Into<String>) -> Self {
        Self {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: command.into(),
            versions: versions(),
            notes: Vec::new(),
        }
    }
}

/// Of this build, as far as latencies depend on them.
pub fn versions() -> BTreeMap<String, String> {
    [
        ("switchyard", env!("CARGO_PKG_VERSION")),
        ("candle", env!("SWITCHYARD_CANDLE")),
        ("rustc", env!("SWITCHYARD_RUSTC")),
    ]
    .map(|(name, version)| (name.to_owned(), version.to_owned()))
    .into()
}

// === impl Percentile ===

impl Percentile {
    /// As a share, 0 to 1.
    pub fn share(self) -> f64 {
        match self {
            Self::P50 => 0.50,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        }
    }

    fn of(self, cell: &LatencyCell) -> Micros {
        Micros(match self {
            Self::P50 => cell.p50_us,
            Self::P95 => cell.p95_us,
            Self::P99 => cell.p99_us,
        })
    }
}

// === impl ProfileFile ===

impl ProfileFile {
    /// Whether it was measured on this machine.
    ///
    /// # Errors
    /// The first field that differs.
    pub fn matches_machine(&self, ours: &Machine) -> Result<(), ProfileMismatch> {
        let theirs = &self.machine;
        let fields = [
            ("cpu", theirs.cpu.clone(), ours.cpu.clone()),
            ("cores", theirs.cores.to_string(), ours.cores.to_string()),
            ("arch", theirs.arch.clone(), ours.arch.clone()),
            ("os", theirs.os.clone(), ours.os.clone()),
        ];
        for (field, theirs, ours) in fields {
            if theirs != ours {
                return Err(ProfileMismatch {
                    field: format!("machine.{field}"),
                    theirs,
                    ours,
                });
            }
        }
        Ok(())
    }

    /// The core's table for these names. Cells of kinds, variants and exits that have no name
    /// there are left out.
    ///
    /// # Errors
    /// A whole run of a variant was not measured from batch 1 to the variant's largest, or the
    /// variant has changed since.
    pub fn to_core(
        &self,
        names: Names<'_>,
        percentile: Percentile,
    ) -> Result<Profile, ProfileError> {
        let rows = self
            .latencies
            .iter()
            .filter_map(|cell| self.row(cell, names, percentile));
        let loads = self.models.iter().filter_map(|cell| {
            Some(LoadRow {
                kind: names.kind(&cell.kind)?,
                variant: names.variant(&cell.app, &cell.variant)?.0,
                latency: Micros(cell.load_us),
            })
        });
        let profile = Profile::new(percentile.share(), rows, loads);
        for kind in names.kinds {
            for variant in names.variants {
                self.check_covers(kind, variant, names)?;
            }
        }
        Ok(profile)
    }

    /// Gives exits the confusion matrices that were measured, and the recalls that follow from
    /// them, where their cards have none. A variant with narrower weights, of which no card
    /// speaks, gets its accuracies too.
    ///
    /// # Errors
    /// A matrix is not one of the app's classes; names app, variant, exit and class.
    pub fn add_confusions(
        &self,
        apps: &[App],
        variants: &mut [Variant],
    ) -> Result<(), ProfileError> {
        for variant in variants {
            let Some(app) = apps.get(variant.app.index()) else {
                continue;
            };
            for exit in variant
                .exits
                .iter_mut()
                .filter(|exit| exit.confusion.is_none())
            {
                let is_it = |cell: &&AccuracyCell| {
                    (&cell.app, &cell.variant, &cell.exit) == (&app.name, &variant.name, &exit.name)
                        && !cell.confusion.is_empty()
                };
                let Some(cell) = self.accuracies.iter().find(is_it) else {
                    continue;
                };
                let shares = Confusion::from_counts(&cell.confusion).and_then(|shares| {
                    let recall = shares.recall();
                    let classes = app.classes.len();
                    if recall.len() == classes {
                        return Ok((shares, recall));
                    }
                    let reason = format!("{} rows for {classes} classes", recall.len());
                    Err(ConfusionError {
                        class: classes.min(recall.len()),
                        reason,
                    })
                });
                let (shares, recall) = shares.map_err(|error| ProfileError::Confusion {
                    cell: format!(
                        "app {}, variant {}, exit {}, {}",
                        app.name,
                        variant.name,
                        exit.name,
                        app.class(error.class)
                    ),
                    reason: error.reason,
                })?;
                exit.recall = recall;
                exit.confusion = Some(shares);
                let is_measured = cell.source == AccuracySource::Measured;
                if is_measured && variant.name.contains(Precision::MARK) {
                    exit.accuracy = cell.accuracy;
                }
            }
        }
        Ok(())
    }

    /// Reads a profile and refuses it unless it was measured on `machine`.
    ///
    /// # Errors
    /// The file cannot be read, is no profile, or is another machine's.
    pub fn load_for(path: &Path, machine: &Machine) -> Result<Self, ProfileError> {
        let profile = Self::load(path)?;
        profile.matches_machine(machine)?;
        Ok(profile)
    }

    fn row(
        &self,
        cell: &LatencyCell,
        names: Names<'_>,
        percentile: Percentile,
    ) -> Option<ProfileRow> {
        let (variant, known) = names.variant(&cell.app, &cell.variant)?;
        let exit = match &cell.exit {
            None => None,
            Some(name) => {
                let at = known.exits.iter().position(|exit| exit.name == *name)?;
                Some(ExitId(at as u32))
            }
        };
        Some(ProfileRow {
            kind: names.kind(&cell.kind)?,
            variant,
            from_stage: cell.from_stage,
            to_stage: cell.to_stage,
            exit,
            batch: cell.batch,
            latency: percentile.of(cell),
            energy_uj: cell.energy_uj,
        })
    }

    /// Every whole run of a variant must be known for every batch it may be given.
    fn check_covers(
        &self,
        kind: &str,
        variant: &Variant,
        names: Names<'_>,
    ) -> Result<(), ProfileError> {
        let app = names
            .apps
            .get(variant.app.index())
            .map_or("", |app| app.name.as_str());
        let missing = |what: String| ProfileError::Missing {
            cell: format!("kind {kind}, variant {app}/{}, {what}", variant.name),
        };
        let model = self
            .models
            .iter()
            .find(|cell| cell.kind == kind && cell.app == app && cell.variant == variant.name)
            .ok_or_else(|| missing("load time".to_owned()))?;
        if model.memory_bytes != variant.memory_bytes {
            let mismatch = ProfileMismatch {
                field: format!("models[{kind}, {app}/{}].memory_bytes", variant.name),
                theirs: model.memory_bytes.to_string(),
                ours: variant.memory_bytes.to_string(),
            };
            return Err(mismatch.into());
        }
        for exit in &variant.exits {
            let batches: BTreeSet<u32> = self
                .latencies
                .iter()
                .filter(|cell| cell.is_run(kind, app, &variant.name))
                .filter(|cell| (cell.from_stage, cell.to_stage) == (0, exit.after_stage))
                .filter(|cell| cell.exit.as_ref() == Some(&exit.name))
                .map(|cell| cell.batch)
                .collect();
            let at = |batch: u32| {
                let stages = exit.after_stage;
                missing(format!(
                    "stages 0 to {stages}, exit {}, batch {batch}",
                    exit.name
                ))
            };
            if !batches.contains(&1) {
                return Err(at(1));
            }
            if batches.last() < Some(&variant.max_batch) {
                return Err(at(variant.max_batch));
            }
        }
        Ok(())
    }
}

// === impl Names ===

impl<'a> Names<'a> {
    fn kind(self, name: &str) -> Option<KindId> {
        let at = self.kinds.iter().position(|kind| kind == name)?;
        Some(KindId(at as u32))
    }

    fn variant(self, app: &str, name: &str) -> Option<(VariantId, &'a Variant)> {
        let at = self.variants.iter().position(|variant| {
            let owner = self.apps.get(variant.app.index());
            variant.name == name && owner.is_some_and(|owner| owner.name == app)
        })?;
        Some((VariantId(at as u32), &self.variants[at]))
    }
}
