//! `simulate --live`: a server gets the simulated arrivals. The figures of a busy machine are not judged.

use std::path::Path;

use serde_json::Value;

use super::binary::{Ran, policy, switchyard};

fn simulated(figure: &str, more: &[&str]) -> Ran {
    let folder = policy("fcfs");
    let folder = folder.parent().unwrap().to_str().unwrap();
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/paper");
    let (config, profile) = match figure {
        "mael" => ("mael/test-bed.toml", "mael/profile.json"),
        _ => ("sneakpeek/test-bed-gpu.toml", "sneakpeek/gpu.json"),
    };
    let [config, profile] = [config, profile].map(|file| paper.join(file).display().to_string());
    let fixed = [
        "simulate",
        "--policies",
        folder,
        "--late",
        "serve",
        "--json",
        "-",
    ];
    let files = ["--config", &config, "--profile", &profile];
    switchyard(&[&fixed[..], &files, more].concat())
}

fn served(figure: &str, more: &[&str]) -> Vec<Value> {
    let fixed = ["--live", "stand-in", "--seconds", "1.5"];
    let ran = simulated(figure, &[&fixed[..], more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let read: Value = serde_json::from_str(&ran.stdout).unwrap();
    read["runs"].as_array().unwrap().clone()
}

fn check(runs: &[Value], policies: &[&str]) {
    let names = runs.iter().map(|run| {
        let (point, policy) = (run["point"].as_str(), run["policy"].as_str());
        (point.unwrap(), policy.unwrap())
    });
    let points = ["simulated", "live"].iter();
    let expected = points.flat_map(|point| policies.iter().map(move |policy| (*point, *policy)));
    assert!(names.eq(expected), "{runs:?}");
    for run in runs {
        let arrivals = |at: usize| run["reports"][at]["total"]["arrivals"].as_u64().unwrap();
        let same = runs
            .iter()
            .all(|other| other["reports"][0]["total"]["arrivals"].as_u64() == Some(arrivals(0)));
        assert!(same && arrivals(0) > 20, "{run}");
        let total = &run["reports"][0]["total"];
        let answered = ["in_time", "late"].map(|end| total[end].as_u64().unwrap());
        assert_eq!(answered.iter().sum::<u64>(), arrivals(0), "{total}");
        let alone = run["estimates"]["latency_p50_ms"]["mean"].as_f64().unwrap();
        // No worker takes less time than the profile has.
        assert!(alone >= 5.0, "{run}");
    }
}

#[test]
fn apps_that_a_profile_brings_are_served_without_a_zoo() {
    let more = [
        "--policy",
        "mael",
        "--policy",
        "edf",
        "--workload",
        "*=poisson:4",
    ];
    let runs = served("mael", &more);
    check(&runs, &["mael", "edf"]);
    let http = &runs[2]["estimates"]["http_p50_ms"]["mean"];
    assert!(http.as_f64().is_some_and(|ms| ms > 0.0), "{http}");
}

#[test]
fn apps_of_a_zoo_get_inputs_and_evidence() {
    let settings = "sneakpeek{priority_unit_ms = 100}";
    let runs = served(
        "sneakpeek",
        &["--policy", settings, "--workload", "*=poisson:10"],
    );
    check(&runs, &[settings]);
}

#[test]
fn what_no_server_can_do_is_named() {
    let refused = |more: &[&str]| {
        let fixed = [
            "--workload",
            "poisson:4",
            "--seconds",
            "1",
            "--live",
            "stand-in",
        ];
        let ran = simulated("mael", &[&fixed[..], more].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        ran.stderr
    };
    let oracle = refused(&["--policy", "oracle-goodput"]);
    assert!(oracle.contains("--policy oracle-goodput"), "{oracle}");
    let service = refused(&["--policy", "edf", "--service", "exponential:1"]);
    assert!(service.contains("leave out --service"), "{service}");
}
