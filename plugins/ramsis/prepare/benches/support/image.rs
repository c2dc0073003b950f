//! The image task of the paper and its nine variants.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use ramsis_prepare::Model;
use serde_json::Value;

/// The lowest of the task's three deadlines, in microseconds.
pub(crate) const SLO_US: u64 = 150_000;
/// Number of workers with constant loads.
pub(crate) const WORKERS: u32 = 60;
/// Largest batch of the artifact.
const BATCHES: u32 = 32;

/// The nine variants on the front, from the RAMSIS artifact's measurements; if the file is missing,
/// nine similar ones.
pub(crate) fn nine() -> Result<Vec<Model>, Box<dyn Error>> {
    let file = match std::env::var_os("RAMSIS_PROFILES") {
        Some(file) => PathBuf::from(file),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../../../shared/data/ramsis_image_profiles.json"),
    };
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!(
            "{}: missing; using a stand-in of nine variants. Set RAMSIS_PROFILES to another file.",
            file.display()
        );
        return Ok(stand_in());
    };
    let json: Value = serde_json::from_str(&text)?;
    let missing = |field: &str| format!("{}: no {field}", file.display());
    let names = json["pareto"].as_array().ok_or_else(|| missing("pareto"))?;
    let all = json["models"].as_array().ok_or_else(|| missing("models"))?;
    let mut models = Vec::new();
    for name in names {
        let found = all.iter().find(|model| model["name"] == *name);
        let model = found.ok_or_else(|| missing(&name.to_string()))?;
        let percent = model["accuracy"].as_f64();
        let batches = model["latency_ms_by_batch"].as_object();
        let mut latency_us = BTreeMap::new();
        for (batch, latency) in batches.ok_or_else(|| missing("latency_ms_by_batch"))? {
            let ms = latency["p95"].as_f64().ok_or_else(|| missing("p95"))?;
            latency_us.insert(batch.parse()?, (ms * 1e3).round() as u64);
        }
        models.push(Model::fitted(
            name.as_str().ok_or_else(|| missing("name"))?,
            percent.ok_or_else(|| missing("accuracy"))? / 100.0,
            &latency_us,
            BATCHES,
        )?);
    }
    Ok(models)
}

/// Latencies of one request as in the paper's Figure 3, two thirds of that for each further
/// request.
fn stand_in() -> Vec<Model> {
    let front = [
        (22, 0.58),
        (32, 0.73),
        (54, 0.777),
        (68, 0.806),
        (81, 0.82),
        (106, 0.834),
        (117, 0.842),
        (194, 0.851),
        (367, 0.858),
    ];
    let model = |(ms, accuracy): (u64, f64)| Model {
        name: format!("of-{ms}-ms"),
        accuracy,
        latency_us: (0..u64::from(BATCHES))
            .map(|more| ms * (1_000 + more * 667))
            .collect(),
    };
    front.map(model).to_vec()
}
