//! `overload`: goodput past capacity, and an exit code that says whether it holds.

use serde_json::Value;

use super::binary::{Ran, policy, switchyard};
use super::simulate::profile;

fn overload(more: &[&str]) -> Ran {
    let folder = policy("fcfs");
    let folder = folder.parent().unwrap().to_str().unwrap();
    switchyard(&[&["overload", "--policies", folder][..], more].concat())
}

fn simulated(more: &[&str]) -> Ran {
    let fixed = ["--simulated", "--profile", "profiles/reference.json"];
    let short = ["--seconds", "2", "--loads", "1,2,10"];
    overload(&[&fixed[..], &short, more].concat())
}

/// Also of a policy that ignores deadlines.
#[test]
fn goodput_holds_past_capacity() {
    let ran = simulated(&["--policy", "edf", "--policy", "fcfs", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    for curve in report["simulated"].as_array().unwrap() {
        let points = curve["points"].as_array().unwrap();
        let goodput = |at: usize| points[at]["goodput_per_s"].as_f64().unwrap();
        assert!(goodput(0) > 100.0, "{curve}");
        assert!(goodput(2) >= 0.9 * goodput(0), "{curve}");
        assert!(points[2]["at"].as_f64() >= Some(2_000.0), "{curve}");
        assert_eq!(points[2]["load"], 10.0, "{curve}");
    }
}

#[test]
fn goodput_that_collapses_is_named() {
    let ran = simulated(&["--policy", "fcfs", "--late", "serve"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("% of its peak"), "{}", ran.stderr);
}

#[test]
fn the_figure_is_written_into_a_folder_that_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/dir/out.svg");
    let ran = simulated(&["--policy", "edf", "--plot", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(std::fs::read_to_string(&file).unwrap().contains("<svg"));
}

/// Figures of a busy machine are not judged here.
#[test]
fn connections_are_served_and_watched() {
    let few = ["--connections", "4,64", "--rounds", "1", "--seconds", "0.3"];
    let fixed = [
        "--live",
        "--policy",
        "edf",
        "--json",
        "--profile",
        profile(),
    ];
    let ran = overload(&[&fixed[..], &few].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", ran.stderr);
    });
    let curve = &report["live"][0];
    for point in [
        &curve["points"][0],
        &curve["points"][1],
        &curve["recovered"],
    ] {
        assert!(point["goodput_per_s"].as_f64() > Some(0.0), "{curve}");
        assert!(point["health_ms"].as_f64() > Some(0.0), "{curve}");
        assert!(point["memory_mib"].as_f64() > Some(1.0), "{curve}");
    }
    assert_eq!(curve["recovered"]["at"], 4.0);
}
