//! Generation times on one core: the paper's Table 2. `cargo bench -p ramsis-prepare --bench
//! generation`; `--json` prints results in the format of `switchyard simulate`, with the number of
//! variants as the point and grid and batching as the policy.

use std::error::Error;

use ramsis_prepare::tables::{Batching, Objective};
use ramsis_prepare::{Generator, Grid, Spec};

#[path = "support/image.rs"]
mod image;
#[path = "support/sixty.rs"]
mod sixty;

const LOAD_RPS: f64 = 2_000.0;

/// Name, grid, batching, and the published seconds for 9 and 60 variants; none if it took more than
/// 24 hours or is not published.
type PublishedRow = (&'static str, Grid, Batching, [Option<f64>; 2]);

const ROWS: [PublishedRow; 5] = [
    (
        "md-variable",
        Grid::Models,
        Batching::Variable,
        [Some(3_693.53), None],
    ),
    (
        "fld100-variable",
        Grid::Fixed(100),
        Batching::Variable,
        [Some(3_014.89), None],
    ),
    ("md", Grid::Models, Batching::Maximal, [Some(115.50), None]),
    (
        "fld100",
        Grid::Fixed(100),
        Batching::Maximal,
        [Some(132.20), Some(1_355.09)],
    ),
    (
        "fld10",
        Grid::Fixed(10),
        Batching::Maximal,
        [Some(14.62), Some(148.87)],
    ),
];

struct Timed {
    models: usize,
    name: &'static str,
    published: Option<f64>,
    seconds: f64,
    states: u64,
    accuracy: f64,
    violation_rate: f64,
    memory_mb: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let nine = image::nine()?;
    let sixty = sixty::sixty(&nine);
    let mut timed = Vec::new();
    // Smallest first: the peak of the memory only grows.
    for (column, models) in [nine, sixty].into_iter().enumerate() {
        for (name, grid, batching, published) in ROWS.into_iter().rev() {
            if batching == Batching::Variable && column > 0 {
                continue;
            }
            let spec = Spec {
                grid,
                batching,
                objective: Objective::Decision,
                ..Spec::new(models.clone(), image::SLO_US, image::WORKERS)
            };
            let made = Generator::new(spec)?.table(LOAD_RPS)?;
            timed.push(Timed {
                models: models.len(),
                name,
                published: published[column],
                seconds: made.entry.seconds,
                states: made.entry.states,
                accuracy: made.guarantee.accuracy,
                violation_rate: made.guarantee.violation_rate,
                memory_mb: peak_mb()?,
            });
        }
    }
    match std::env::args().any(|arg| arg == "--json") {
        true => println!("{}", json(&timed)),
        false => print!("{}", table(&timed)),
    }
    Ok(())
}

fn table(timed: &[Timed]) -> String {
    let mut text = format!(
        "one table for {LOAD_RPS}/s on {} workers, the paper's objective\n\
         {:>8}  {:16}{:>10}{:>12}{:>8}{:>10}{:>8}{:>12}\n",
        image::WORKERS,
        "variants",
        "",
        "seconds",
        "published",
        "states",
        "accuracy",
        "late",
        "peak MB"
    );
    for row in timed {
        let published = row.published.map_or("-".to_owned(), |s| format!("{s:.2}"));
        text += &format!(
            "{:8}  {:16}{:10.3}{published:>12}{:8}{:9.2}%{:7.2}%{:12.0}\n",
            row.models,
            row.name,
            row.seconds,
            row.states,
            100.0 * row.accuracy,
            100.0 * row.violation_rate,
            row.memory_mb
        );
    }
    text
}

fn json(timed: &[Timed]) -> serde_json::Value {
    let runs = timed.iter().map(|row| {
        let mean = |value: f64| serde_json::json!({ "mean": value });
        let mut estimates = serde_json::json!({
            "seconds": mean(row.seconds),
            "states": mean(row.states as f64),
            "expected_accuracy": mean(row.accuracy),
            "expected_violation_rate": mean(row.violation_rate),
            "memory_mb": mean(row.memory_mb),
        });
        if let Some(published) = row.published {
            estimates["published_seconds"] = mean(published);
        }
        serde_json::json!({
            "point": format!("variants={}", row.models),
            "policy": row.name,
            "estimates": estimates,
        })
    });
    serde_json::json!({ "runs": runs.collect::<Vec<_>>() })
}

/// Peak resident memory of the process, from Linux, in MB.
fn peak_mb() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kb.ok_or("/proc/self/status: no VmHWM")?.parse::<f64>()? / 1e3)
}
