use ramsis_prepare::tables::*;
use ramsis_prepare::*;
use std::collections::BTreeMap;
fn main() {
    let text = std::fs::read_to_string("/work/shared/data/ramsis_image_profiles.json").unwrap();
    let v: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<String> = v["pareto"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap().to_owned())
        .collect();
    let mut raw = Vec::new();
    for n in &names {
        let m = v["models"]
            .as_array()
            .unwrap()
            .iter()
            .find(|m| m["name"] == n.as_str())
            .unwrap();
        let lat: BTreeMap<u32, u64> = m["latency_ms_by_batch"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(b, l)| {
                (
                    b.parse().unwrap(),
                    (l["p95"].as_f64().unwrap() * 1e3).round() as u64,
                )
            })
            .collect();
        raw.push((n.clone(), m["accuracy"].as_f64().unwrap() / 100.0, lat));
    }
    let models: Vec<Model> = raw
        .iter()
        .map(|(n, a, l)| {
            let mut l = l.clone();
            // to 32
            if !l.contains_key(&32) {
                let pts: Vec<(f64, f64)> = l.iter().map(|(&b, &u)| (b as f64, u as f64)).collect();
                let c = pts.len() as f64;
                let (x, y) = pts.iter().fold((0., 0.), |s, p| (s.0 + p.0, s.1 + p.1));
                let (x, y) = (x / c, y / c);
                let (n_, d) = pts.iter().fold((0., 0.), |s, p| {
                    (s.0 + (p.0 - x) * (p.1 - y), s.1 + (p.0 - x) * (p.0 - x))
                });
                l.insert(32, (n_ / d * 32. + y - n_ / d * x).round() as u64);
            }
            Model::measured(n, *a, &l).unwrap()
        })
        .collect();
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let loads: Vec<f64> = args[0].split(',').map(|x| x.parse().unwrap()).collect();
    for objective in [Objective::Decision, Objective::Query] {
        let mut spec = Spec {
            objective,
            ..Spec::new(models.clone(), 150_000, 60)
        };
        if args.iter().any(|a| a == "jsq") {
            spec.balancing = Balancing::ShortestQueue;
        }
        if args.iter().any(|a| a == "var") {
            spec.batching = Batching::Variable;
        }
        if args.iter().any(|a| a == "md") {
            spec.grid = Grid::Models;
        }
        if args.iter().any(|a| a == "d10") {
            spec.grid = Grid::Fixed(10);
        }
        let g = Generator::new(spec).unwrap();
        for &load in &loads {
            let m = g.table(load).unwrap();
            println!(
                "{objective:?} {load} acc {:.4} viol {:.5} all {:.4} dec {:.4} full {:.1e} {:.3}s",
                m.guarantee.accuracy * 100.,
                m.guarantee.violation_rate * 100.,
                m.guarantee.accuracy_of_all * 100.,
                m.guarantee.accuracy_of_decisions * 100.,
                m.guarantee.full,
                m.entry.seconds
            );
            if args.iter().any(|a| a == "fixed") {
                for n in &names {
                    let f = g.fixed(load, n).unwrap();
                    println!(
                        "      {n} acc {:.4} viol {:.4} all {:.4}",
                        f.accuracy * 100.,
                        f.violation_rate * 100.,
                        f.accuracy_of_all * 100.
                    );
                }
            }
        }
    }
}
