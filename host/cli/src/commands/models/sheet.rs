//! A profile by app, variant and exit.

use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use switchyard_profile::{
    AccuracyCell, AccuracySource, LatencyCell, Machine, ModelCell, ProfileFile, Provenance,
};

use crate::commands::noise::{is_noise, noise_mark};

/// Batch sizes in the tables.
pub(super) const SHOWN: [u32; 3] = [1, 8, 32];

/// The last columns of the table, which the page leaves out.
pub(super) const SLICING_COLUMNS: usize = 2;

/// The column of the engine.
const ENGINE_COLUMN: usize = 1;

/// Explains the mark of noise below the table.
pub(super) const NOISE_NOTE: &str =
    "~: within the noise, at most the whole batch's spread from p50 to p95";

/// A cell without a value.
const NONE: &str = "-";

/// The tables' data, in the order of the profile.
#[derive(Debug, Serialize)]
pub(super) struct Sheet {
    pub(super) made: Provenance,
    pub(super) machine: Machine,
    pub(super) apps: Vec<AppSheet>,
    /// Whether any variant has an engine: former profiles have none, and no column of it.
    #[serde(skip)]
    has_engines: bool,
}

/// One app.
#[derive(Debug, Serialize)]
pub(super) struct AppSheet {
    pub(super) app: String,
    pub(super) variants: Vec<VariantSheet>,
}

/// One variant on one kind of worker.
#[derive(Debug, Serialize)]
pub(super) struct VariantSheet {
    pub(super) kind: String,
    pub(super) variant: String,
    /// The engine that computes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<String>,
    pub(super) parameters: Option<u64>,
    pub(super) stages: Option<u32>,
    pub(super) load_ms: f64,
    pub(super) weights_mib: f64,
    /// Memory of the largest batch, in addition to the weights.
    pub(super) batch_mib: Option<f64>,
    pub(super) slicing: Vec<Slicing>,
    pub(super) exits: Vec<ExitSheet>,
}

/// The cost of cutting a variant into all its stages.
#[derive(Debug, Serialize)]
pub(super) struct Slicing {
    pub(super) batch: u32,
    pub(super) ratio: f64,
    pub(super) cut_us: f64,
    /// The cost is within the noise.
    pub(super) is_noise: bool,
}

/// One exit.
#[derive(Debug, Serialize)]
pub(super) struct ExitSheet {
    pub(super) exit: String,
    /// Stages that run before it.
    pub(super) after_stage: u32,
    pub(super) accuracy: Option<f64>,
    pub(super) workload_accuracy: Option<f64>,
    pub(super) recall_min: Option<f64>,
    pub(super) recall_max: Option<f64>,
    pub(super) source: Option<AccuracySource>,
    /// Medians of [`SHOWN`], in milliseconds.
    pub(super) p50_ms: [Option<f64>; SHOWN.len()],
}

// === impl Sheet ===

impl Sheet {
    pub(super) fn new(file: &ProfileFile) -> Self {
        let mut apps: Vec<AppSheet> = Vec::new();
        for model in &file.models {
            let variant = VariantSheet::new(file, model);
            match apps.iter_mut().find(|sheet| sheet.app == model.app) {
                Some(sheet) => sheet.variants.push(variant),
                None => apps.push(AppSheet {
                    app: model.app.clone(),
                    variants: vec![variant],
                }),
            }
        }
        Self {
            made: file.made.clone(),
            machine: file.machine.clone(),
            apps,
            has_engines: file.models.iter().any(|model| model.engine.is_some()),
        }
    }

    /// Headings of the columns, without worker kind and app.
    pub(super) fn header(&self) -> Vec<String> {
        let before = [
            "variant",
            "engine",
            "parameters",
            "stages",
            "exit",
            "accuracy",
            "on the mix",
            "recall",
        ];
        let batches = SHOWN.map(|batch| format!("p50 ms, {batch}"));
        let after = ["load ms", "MiB", "sliced, 1", "us per cut"];
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (before, after): (Vec<String>, Vec<String>) = (words(&before), words(&after));
        self.shown([before, batches.to_vec(), after].concat())
    }

