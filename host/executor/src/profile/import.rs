//! Profiles that others measured, in our layout.
//!
//! Three layouts are recognised:
//! - the public artifact of RAMSIS: a folder with `MODEL/MODEL_bsize-B_profile.json`, each a list
//!   of seconds, and a table of accuracies;
//! - a summary of it in one JSON file, with `latency_ms_by_batch`;
//! - a table of comma-separated values, one line per variant and batch.
//!
//! What was measured elsewhere is good for simulations. Nothing is ever served from it: its
//! machine is nobody's.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::error::ProfileFileError;
use super::file::{
    AccuracyCell, AccuracySource, AppCell, LatencyCell, Made, ModelCell, ProfileFile, SCHEMA,
};
use super::machine::Machine;
use crate::profile::import::rows::{Row, Table};

mod accuracy;
mod artifact;
mod csv;
mod rows;
mod summary;

/// The only exit of an imported variant.
const EXIT: &str = "final";

/// What an import is told that the layouts do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// The app that the variants belong to, where the layout names none.
    pub app: String,
    /// The kind of worker it was measured on, where the layout names none.
    pub kind: String,
    /// Deadline of the app's requests, in microseconds.
    pub slo_us: u64,
    /// Table of accuracies; without one, it is looked for beside the latencies.
    pub accuracy: Option<PathBuf>,
    /// The variants to take; empty: all.
    pub variants: Vec<String>,
    /// The command, for the file.
    pub command: String,
}

/// Which layout was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The RAMSIS artifact's folder.
    RamsisArtifact,
    /// Its summary.
    RamsisSummary,
    /// Comma-separated values.
    Csv,
}

/// Why something cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read, or a field of it is at fault.
    #[error(transparent)]
    File(#[from] ProfileFileError),
    /// A line of a table is at fault.
    #[error("{}:{line}: {reason}", file.display())]
    Line {
        /// Which file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It is no layout that is known, or not all of one.
    #[error("{}: {reason}", path.display())]
    Layout {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads a public layout.
///
/// # Errors
/// The layout is not known, or a file, line or field of it is at fault; the message names it.
pub fn import(path: &Path, options: &ImportOptions) -> Result<(ProfileFile, Layout), ImportError> {
    let (layout, table) = if path.is_dir() {
        let accuracy = options.accuracy.as_deref();
        (Layout::RamsisArtifact, artifact::read(path, accuracy)?)
    } else if has_extension(path, "csv") {
        (Layout::Csv, csv::read(path)?)
    } else if has_extension(path, "json") {
        (Layout::RamsisSummary, summary::read(path)?)
    } else {
        let reason = "neither a folder nor a .json or .csv file";
        return Err(ImportError::layout(path, reason));
    };
    let table = table.only(path, &options.variants)?.finished();
    Ok((assemble(path, &table, layout, options), layout))
}

// === impl Layout ===

impl Layout {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::RamsisArtifact => "RAMSIS artifact",
            Self::RamsisSummary => "RAMSIS summary",
            Self::Csv => "CSV",
        }
    }
}

// === impl ImportError ===

impl ImportError {
    fn layout(path: &Path, reason: impl Into<String>) -> Self {
        Self::Layout {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    fn line(file: &Path, line: usize, reason: impl Into<String>) -> Self {
        Self::Line {
            file: file.to_path_buf(),
            line,
            reason: reason.into(),
        }
    }
}

// === our layout ===

fn assemble(path: &Path, table: &Table, layout: Layout, options: &ImportOptions) -> ProfileFile {
    let mut notes = vec![format!(
        "imported from {} ({}); not measured here",
        path.display(),
        layout.label()
    )];
    notes.extend(table.notes.iter().cloned());
    let mut file = ProfileFile {
        schema: SCHEMA,
        made: Made {
            notes,
            ..Made::now(&options.command)
        },
        machine: Machine::elsewhere(),
        apps: Vec::new(),
        energy: Vec::new(),
        models: Vec::new(),
        accuracies: Vec::new(),
        slicing: Vec::new(),
        latencies: Vec::new(),
    };
    for row in &table.rows {
        file.add(row, options);
    }
    file
}

// === impl ProfileFile ===

impl ProfileFile {
    fn add(&mut self, row: &Row, options: &ImportOptions) {
        let app = row.app.as_ref().unwrap_or(&options.app).clone();
        let kind = row.kind.as_ref().unwrap_or(&options.kind).clone();
        let variant = row.variant.clone();
        if !self.apps.iter().any(|known| known.name == app) {
            self.apps.push(AppCell {
                name: app.clone(),
                slo_us: options.slo_us,
            });
        }
        let is_of = |known: &ModelCell| {
            (&known.kind, &known.app, &known.variant) == (&kind, &app, &variant)
        };
        if !self.models.iter().any(is_of) {
            self.models.push(ModelCell {
                kind: kind.clone(),
                app: app.clone(),
                variant: variant.clone(),
                memory_bytes: row.memory_bytes.unwrap_or_default(),
                activation_bytes: None,
                load_us: row.load_us.unwrap_or_default(),
                parameters: None,
                stages: Some(1),
            });
        }
        let is_of = |known: &AccuracyCell| (&known.app, &known.variant) == (&app, &variant);
        if let Some(accuracy) = row.accuracy
            && !self.accuracies.iter().any(is_of)
        {
            self.accuracies.push(AccuracyCell {
                app: app.clone(),
                variant: variant.clone(),
                exit: EXIT.to_owned(),
                source: AccuracySource::Imported,
                samples: 0,
                accuracy,
                workload_accuracy: None,
                recall: Vec::new(),
                confusion: Vec::new(),
            });
        }
        self.latencies.push(LatencyCell {
            kind,
            app,
            variant,
            from_stage: 0,
            to_stage: 1,
            exit: Some(EXIT.to_owned()),
            batch: row.batch,
            samples: row.samples,
            mean_us: row.mean_us,
            p50_us: row.latency.p50_us,
            p95_us: row.latency.p95_us,
            p99_us: row.latency.p99_us,
            energy_uj: row.energy_uj,
        });
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}
