//! The public artifact of RAMSIS: `profiles/TASK/MODEL/MODEL_bsize-B_profile.json`, each a list of
//! latencies in seconds, and a table of accuracies next to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::accuracy::AccuracyTable;
use super::error::ImportError;
use super::rows::{FILLED_MAX, ImportRow, ImportTable};
use crate::check::LATENCY_MAX_US;
use crate::error::ProfileFileError;
use crate::json;
use crate::samples::percentiles;

/// Levels of folders below the given one that are searched.
const DEPTH_MAX: usize = 4;

/// A file with one list of latencies.
struct LatencyList {
    file: PathBuf,
    model: String,
    batch: u32,
}

/// Reads every list below `folder`. They must be of one task: all models in one folder.
pub(super) fn read(folder: &Path, table: Option<&Path>) -> Result<ImportTable, ImportError> {
    let mut found = Vec::new();
    find(folder, DEPTH_MAX, &mut found)?;
    found.sort_by(|a, b| (&a.model, a.batch, &a.file).cmp(&(&b.model, b.batch, &b.file)));
    let tasks: BTreeSet<&Path> = found
        .iter()
        .filter_map(|list| list.file.parent()?.parent())
        .collect();
    match tasks.len() {
        0 => {
            let reason = "holds no MODEL/MODEL_bsize-B_profile.json";
            return Err(ImportError::layout(folder, reason));
        }
        1 => {}
        _ => {
            let tasks: Vec<String> = tasks
                .iter()
                .map(|task| task.display().to_string())
                .collect();
            let reason = format!("holds several tasks, name one: {}", tasks.join(", "));
            return Err(ImportError::layout(folder, reason));
        }
    }
    let accuracies = match table {
        Some(table) => AccuracyTable::read(table)?,
        None => AccuracyTable::find(folder)?,
    };
    let rows = found.iter().map(|list| row(list, &accuracies));
    Ok(ImportTable {
        rows: rows.collect::<Result<_, _>>()?,
        notes: vec![
            format!("accuracies from {}", accuracies.file().display()),
            "samples = 0: not measured, from a linear fit of latency on batch size".to_owned(),
        ],
        fills: true,
    })
}

fn find(folder: &Path, depth: usize, found: &mut Vec<LatencyList>) -> Result<(), ImportError> {
    let failed = |error| ProfileFileError::io(folder, error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && depth > 0 {
            find(&path, depth - 1, found)?;
        } else if let Some((model, batch)) = name_of(&path) {
            let owner = folder.file_name().unwrap_or_default();
            if owner != model {
                let reason = format!("lies in the folder `{}`", owner.display());
                return Err(ImportError::layout(&path, reason));
            }
            found.push(LatencyList {
                model: model.to_owned(),
                batch,
                file: path.clone(),
            });
        }
    }
    Ok(())
}

/// The model and the batch size in a file's name.
fn name_of(file: &Path) -> Option<(&str, u32)> {
    let stem = file.file_name()?.to_str()?.strip_suffix("_profile.json")?;
    let (model, batch) = stem.rsplit_once("_bsize-")?;
    let batch = batch
        .parse()
        .ok()
        .filter(|batch| (1..=FILLED_MAX).contains(batch))?;
    Some((model, batch))
}

fn row(list: &LatencyList, accuracies: &AccuracyTable) -> Result<ImportRow, ImportError> {
    let LatencyList { file, model, batch } = list;
    let seconds: Vec<f64> = json::read(file)?;
    if seconds.is_empty() {
        return Err(ProfileFileError::field(file, ".", "is empty").into());
    }
    let most = LATENCY_MAX_US as f64 / 1e6;
    if let Some(at) = seconds.iter().position(|s| !(*s > 0.0 && *s <= most)) {
        let reason = format!(
            "{}, must be above 0 and at most {most} s (one hour)",
            seconds[at]
        );
        return Err(ProfileFileError::field(file, format!("[{at}]"), reason).into());
    }
    let latency = percentiles(seconds.iter().map(|s| (s * 1e6).round() as u64).collect());
    Ok(ImportRow {
        app: None,
        kind: None,
        variant: model.clone(),
        batch: *batch,
        samples: u32::try_from(seconds.len()).unwrap_or(u32::MAX),
        mean_us: Some(latency.mean_us),
        latency,
        accuracy: Some(accuracies.of(model)?),
        memory_bytes: None,
        load_us: None,
        energy_uj: None,
    })
}
