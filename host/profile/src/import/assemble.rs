//! From the rows of any layout to a profile.

use std::path::Path;

use super::layout::ImportLayout;
use super::options::ImportOptions;
use super::rows::{ImportRow, ImportTable};
use crate::machine::Machine;
use crate::schema::{
    AccuracyCell, AccuracySource, AppCell, LatencyCell, ModelCell, ProfileFile, Provenance, SCHEMA,
};

/// The only exit of an imported variant.
const EXIT: &str = "final";

pub(super) fn assemble(
    path: &Path,
    table: &ImportTable,
    layout: ImportLayout,
    options: &ImportOptions,
) -> ProfileFile {
    let mut notes = vec![format!(
        "imported from {} ({}); not measured here",
        path.display(),
        layout.label()
    )];
    notes.extend(table.notes.iter().cloned());
    let mut file = ProfileFile {
        schema: SCHEMA,
        made: Provenance {
            notes,
            ..Provenance::now(&options.command, options.versions.clone())
        },
        machine: Machine::elsewhere(),
        apps: Vec::new(),
        energy: Vec::new(),
        models: Vec::new(),
        accuracies: Vec::new(),
        slicing: Vec::new(),
        lengths: Vec::new(),
        latencies: Vec::new(),
    };
    for row in &table.rows {
        file.add(row, options);
    }
    file
}

// === impl ProfileFile ===

impl ProfileFile {
    fn add(&mut self, row: &ImportRow, options: &ImportOptions) {
        let app = row.app.as_ref().unwrap_or(&options.app).clone();
        let kind = row.kind.as_ref().unwrap_or(&options.kind).clone();
        let variant = row.variant.clone();
        if self.app(&app).is_none() {
            self.apps.push(AppCell {
                name: app.clone(),
                slo_us: options.slo_us,
            });
        }
        let is_same = |known: &ModelCell| {
            (&known.kind, &known.app, &known.variant) == (&kind, &app, &variant)
        };
        if !self.models.iter().any(is_same) {
            self.models.push(ModelCell {
                kind: kind.clone(),
                app: app.clone(),
                variant: variant.clone(),
                memory_bytes: row.memory_bytes.unwrap_or_default(),
                activation_bytes: None,
                load_us: row.load_us.unwrap_or_default(),
                parameters: None,
                stages: Some(1),
                engine: None,
            });
        }
        let is_same = |known: &AccuracyCell| (&known.app, &known.variant) == (&app, &variant);
        if let Some(accuracy) = row.accuracy
            && !self.accuracies.iter().any(is_same)
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
