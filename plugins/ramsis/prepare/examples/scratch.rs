#![allow(clippy::unwrap_used, missing_docs)]
use ramsis_prepare::*;
use std::path::Path;
use std::sync::atomic::AtomicBool;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    // profile(ours json) workers slo_us out from to step kind app
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&args[1]).unwrap()).unwrap();
    let workers: u32 = args[2].parse().unwrap();
    let slo: u64 = args[3].parse().unwrap();
    let (from, to, step): (f64, f64, f64) = (
        args[5].parse().unwrap(),
        args[6].parse().unwrap(),
        args[7].parse().unwrap(),
    );
    let only: Vec<&str> = args
        .get(8)
        .map(|s| s.split(',').collect())
        .unwrap_or_default();
    let mut models = Vec::new();
    let kind = json["latencies"][0]["kind"].as_str().unwrap().to_owned();
    for acc in json["accuracies"].as_array().unwrap() {
        let name = acc["variant"].as_str().unwrap();
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let mut cells: Vec<(u64, u64)> = json["latencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["variant"] == acc["variant"])
            .map(|c| (c["batch"].as_u64().unwrap(), c["p95_us"].as_u64().unwrap()))
            .collect();
        cells.sort();
        let latency_us = cells.iter().map(|c| c.1).collect();
        models.push(Model {
            name: name.to_owned(),
            accuracy: acc["accuracy"].as_f64().unwrap(),
            latency_us,
        });
    }
    let mut spec = Spec::new(models, slo, workers);
    spec.kind = kind;
    spec.app = Some("image".into());
    let generator = Generator::new(spec).unwrap();
    let mut l = vec![];
    let mut x = from;
    while x <= to + 1e-9 {
        l.push(x);
        x += step;
    }
    let loads = Loads::Each(l);
    let set = prepare(
        &generator,
        &loads,
        Path::new(&args[4]),
        &|p| eprintln!("{}/{} {:?}", p.done, p.wanted, p.entry.load_rps),
        &AtomicBool::new(false),
    )
    .unwrap();
    for e in set.tables {
        println!(
            "{} {:.5} {:.5}",
            e.load_rps, e.expected_accuracy, e.expected_violation_rate
        );
    }
}
