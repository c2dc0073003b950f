//! Exit codes with their messages: 0 done, 1 a check failed, 2 bad usage or bad input.

use super::binary::{command, guest, policy, switchyard};

/// Runs a command that fails; its stderr.
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
    let said = complaint(&["serve", "--config", "/nowhere/test-bed.toml"], 2);
    assert!(
        said.contains("/nowhere/test-bed.toml: cannot be read"),
        "{said}"
    );
    let said = complaint(&["policy", "check", "/nowhere/x.wasm"], 2);
    assert!(said.contains("/nowhere/x.wasm: read: "), "{said}");
    let said = complaint(
        &["profile", "--out", "/tmp/x.json", "--zoo", "/nowhere/zoo"],
        2,
    );
    assert!(said.contains("app heart: /nowhere/zoo/heart"), "{said}");
    assert!(
        said.contains("is the folder that has the folder heart"),
        "{said}"
    );
    let said = complaint(
        &["serve", "--zoo", "/nowhere/zoo", "--http", "127.0.0.1:0"],
        2,
    );
    assert!(said.contains("app heart: /nowhere/zoo/heart"), "{said}");
}

#[test]
fn an_unknown_policy_is_answered_with_the_nearest_name() {
    let fcfs = policy("fcfs");
    let folder = fcfs.parent().unwrap().to_str().unwrap();
    let profile = "tests/paper/sneakpeek/profile.json";
    let simulate = ["simulate", "--profile", profile, "--workload", "poisson:1"];
    let config = ["--config", "tests/paper/sneakpeek/test-bed.toml"];
    let named = ["--policies", folder, "--policy", "sneakpek"];
    let said = complaint(&[&simulate[..], &config, &named].concat(), 2);
    assert!(
        said.contains("policy `sneakpek`: there is no ")
            && said.contains("did you mean `sneakpeek`?"),
        "{said}"
    );
}

/// The work behind these outputs takes seconds to hours; the refusal does not.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work() {
    let profile = "tests/paper/sneakpeek/profile.json";
    let simulate = ["simulate", "--profile", profile, "--policy", "edf"];
    let long = ["--workload", "poisson:100000", "--seconds", "100000"];
    for option in ["--json", "--plot", "--record"] {
        let file = "/nowhere/x";
        let said = complaint(&[&simulate[..], &long, &[option, file]].concat(), 2);
        let expected = format!("error: {option}: {file}: cannot be written: ");
        assert!(said.contains(&expected), "{said}");
    }
    let below_a_file = "Cargo.toml/x";
    for command in [
        &[&simulate[..], &long, &["--report"]].concat()[..],
        &["profile", "--out"],
        &[
            "prepare",
            "ppo-router",
            "--workload",
            "poisson:100",
            "--out",
        ],
        &["train", "heart", "--out"],
        &["policy", "build", "plugins/fcfs", "--out"],
    ] {
        let path = match command[0] {
            "train" => "Cargo.toml/heart",
            _ => below_a_file,
        };
        let said = complaint(&[command, &[path]].concat(), 2);
        assert!(said.contains(": cannot be written: "), "{said}");
    }
}

/// As `head` does, which has read its lines.
#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    for arguments in [
        &[
            "policy",
            "check",
            policy("fcfs").to_str().unwrap(),
            "--json",
        ][..],
        &[
            "models",
            "--profile",
            "host/cli/tests/cli/fixtures/profile.json",
        ],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = command().args(arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), said.as_str()), (Some(141), ""));
    }
}

/// As `head` does with `2>&1`.
#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let arguments = ["policy", "check", "/nowhere/x.wasm"];
    let ran = command().args(arguments).stderr(writer).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn training_an_unknown_app_fails_before_it_begins() {
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
