//! Variants between the variants of a profile, as in RAMSIS section 7.3.2: on a straight line
//! between neighbours in accuracy, in even steps.

use std::collections::BTreeMap;

use switchyard_profile::{AccuracyCell, LatencyCell, ModelCell, ProfileFile};

/// Adds variants to each app, `step` of accuracy apart, on the line from each variant to the next
/// more accurate one. Existing variants stay.
pub(super) fn add_between(file: &mut ProfileFile, step: f64) {
    let mut accuracies = file.accuracies.clone();
    accuracies.sort_by(|a, b| {
        let order = a.app.cmp(&b.app);
        order.then(a.accuracy.total_cmp(&b.accuracy))
    });
    for pair in accuracies.windows(2) {
        let [low, high] = pair else { continue };
        if low.app != high.app {
            continue;
        }
        let mut added = 1;
        while low.accuracy + step * f64::from(added) < high.accuracy - 1e-9 {
            add(file, low, high, step * f64::from(added));
            added += 1;
        }
    }
}

/// Adds the variant whose accuracy is `more` above that of `low`.
fn add(file: &mut ProfileFile, low: &AccuracyCell, high: &AccuracyCell, more: f64) {
    let share = more / (high.accuracy - low.accuracy);
    let on_line = |from: u64, to: u64| {
        let line = from as f64 + (to as f64 - from as f64) * share;
        line.round() as u64
    };
    let name = format!("{}+{}", low.variant, percent(more));
    let of = |cell: &AccuracyCell| (cell.app.clone(), cell.variant.clone());
    let (low_of, high_of) = (of(low), of(high));
    let models: BTreeMap<_, ModelCell> = file
        .models
        .iter()
        .map(|cell| {
            (
                (cell.kind.clone(), cell.app.clone(), cell.variant.clone()),
                cell.clone(),
            )
        })
        .collect();
    for ((kind, app, variant), cell) in &models {
        let other = models.get(&(kind.clone(), high_of.0.clone(), high_of.1.clone()));
        let (true, Some(other)) = ((app, variant) == (&low_of.0, &low_of.1), other) else {
            continue;
        };
        file.models.push(ModelCell {
            variant: name.clone(),
            memory_bytes: on_line(cell.memory_bytes, other.memory_bytes),
            load_us: on_line(cell.load_us, other.load_us),
            activation_bytes: None,
            parameters: None,
            ..cell.clone()
        });
    }
    let runs = file.latencies.iter();
    let runs_of = |wanted: &(String, String)| {
        let wanted = wanted.clone();
        runs.clone()
            .filter(move |run| (&run.app, &run.variant) == (&wanted.0, &wanted.1))
    };
    let mut added: Vec<LatencyCell> = Vec::new();
    for run in runs_of(&low_of) {
        let is_same = |other: &&LatencyCell| {
            let key = |cell: &LatencyCell| (cell.from_stage, cell.to_stage, cell.batch);
            other.kind == run.kind && key(other) == key(run) && other.exit == run.exit
        };
        let Some(other) = runs_of(&high_of).find(is_same) else {
            continue;
        };
        added.push(LatencyCell {
            variant: name.clone(),
            samples: 0,
            mean_us: None,
            energy_uj: None,
            p50_us: on_line(run.p50_us, other.p50_us),
            p95_us: on_line(run.p95_us, other.p95_us),
            p99_us: on_line(run.p99_us, other.p99_us),
            ..run.clone()
        });
    }
    file.latencies.extend(added);
    file.accuracies.push(AccuracyCell {
        variant: name,
        samples: 0,
        accuracy: low.accuracy + more,
        workload_accuracy: None,
        recall: Vec::new(),
        confusion: Vec::new(),
        ..low.clone()
    });
}

/// A share in percent, with the digits that tell it apart from its neighbours, and at least one.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let texts = (1..=9).map(|digits| format!("{percent:.digits$}"));
    let is_it = |text: &String| {
        text.parse()
            .is_ok_and(|read: f64| (read - percent).abs() < 1e-9)
    };
    let mut texts = texts.filter(is_it);
    texts.next().unwrap_or_else(|| percent.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn profile() -> ProfileFile {
        let model = |name: &str| {
            format!(
                r#"{{"kind": "k", "app": "a", "variant": "{name}", "memory_bytes": 0, "load_us": 0}}"#
            )
        };
        let accuracy = |name: &str, share: f64| {
            format!(
                r#"{{"app": "a", "variant": "{name}", "exit": "final", "source": "imported",
                    "samples": 0, "accuracy": {share}}}"#
            )
        };
        let run = |name: &str, batch: u32, us: u64| {
            format!(
                r#"{{"kind": "k", "app": "a", "variant": "{name}", "from_stage": 0, "to_stage": 1,
                    "exit": "final", "batch": {batch}, "samples": 9, "p50_us": {us},
                    "p95_us": {us}, "p99_us": {us}}}"#
            )
        };
        let json = format!(
            r#"{{"schema": 2, "made": {{"date": "2026-01-01T00:00:00Z", "command": "c", "versions": {{}}}},
                "machine": {{"cpu": "c", "cores": 1, "arch": "a", "os": "o"}},
                "apps": [{{"name": "a", "slo_us": 9}}],
                "models": [{}, {}], "accuracies": [{}, {}], "latencies": [{}, {}, {}]}}"#,
            model("high"),
            model("low"),
            accuracy("high", 0.82),
            accuracy("low", 0.80),
            run("low", 1, 100),
            run("low", 2, 150),
            run("high", 1, 300),
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn models_lie_on_the_line_between_neighbours() {
        let mut file = profile();
        add_between(&mut file, 0.005);
        let names: Vec<&str> = file.models.iter().map(|m| m.variant.as_str()).collect();
        assert_eq!(names, ["high", "low", "low+0.5", "low+1.0", "low+1.5"]);
        let accuracies = file.accuracies.iter().map(|cell| cell.accuracy);
        let rounded: Vec<i64> = accuracies.map(|a| (a * 1e3).round() as i64).collect();
        assert_eq!(rounded, [820, 800, 805, 810, 815]);
        // Only batch sizes of both neighbours.
        let runs = file.latencies[3..]
            .iter()
            .map(|run| (run.batch, run.p95_us, run.samples));
        assert_eq!(
            runs.collect::<Vec<_>>(),
            [(1, 150, 0), (1, 200, 0), (1, 250, 0)]
        );
    }

    #[test]
    fn names_of_small_steps_differ() {
        let mut file = profile();
        add_between(&mut file, 0.0075);
        let names: Vec<&str> = file.models.iter().map(|m| m.variant.as_str()).collect();
        assert_eq!(names, ["high", "low", "low+0.75", "low+1.5"]);
    }

    #[test]
    fn a_step_up_to_the_neighbour_adds_nothing() {
        let mut file = profile();
        add_between(&mut file, 0.02);
        assert_eq!(file, profile());
    }
}