    /// The cells of a row, without that of the engine if no variant has one.
    pub(super) fn shown(&self, mut cells: Vec<String>) -> Vec<String> {
        if !self.has_engines {
            cells.remove(ENGINE_COLUMN);
        }
        cells
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        let mut header = vec!["kind".to_owned(), "app".to_owned()];
        header.extend(self.header());
        table.set_header(header);
        for app in &self.apps {
            for variant in &app.variants {
                for cells in variant.rows() {
                    let mut row = vec![variant.kind.clone(), app.app.clone()];
                    row.extend(self.shown(cells));
                    table.add_row(row);
                }
            }
        }
        for column in table.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

// === impl VariantSheet ===

impl VariantSheet {
    fn new(file: &ProfileFile, model: &ModelCell) -> Self {
        let sliced = file.slicing.iter().filter(|cell| {
            (&cell.kind, &cell.app, &cell.variant) == (&model.kind, &model.app, &model.variant)
        });
        Self {
            kind: model.kind.clone(),
            variant: model.variant.clone(),
            engine: model.engine.clone(),
            parameters: model.parameters,
            stages: model.stages,
            load_ms: ms(model.load_us),
            weights_mib: mib(model.memory_bytes),
            batch_mib: model.activation_bytes.map(mib),
            slicing: sliced
                .map(|cell| Slicing {
                    batch: cell.batch,
                    ratio: cell.ratio,
                    cut_us: cell.cut_us,
                    is_noise: is_noise(&file.latencies, cell),
                })
                .collect(),
            exits: exits(file, model),
        }
    }

    /// A row per exit. The first one has the variant's own cells.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let slicing = self
            .slicing
            .iter()
            .find(|slicing| slicing.batch == SHOWN[0]);
        let memory = match self.batch_mib {
            Some(batch) => format!("{:.2} + {batch:.2}", self.weights_mib),
            None => format!("{:.2}", self.weights_mib),
        };
        let cut = slicing.map_or(NONE.to_owned(), |slicing| {
            format!("{:.0}{}", slicing.cut_us, noise_mark(slicing.is_noise))
        });
        let row = |(i, exit): (usize, &ExitSheet)| {
            let own = |cell: String| if i == 0 { cell } else { String::new() };
            let mut cells = vec![
                own(self.variant.clone()),
                own(self.engine.clone().unwrap_or_else(|| NONE.to_owned())),
                own(self.parameters.map_or(NONE.to_owned(), thousands)),
                own(self
                    .stages
                    .map_or(NONE.to_owned(), |stages| stages.to_string())),
            ];
            cells.extend(exit.cells());
            cells.extend([
                own(format!("{:.1}", self.load_ms)),
                own(memory.clone()),
                own(shown(slicing.map(|slicing| slicing.ratio), 3)),
                own(cut.clone()),
            ]);
            cells
        };
        self.exits.iter().enumerate().map(row).collect()
    }
}

// === impl ExitSheet ===

impl ExitSheet {
    fn cells(&self) -> Vec<String> {
        let mark = match self.source {
            Some(AccuracySource::Card | AccuracySource::Imported) => "*",
            _ => "",
        };
        let mut cells = vec![
            self.exit.clone(),
            format!("{}{mark}", shown(self.accuracy, 3)),
            shown(self.workload_accuracy, 3),
            match (self.recall_min, self.recall_max) {
                (Some(min), Some(max)) => format!("{min:.2} to {max:.2}"),
                _ => NONE.to_owned(),
            },
        ];
        cells.extend(self.p50_ms.map(|ms| shown(ms, 2)));
        cells
    }
}

/// The exits with a measurement from the first stage on, shallowest first.
fn exits(file: &ProfileFile, model: &ModelCell) -> Vec<ExitSheet> {
    let whole: Vec<&LatencyCell> = file
        .latencies
        .iter()
        .filter(|cell| cell.is_of(&model.kind, &model.app, &model.variant))
        .filter(|cell| cell.from_stage == 0)
        .collect();
    let mut exits: Vec<ExitSheet> = Vec::new();
    for cell in &whole {
        let Some(name) = &cell.exit else { continue };
        if exits.iter().any(|exit| exit.exit == *name) {
            continue;
        }
        let accuracy = file.accuracies.iter().find(|accuracy| {
            (&accuracy.app, &accuracy.variant, &accuracy.exit) == (&model.app, &model.variant, name)
        });
        let p50 = |batch: u32| {
            let mut cells = whole.iter();
            let found = cells.find(|c| c.batch == batch && c.exit.as_ref() == Some(name))?;
            Some(ms(found.p50_us))
        };
        let recall = |pick: fn(f64, f64) -> f64| accuracy?.recall.iter().copied().reduce(pick);
        exits.push(ExitSheet {
            exit: name.clone(),
            after_stage: cell.to_stage,
            accuracy: accuracy.map(|cell: &AccuracyCell| cell.accuracy),
            workload_accuracy: accuracy.and_then(|cell| cell.workload_accuracy),
            recall_min: recall(f64::min),
            recall_max: recall(f64::max),
            source: accuracy.map(|cell| cell.source),
            p50_ms: SHOWN.map(p50),
        });
    }
    exits.sort_by_key(|exit| exit.after_stage);
    exits
}

fn shown(number: Option<f64>, digits: usize) -> String {
    number.map_or(NONE.to_owned(), |number| format!("{number:.digits$}"))
}

/// With a comma between groups of three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let grouped = [0, 999, 1_000, 25_557_032].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "25,557,032"]);
    }
}
