//! Exit codes, and what is said with them: 0 done, 1 a check failed, 2 bad usage or bad input.

use super::binary::{guest, policy, switchyard};

/// Runs, and returns what it complained about.
fn complaint(arguments: &[&str], code: i32) -> String {
    let ran = switchyard(arguments);
    assert_eq!(
        ran.code,
        Some(code),
        "{arguments:?}\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
    ran.stderr
}

#[test]
fn done_is_0() {
    assert_eq!(complaint(&["--version"], 0), "");
    complaint(
        &[
            "policy",
            "check",
            policy("fcfs").to_str().unwrap(),
            "--budget-ms",
            "200",
        ],
        0,
    );
}

#[test]
fn a_failed_check_is_1() {
    let file = guest("traps");
    let said = complaint(&["policy", "check", file.to_str().unwrap()], 1);
    assert!(
        said.contains("error: ") && said.contains("traps.wasm fails: "),
        "{said}"
    );
}

#[test]
fn bad_usage_is_2() {
    let said = complaint(&["train", "hart"], 2);
    assert!(
        said.contains("'hart'") && said.contains("'heart'"),
        "{said}"
    );
    let said = complaint(&["serv"], 2);
    assert!(said.contains("'serve'"), "{said}");
    let said = complaint(&["serve", "--conifg", "x"], 2);
    assert!(said.contains("'--config'"), "{said}");
    let said = complaint(&["profile"], 2);
    assert!(said.contains("--out <FILE>"), "{said}");
    let said = complaint(&["policy", "check", "x.wasm", "--budget-ms", "0"], 2);
    assert!(said.contains("1..=60000"), "{said}");
    let said = complaint(&[], 2);
    assert!(said.contains("Usage: switchyard"), "{said}");
}

#[test]
fn bad_input_is_2_and_named() {
    let said = complaint(&["serve", "--config", "/nowhere/yard.toml"], 2);
    assert!(
        said.contains("/nowhere/yard.toml: cannot be read"),
        "{said}"
    );
    let said = complaint(&["policy", "check", "/nowhere/x.wasm"], 2);
    assert!(said.contains("/nowhere/x.wasm: read: "), "{said}");
    let said = complaint(
        &["profile", "--out", "/tmp/x.json", "--zoo", "/nowhere/zoo"],
        2,
    );
    assert!(said.contains("app heart: /nowhere/zoo/heart"), "{said}");
    assert!(said.contains("`switchyard train heart`"), "{said}");
    let said = complaint(
        &["serve", "--zoo", "/nowhere/zoo", "--http", "127.0.0.1:0"],
        2,
    );
    assert!(said.contains("app heart: /nowhere/zoo/heart"), "{said}");
}

#[test]
fn training_what_there_is_not_fails_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let out = elsewhere.to_str().unwrap();
    let said = complaint(&["train", "heart", "--out", out], 2);
    assert!(said.contains("its last part must be `heart`"), "{said}");
    let heart = folder.path().join("heart");
    let out = heart.to_str().unwrap();
    let said = complaint(&["train", "heart", "--out", out, "--variant", "resnt"], 2);
    assert!(
        said.contains("no variant `resnt`; there are cnn-small, cnn, resnet"),
        "{said}"
    );
    assert!(!elsewhere.exists() && !heart.exists());
}
