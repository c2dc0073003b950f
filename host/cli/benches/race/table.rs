//! Medians, and ratios to the two bounds.

use super::load::{Body, Run};

/// A contender under one load.
pub(crate) struct Entry {
    name: String,
    body: Body,
    concurrency: usize,
    per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: Option<f64>,
    refused: u64,
    stolen: f64,
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(name: &str, body: Body, concurrency: usize, runs: &[Run]) -> Self {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        Self {
            name: name.to_owned(),
            body,
            concurrency,
            per_s: of(|run| run.per_s),
            p50_ms: of(|run| run.p50_ms),
            p99_ms: of(|run| run.p99_ms),
            cpu_us: runs
                .iter()
                .all(|run| run.cpu_us.is_some())
                .then(|| of(|run| run.cpu_us.unwrap_or_default())),
            refused: runs.iter().map(|run| run.refused).sum(),
            stolen: of(|run| run.stolen),
        }
    }
}

/// As a Markdown table: it goes into `docs/performance.md`.
pub(crate) fn print(entries: &[Entry]) {
    println!(
        "| body | concurrency | server | requests/s | of hyper | of axum | p50 ms | p99 ms | CPU us a request |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|");
    for entry in entries {
        let ratio_to = |name: &str| {
            let other = entries.iter().find(|other| {
                other.name == name
                    && other.body == entry.body
                    && other.concurrency == entry.concurrency
            });
            other.map_or("-".to_owned(), |other| {
                format!("{:.2}", entry.per_s / other.per_s)
            })
        };
        let cpu = entry.cpu_us.map_or("-".to_owned(), |us| format!("{us:.1}"));
        let refused = match entry.refused {
            0 => String::new(),
            refused => format!(" ({refused} refused)"),
        };
        println!(
            "| {} | {} | {}{refused} | {:.0} | {} | {} | {:.2} | {:.2} | {cpu} |",
            entry.body.label(),
            entry.concurrency,
            entry.name,
            entry.per_s,
            ratio_to("hyper"),
            ratio_to("axum"),
            entry.p50_ms,
            entry.p99_ms,
        );
    }
    let stolen = entries.iter().map(|entry| entry.stolen * 100.0);
    let worst = stolen.fold(0.0, f64::max);
    eprintln!("stolen by other guests of the machine: at most {worst:.1} % of a run");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
