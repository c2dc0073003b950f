//! Guarantees of both objectives and of the best fixed variant, by load.
//! `cargo bench -p ramsis-prepare --bench objectives`; `--json` prints results in the format of
//! `switchyard simulate`, with the load as the point and the objective as the policy.

use std::error::Error;

use ramsis_prepare::tables::Objective;
use ramsis_prepare::{Generator, Guarantee, Spec};

#[path = "support/image.rs"]
mod image;

/// Step of the constant loads; close enough to show the weak loads of each objective.
const STEP_RPS: u32 = 100;
const LAST_RPS: u32 = 4_000;

struct Compared {
    load_rps: f64,
    decision: Guarantee,
    query: Guarantee,
    fixed: Guarantee,
    variant: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let models = image::nine()?;
    let generator = |objective| {
        Generator::new(Spec {
            objective,
            ..Spec::new(models.clone(), image::SLO_US, image::WORKERS)
        })
    };
    let (decision, query) = (
        generator(Objective::Decision)?,
        generator(Objective::Query)?,
    );
    let mut compared = Vec::new();
    for load in (STEP_RPS..=LAST_RPS).step_by(STEP_RPS as usize) {
        let load_rps = f64::from(load);
        let mut best: Option<(Guarantee, String)> = None;
        for model in &models {
            let fixed = query.fixed(load_rps, &model.name)?;
            let worse =
                |(best, _): &(Guarantee, String)| best.accuracy_of_all < fixed.accuracy_of_all;
            if best.as_ref().is_none_or(worse) {
                best = Some((fixed, model.name.clone()));
            }
        }
        let (fixed, variant) = best.ok_or("no variants")?;
        compared.push(Compared {
            load_rps,
            decision: decision.table(load_rps)?.guarantee,
            query: query.table(load_rps)?.guarantee,
            fixed,
            variant,
        });
    }
    match std::env::args().any(|arg| arg == "--json") {
        true => println!("{}", json(&compared)),
        false => print!("{}", table(&compared)),
    }
    Ok(())
}

fn table(compared: &[Compared]) -> String {
    let mut text =
        "accuracy per query, late ones counted as wrong (and share of late ones), in %\n"
            .to_owned();
    text += &format!(
        "{:>6}{:>20}{:>20}{:>20}  the best fixed variant\n",
        "load", "per decision", "per query", "fixed"
    );
    for row in compared {
        let shown = |guarantee: &Guarantee| {
            let Guarantee {
                accuracy_of_all,
                violation_rate,
                ..
            } = guarantee;
            format!(
                "{:.3} ({:.3})",
                100.0 * accuracy_of_all,
                100.0 * violation_rate
            )
        };
        text += &format!(
            "{:6}{:>20}{:>20}{:>20}  {}\n",
            row.load_rps,
            shown(&row.decision),
            shown(&row.query),
            shown(&row.fixed),
            row.variant
        );
    }
    text
}

fn json(compared: &[Compared]) -> serde_json::Value {
    let runs = compared.iter().flat_map(|row| {
        let policies = [
            ("decision", row.decision),
            ("query", row.query),
            ("fixed", row.fixed),
        ];
        policies.map(|(policy, guarantee)| {
            let mean = |value: f64| serde_json::json!({ "mean": value });
            serde_json::json!({
                "point": format!("load={}", row.load_rps),
                "policy": policy,
                "estimates": {
                    "accuracy_of_all": mean(guarantee.accuracy_of_all),
                    "expected_accuracy": mean(guarantee.accuracy),
                    "expected_violation_rate": mean(guarantee.violation_rate),
                },
            })
        })
    });
    serde_json::json!({ "runs": runs.collect::<Vec<_>>() })
}
