//! Workloads and traces: those that are accepted give arrivals in bounded time.

use std::path::Path;
use std::sync::Arc;

use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::time::Micros;
use switchyard_policy::trial;
use switchyard_sim::workload::Trace;
use switchyard_sim::{Contender, Scenario, Workload, run};
use tempfile::TempDir;

use super::mutate::Form;
use super::target::Target;

/// Runs a few requests of the workload.
fn play(workload: Workload) -> Result<(), String> {
    let scenario = Scenario {
        requests_max: 40,
        duration: Micros::from_millis(5_000),
        ..Scenario::new(Arc::new(trial::catalog()), workload)
    };
    let edf = Contender::new("edf", EarliestDeadlineFirst::default);
    let report = run(&scenario, &edf, 1).map_err(|error| error.to_string())?;
    assert!(report.total.arrivals <= 40);
    Ok(())
}

pub(crate) fn read_json(text: &[u8]) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let workload: Workload =
        serde_path_to_error::deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    let written = serde_json::to_string(&workload).unwrap();
    let again: Result<Workload, _> = serde_json::from_str(&written);
    assert_eq!(again.as_ref().ok(), Some(&workload), "{written}");
    play(workload)
}

#[test]
fn workload_files() {
    let own = r#"{"streams": [
        {"apps": "each", "arrivals": {"poisson": {"rate": 50.0}}, "deadline": {"scaled": 1.5}},
        {"apps": {"mix": {"three": 2, "two": 1}}, "arrivals": {"gamma": {"rate": 20, "shape": 0.5}},
         "deadline": {"normal": {"mean_us": 150000, "sd_us": 20000}}},
        {"arrivals": {"mmpp": {"rates": [180, 10], "leave": [0.036, 0.002]}}, "known": true},
        {"arrivals": {"map": {"d0": [[-20, 1], [2, -50]], "d1": [[19, 0], [0, 48]]}}},
        {"arrivals": {"phases": [{"rate": 180, "length_us": 27800}, {"rate": 10, "length_us": 500000}]}},
        {"arrivals": {"trace": {"interval_s": 0.5, "qps": [100, 200, 0]}}}
    ]}"#;
    let small = r#"{"streams":[{"arrivals":{"window":{"count":12,"length_us":100000}}},
        {"arrivals":{"burst":{"rate":10,"size":20,"every_us":1000000}},"deadline":{"fixed":150000}},
        {"arrivals":{"erlang":{"rate":20,"stages":3}}},{"arrivals":{"periodic":{"rate":7.5}}}]}"#;
    let target = Target {
        name: "workload JSON",
        seeds: vec![own.into(), small.into()],
        form: Form::Text,
        executions: 1_500,
        accepted_min: 0.05,
        memory_max: (16 << 20, 64),
    };
    target.run(read_json);
}

pub(crate) fn read_spec(text: &[u8]) -> Result<(), String> {
    let text = str::from_utf8(text).map_err(|error| format!("workload: {error}"))?;
    let workload: Workload = text
        .parse()
        .map_err(|error: switchyard_sim::WorkloadError| error.to_string())?;
    play(workload)
}

#[test]
fn workload_specs() {
    let specs = [
        "poisson:200",
        "three=gamma:50,0.5@deadline=slo*1.5;two=erlang:20,3@known",
        "*=window:12x100ms",
        "mmpp:180,10,0.036,0.002@deadline=normal:150ms,20ms;burst:10,20x1s",
        "phases:180x27.8s,10x500s@mix=three:2,two:1@deadline=150ms",
    ];
    let target = Target {
        name: "workload text",
        seeds: specs.map(|spec| spec.as_bytes().to_vec()).to_vec(),
        form: Form::Text,
        executions: 1_500,
        accepted_min: 0.05,
        memory_max: (16 << 20, 64),
    };
    target.run(read_spec);
}

pub(crate) fn read_trace(folder: &Path, text: &[u8]) -> Result<(), String> {
    let file = folder.join("trace.json");
    std::fs::write(&file, text).unwrap();
    let trace = Trace::load(&file).map_err(|error| error.to_string())?;
    std::fs::write(&file, serde_json::to_string(&trace).unwrap()).unwrap();
    assert_eq!(Trace::load(&file).as_ref(), Ok(&trace));
    read_spec(format!("trace:{}", file.display()).as_bytes())
}

#[test]
fn trace_files() {
    let folder = TempDir::new().unwrap();
    let seeds = [
        r#"{"source": "own", "interval_s": 10, "qps": [1850.5, 1617, 0]}"#,
        r#"{"arrivals_us": [12, 5000, 5000, 7100]}"#,
        r#"{"requests": [
            {"at_us": 12, "app": "three", "deadline_us": 20000},
            {"at_us": 700, "app": "two"},
            {"at_us": 700, "app": "three"}
        ]}"#,
    ];
    let target = Target {
        name: "trace JSON",
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).to_vec(),
        form: Form::Text,
        executions: 1_500,
        accepted_min: 0.05,
        memory_max: (16 << 20, 64),
    };
    target.run(|text| read_trace(folder.path(), text));
}
