//! `policy check`: shipped policies pass, and misbehaving guests get the reason.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use super::binary::{Ran, guest, guests, policy, switchyard};

/// More than any of them needs, on a machine that has other things to do.
pub(super) const PATIENT: [&str; 2] = ["--budget-ms", "200"];

pub(super) fn check(file: &Path, more: &[&str]) -> Ran {
    let mut arguments = vec!["policy", "check", file.to_str().unwrap()];
    arguments.extend(more);
    switchyard(&arguments)
}

fn checked_json(file: &Path) -> (Option<i32>, Value) {
    let ran = check(file, &["--json", PATIENT[0], PATIENT[1]]);
    let report = serde_json::from_str(&ran.stdout);
    (
        ran.code,
        report.unwrap_or_else(|error| panic!("{error}: {}", ran.stdout)),
    )
}

/// Without the parts that depend on machine and build.
pub(super) fn redacted(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end();
        let number = bare.trim_end_matches(',');
        let is_decimal = number.contains('.') && number.parse::<f64>().is_ok();
        let is_count = number.len() > 4 && number.bytes().all(|b| b.is_ascii_digit());
        let is_hash = number.len() == 12 && number.bytes().all(|b| b.is_ascii_hexdigit());
        if is_decimal || is_count || is_hash {
            out += "#";
            out += &word[number.len()..];
        } else {
            out += word;
        }
    }
    // Columns are as wide as their numbers.
    let lines = out
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn shipped_policies_pass() {
    for name in ["fcfs", "sneakpeek", "stability"] {
        let ran = check(&policy(name), &PATIENT);
        assert_eq!(ran.code, Some(0), "{name}\n{}\n{}", ran.stdout, ran.stderr);
        assert_snapshot!(format!("check_{name}"), redacted(&ran.stdout));
    }
}

#[test]
fn json_says_the_same() {
    let (code, report) = checked_json(&policy("sneakpeek"));
    assert_eq!(code, Some(0));
    assert_eq!(report["passed"], true);
    assert_eq!(report["reasons"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["about"]["name"], "sneakpeek");
    let costs = report["examination"]["costs"].as_array().unwrap();
    let pending: Vec<u64> = costs
        .iter()
        .map(|c| c["pending"].as_u64().unwrap())
        .collect();
    assert_eq!(pending, [1, 64, 1_024]);
    for cost in costs {
        let (p50, p99) = (
            cost["p50_us"].as_f64().unwrap(),
            cost["p99_us"].as_f64().unwrap(),
        );
        assert!(0.0 < p50 && p50 <= p99, "{cost}");
    }
    let peak = report["examination"]["memory_peak_bytes"].as_u64().unwrap();
    assert!((1 << 16..64 << 20).contains(&peak), "{peak} bytes");
}

/// One snapshot with the message of each guest.
#[test]
fn every_guest_gets_its_reason() {
    let mut names: Vec<String> = fs::read_dir(guests())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    // Well behaved unless its settings say otherwise; `mistakes.rs` has those.
    let well_behaved = ["mistakes", "fleet-changed", "fleet-whole"];
    names.retain(|name| !well_behaved.contains(&name.as_str()));
    names.sort();
    let mut told = String::new();
    for name in names {
        let (code, report) = checked_json(&guest(&name));
        assert_eq!(code, Some(1), "{name}: {report}");
        told += &format!("{name}\n");
        for reason in report["reasons"].as_array().unwrap() {
            told += &format!("  {}\n", redacted(reason.as_str().unwrap()));
        }
    }
    assert_snapshot!("guests", told);
}

/// It is compared with itself when every window shows all workers.
#[test]
fn a_policy_that_keeps_its_workers_passes_and_one_that_forgets_them_gets_advice() {
    for name in ["fleet-changed", "fleet-whole"] {
        let (code, report) = checked_json(&guest(name));
        assert_eq!(code, Some(0), "{name}: {report}");
        let cases = report["examination"]["findings"].as_array().unwrap();
        let compared = cases
            .iter()
            .any(|finding| finding["case"] == "only changed workers");
        assert_eq!(compared, name == "fleet-changed", "{report}");
    }
    let (code, report) = checked_json(&guest("forgets-workers"));
    assert_eq!(code, Some(1), "{report}");
    let said = report.to_string();
    assert!(
        said.contains("another plan with the changed workers"),
        "{said}"
    );
    assert!(said.contains("keep a row for each worker"), "{said}");
}

#[test]
fn settings_and_artifacts_beside_the_file_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asks.wasm");
    fs::copy(guest("asks-at-wrong-time"), &file).unwrap();
    fs::create_dir(folder.path().join("asks")).unwrap();
    fs::write(folder.path().join("asks/weights.bin"), b"1234").unwrap();
    fs::write(
        folder.path().join("asks.toml"),
        "artifact = \"weights.bin\"\n",
    )
    .unwrap();
    let (code, report) = checked_json(&file);
    assert_eq!(code, Some(1));
    assert_eq!(report["about"]["settings"]["artifact"], "weights.bin");
    let reasons = report["reasons"].to_string();
    assert!(
        reasons.contains("artifact weights.bin: forbidden"),
        "{reasons}"
    );

    fs::write(folder.path().join("asks.toml"), "artifact = \n").unwrap();
    let (code, report) = checked_json(&file);
    assert_eq!(code, Some(1));
    assert!(
        report["reasons"][0]
            .as_str()
            .unwrap()
            .contains("asks.toml:1: "),
        "{report}"
    );
}

#[test]
fn a_file_that_is_not_a_component_is_identified() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.wasm");
    fs::write(&file, "not wasm at all").unwrap();
    let ran = check(&file, &[]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("compile: not a WebAssembly file"),
        "{}",
        ran.stdout
    );
}
