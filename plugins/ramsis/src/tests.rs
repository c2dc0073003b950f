//! Tables written by hand, and sequences of windows.

#![allow(clippy::unwrap_used)]

mod balance;
mod configure;
mod serve;

use ramsis_tables::{
    Action, Arrivals, Balancing, Batching, FORMAT, Objective, Set, Table, TableEntry,
};
use switchyard_sdk::testing::{CatalogBuilder, Decisions, WindowBuilder, run};

use super::*;

/// One app with an SLO of 100 ms: 0, `small`, takes 10 + 10 b ms; 1, `large`, 30 + 30 b ms.
fn app(builder: CatalogBuilder, name: &str) -> CatalogBuilder {
    builder
        .app(name, &["x", "y"])
        .variant("small", &[0.7, 0.7])
        .latency(10_000, 10_000)
        .variant("large", &[0.9, 0.9])
        .latency(30_000, 30_000)
}

fn catalog(workers: usize) -> Catalog {
    let builder = app(CatalogBuilder::new(), "image");
    let workers = (0..workers).map(|worker| format!("w{worker}"));
    workers
        .fold(builder, |builder, name| builder.worker(&name))
        .build()
}

/// Two tables, for 100 and 200 requests per second. States are (requests, slack in ms) and the full
/// state:
///
/// | | 1, 0 | 1, 50 | 1, 100 | 2, 0 | 2, 50 | 2, 100 | full |
/// | --- | --- | --- | --- | --- | --- | --- | --- |
/// | 100 | small 1 | small 1 | large 1 | small 2 | small 2 | large 2 | small 2 |
/// | 200 | small 1 | small 1 | small 1 | small 2 | small 2 | large 1 | small 2 |
fn set(workers: u32) -> Set {
    let entry = |load: f64| TableEntry {
        load_rps: load,
        file: format!("{load}.table"),
        hash: "0".repeat(64),
        expected_accuracy: 0.8,
        expected_violation_rate: 0.0,
        states: 8,
        seconds: 0.0,
    };
    Set {
        format: FORMAT,
        app: None,
        variants: vec!["large".to_owned(), "small".to_owned()],
        kind: "cpu".to_owned(),
        workers,
        slo_us: 100_000,
        percentile: "p95".to_owned(),
        queue_max: 2,
        slack_us: vec![0, 50_000, 100_000],
        balancing: Balancing::RoundRobin,
        objective: Objective::Query,
        batching: Batching::Variable,
        arrivals: Arrivals::Poisson,
        profile: String::new(),
        tables: vec![entry(100.0), entry(200.0)],
    }
}

const LARGE: u8 = 0;
const SMALL: u8 = 1;

fn put(folder: &str, set: &Set) {
    let json = set.to_json().unwrap();
    host::native::put_artifact(&format!("{folder}/index.json"), json.into_bytes());
    let first = [
        (SMALL, 1),
        (SMALL, 1),
        (LARGE, 1),
        (SMALL, 2),
        (SMALL, 2),
        (LARGE, 2),
        (SMALL, 2),
    ];
    let second = [
        (SMALL, 1),
        (SMALL, 1),
        (SMALL, 1),
        (SMALL, 2),
        (SMALL, 2),
        (LARGE, 1),
        (SMALL, 2),
    ];
    for (entry, actions) in set.tables.iter().zip([first, second]) {
        let actions = actions.map(|(variant, batch)| Action { variant, batch });
        let table = Table::new(entry, set, actions.into()).unwrap();
        let file = format!("{folder}/{}", entry.file);
        host::native::put_artifact(&file, table.to_bytes(entry, set));
    }
}

fn configured(catalog: &Catalog, json: &str) -> Ramsis {
    host::native::take_log();
    Ramsis::configure(catalog, json).unwrap()
}

/// The policy with the tables of [`set`], for all workers of the catalog.
fn policy(catalog: &Catalog) -> Ramsis {
    put("image", &set(catalog.workers().len() as u32));
    configured(catalog, r#"{"tables": "image"}"#)
}

/// Warnings since the policy was configured.
fn warnings() -> Vec<String> {
    let lines = host::native::take_log().into_iter();
    let warnings = lines.filter(|(level, _)| *level == Level::Warn);
    warnings.map(|(_, line)| line).collect()
}

/// Worker, variant and requests of each batch.
fn batches(decisions: Decisions) -> Vec<(u32, u32, Vec<u64>)> {
    let batches = decisions.batches.into_iter();
    batches.map(|b| (b.worker, b.variant, b.requests)).collect()
}

fn decide(
    policy: &mut Ramsis,
    catalog: &Catalog,
    window: WindowBuilder<'_>,
) -> Vec<(u32, u32, Vec<u64>)> {
    batches(run(policy, catalog, &window.build()))
}

/// As [`decide`] under a load of all apps together, in requests per second.
fn decide_under(
    policy: &mut Ramsis,
    catalog: &Catalog,
    load: f64,
    window: WindowBuilder<'_>,
) -> Vec<(u32, u32, Vec<u64>)> {
    let mut window = window.build();
    window.arrival_rate.fill(load);
    batches(run(policy, catalog, &window))
}
