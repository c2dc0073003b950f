//! The summary of the RAMSIS artifact: one JSON file, latencies in milliseconds by batch.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::accuracy::shares;
use super::error::ImportError;
use super::rows::{FILLED_MAX, GivenPercentiles, ImportRow, ImportTable};
use crate::check::LATENCY_MAX_US;
use crate::error::ProfileFileError;
use crate::json::parse;

#[derive(Deserialize)]
struct RamsisSummary {
    #[serde(default)]
    source: String,
    models: Vec<SummaryModel>,
}

#[derive(Deserialize)]
struct SummaryModel {
    name: String,
    accuracy: f64,
    latency_ms_by_batch: BTreeMap<String, SummaryLatency>,
}

#[derive(Deserialize)]
struct SummaryLatency {
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
}

/// Read first, so that a profile is not reported as a wrong summary.
#[derive(Deserialize)]
struct SchemaField {
    schema: Option<serde_json::Value>,
}

pub(super) fn read(file: &Path) -> Result<ImportTable, ImportError> {
    let text = std::fs::read_to_string(file).map_err(|error| ProfileFileError::io(file, error))?;
    let known: SchemaField = parse(file, &text)?;
    if known.schema.is_some() {
        let reason = "is a profile already: `schema` is there";
        return Err(ImportError::layout(file, reason));
    }
    let summary: RamsisSummary = parse(file, &text)?;
    let accuracies: Vec<f64> = summary.models.iter().map(|model| model.accuracy).collect();
    let accuracies = shares(&accuracies);
    let mut rows = Vec::new();
    for (m, (model, accuracy)) in summary.models.iter().zip(accuracies).enumerate() {
        let fault = |field: String, reason: &str| {
            ProfileFileError::field(file, format!("models[{m}].{field}"), reason)
        };
        let accuracy =
            accuracy.ok_or_else(|| fault("accuracy".to_owned(), "must be a share or percent"))?;
        for (batch, latency) in &model.latency_ms_by_batch {
            let field = format!("latency_ms_by_batch.{batch}");
            let size: u32 = match batch.parse() {
                Ok(size) if (1..=FILLED_MAX).contains(&size) => size,
                _ => {
                    let reason = format!("is no batch size, which is 1 to {FILLED_MAX}");
                    return Err(fault(field, &reason).into());
                }
            };
            let ms = [latency.p50, latency.p95, latency.p99];
            let most = LATENCY_MAX_US as f64 / 1e3;
            if let Some(ms) = ms.iter().flatten().find(|&&ms| !(ms > 0.0 && ms <= most)) {
                let reason = format!("{ms}, must be above 0 and at most {most} ms (one hour)");
                return Err(fault(field, &reason).into());
            }
            let [p50_us, p95_us, p99_us] = ms.map(|ms| ms.map(|ms| ms * 1e3));
            let given = GivenPercentiles {
                p50_us,
                p95_us,
                p99_us,
            };
            rows.push(ImportRow {
                app: None,
                kind: None,
                variant: model.name.clone(),
                batch: size,
                samples: 1,
                latency: given
                    .complete()
                    .ok_or_else(|| fault(field, "has none of p50, p95, p99"))?,
                mean_us: None,
                accuracy: Some(accuracy),
                memory_bytes: None,
                load_us: None,
                energy_uj: None,
            });
        }
    }
    if rows.is_empty() {
        return Err(ProfileFileError::field(file, "models", "is empty").into());
    }
    let mut notes = vec![
        "a percentile that the summary lacks is the next higher one it has, else the next lower"
            .to_owned(),
        "samples = 0: not measured, from a linear fit of latency on batch size".to_owned(),
    ];
    if !summary.source.is_empty() {
        notes.insert(0, summary.source);
    }
    Ok(ImportTable {
        rows,
        notes,
        fills: true,
    })
}
