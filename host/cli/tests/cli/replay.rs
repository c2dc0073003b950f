//! `replay`: the recorded policy repeats its plans, another policy's differences are listed, and
//! unusable recordings are named.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fcfs::Fcfs;
use insta::assert_snapshot;
use serde_json::Value;
use switchyard_core::decision::Decision;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{EarliestDeadlineFirst, Policy, WindowFields};
use switchyard_policy::recording::{Frame, Header, PolicyRecord, Reader, Writer};
use switchyard_policy::trial;
use switchyard_sdk::testing::Case;
use tempfile::TempDir;

use super::binary::{Ran, policy, root, switchyard};
use super::simulate::profile;

fn policies() -> String {
    let fcfs = policy("fcfs");
    fcfs.parent().unwrap().to_str().unwrap().to_owned()
}

/// Records a simulated policy.
fn simulated(folder: &Path, policy: &str, more: &[&str]) -> PathBuf {
    let file = folder.join(format!("{policy}.rec"));
    let (folder, fixed) = (
        policies(),
        // A load at which requests wait together on every machine: the profile is measured.
        ["--workload", "gamma:1500,0.5", "--seconds", "2"],
    );
    let words = ["simulate", "--policy", policy, "--policies", &folder];
    let record = ["--profile", profile(), "--record", file.to_str().unwrap()];
    let ran = switchyard(&[&words[..], &fixed, &record, more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    file
}

fn replay(file: &Path, more: &[&str]) -> Ran {
    let folder = policies();
    let words = ["replay", file.to_str().unwrap(), "--policies", &folder];
    switchyard(&[&words[..], more].concat())
}

fn replayed(file: &Path, more: &[&str]) -> Value {
    let ran = replay(file, &[more, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn count(value: &Value, field: &str) -> u64 {
    value[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field}: {value}"))
}

/// A recording that is the same on every machine: the fallback on the made windows.
fn recorded() -> (TempDir, PathBuf) {
    let catalog = trial::catalog();
    let mut policy = EarliestDeadlineFirst::default();
    policy.configure(&catalog).unwrap();
    let header = Header {
        made_by: "test".to_owned(),
        policy: Some(PolicyRecord::native(policy.description())),
        ..Header::new("main", catalog.clone())
    };
    let mut frames = vec![Frame::Start(Box::new(header))];
    let cases = trial::made_windows(&catalog, WindowFields::default());
    for case in cases.into_iter().filter(|case| case.window.len() < 100) {
        let mut plan = Plan::default();
        policy.schedule(&case.window, &mut plan).unwrap();
        frames.push(Frame::Decision(Arc::new(Decision {
            window: case.window,
            plan,
            by: policy.description().label().into(),
            rescue: false,
        })));
    }
    let rescue = Decision {
        rescue: true,
        window: trial::window_of(&catalog, WindowFields::default(), 1),
        ..Decision::default()
    };
    frames.extend([Frame::Gap(3), Frame::Decision(Arc::new(rescue))]);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("main.rec");
    let mut writer = Writer::create(&file).unwrap();
    for frame in &frames {
        writer.write(frame).unwrap();
    }
    writer.flush().unwrap();
    (folder, file)
}

/// The output without the file's folder.
fn said(file: &Path, text: &str) -> String {
    text.replace(file.to_str().unwrap(), "main.rec")
}

#[test]
fn the_recorded_policy_repeats_its_plans() {
    let folder = TempDir::new().unwrap();
    for policy in ["fcfs", "sneakpeek", "edf"] {
        let file = simulated(folder.path(), policy, &["--seed", "5"]);
        let found = replayed(&file, &["--policy", policy]);
        let windows = count(&found, "windows");
        // A batch is a window, and the profile is of a machine that may be slow just now.
        assert!(windows > 20, "{found}");
        assert_eq!(count(&found, "identical"), windows, "{found:#}");
        assert_eq!(found["is_recorded"], true);
        assert_eq!(found["unseen"], serde_json::json!([]));
    }
}

#[test]
fn another_policy_or_other_settings_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let file = simulated(folder.path(), "sneakpeek", &[]);
    let other = replayed(&file, &["--policy", "fcfs", "--limit", "2"]);
    let settings = ["--policy", "sneakpeek", "--settings", "group_max = 1"];
    let set = replayed(&file, &settings);
    for found in [&other, &set] {
        assert_eq!(found["is_recorded"], false);
        // Each request counts once, however many windows show it.
        let requests = &found["requests"];
        let parts = ["both_decide", "replayed_first", "replayed_waits"];
        let parts: u64 = parts.iter().map(|part| count(requests, part)).sum();
        assert_eq!(parts, count(requests, "different"), "{requests}");
        assert!(parts > 0 && parts <= count(requests, "all"), "{requests}");
        assert!(count(found, "different") > 2, "{found:#}");
        let sum = count(found, "identical") + count(found, "different");
        assert_eq!(sum, count(found, "windows"));
    }
    let differences = other["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2);
    for difference in differences {
        assert!(difference["by"].as_str().unwrap().starts_with("sneakpeek@"));
        let requests = difference["requests"].as_array().unwrap();
        assert!(!requests.is_empty());
        assert!(requests.iter().all(|r| r["recorded"] != r["replayed"]));
        // With the reasons of either policy.
        let runs = |r: &&Value| r["replayed"]["fate"] == "runs";
        for request in requests.iter().filter(runs) {
            let reason = &request["replayed"]["reason"];
            assert_eq!(reason["code"], "oldest", "{request}");
            assert!(reason["numbers"]["waited_us"].is_number(), "{request}");
        }
        let runs = |r: &&Value| r["recorded"]["fate"] == "runs";
        for request in requests.iter().filter(runs) {
            let numbers = &request["recorded"]["reason"]["numbers"];
            assert!(numbers["groups"].is_number(), "{request}");
        }
    }
    // A recording of fcfs lacks window fields that sneakpeek asks for.
    let file = simulated(folder.path(), "fcfs", &[]);
    let blind = replayed(&file, &["--policy", "sneakpeek"]);
    assert!(
        blind["unseen"].to_string().contains("evidence"),
        "{blind:#}"
    );
}

#[test]
fn differences_are_explained_window_by_window() {
    let (_folder, file) = recorded();
    let ran = replay(&file, &["--policy", "fcfs", "--limit", "2"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_snapshot!(said(&file, &ran.stdout));
    let ran = replay(&file, &["--policy", "edf"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!("replayed_by_itself", said(&file, &ran.stdout));
}

/// The requests of the windows become a workload.
#[test]
fn recorded_arrivals_are_a_workload() {
    let folder = TempDir::new().unwrap();
    let file = simulated(folder.path(), "fcfs", &[]);
    let arrivals = folder.path().join("arrivals.json");
    let arrivals = arrivals.to_str().unwrap();
    let ran = replay(&file, &["--arrivals", arrivals]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let trace: Value = serde_json::from_str(&fs::read_to_string(arrivals).unwrap()).unwrap();
    let requests = trace["requests"].as_array().unwrap();
    assert!(requests.len() > 1_000, "{}", requests.len());
    assert_eq!(requests[0]["at_us"], 0);

    let workload = format!("trace:{arrivals}");
    let again = ["simulate", "--policy", "fcfs", "--workload", &workload];
    let folder = policies();
    let rest = ["--profile", profile(), "--policies", &folder, "--json", "-"];
    let ran = switchyard(&[&again[..], &rest].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
    let total = &ran["runs"][0]["reports"][0]["total"];
    assert_eq!(count(total, "arrivals"), requests.len() as u64);
}

#[test]
fn a_recording_that_a_crash_cut_off_is_replayed_with_a_note() {
    let (_folder, file) = recorded();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, [&whole[..], b"SWBK1234"].concat()).unwrap();
    let ran = replay(&file, &["--policy", "edf"]);
    assert_eq!(ran.code, Some(0));
    let says = format!(
        "the last block, at byte {}, is not complete: its 8 bytes",
        whole.len()
    );
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
}

#[test]
fn unusable_recordings_are_named() {
    let (folder, file) = recorded();
    let complaint = |file: &Path, more: &[&str]| {
        let ran = replay(file, more);
        assert_eq!(ran.code, Some(2), "{more:?}\n{}", ran.stderr);
        ran.stderr
    };
    let edf = ["--policy", "edf"];
    let said = complaint(Path::new("/nowhere/x.rec"), &edf);
    assert!(
        said.contains("/nowhere/x.rec: at byte 0: No such file"),
        "{said}"
    );
    let said = complaint(profile().as_ref(), &edf);
    assert!(said.contains("not a recording of windows"), "{said}");
    let said = complaint(&file, &["--policy", "no-such.wasm"]);
    assert!(said.contains("no-such.wasm"), "{said}");
    let said = complaint(&file, &["--policy", "fcfs", "--settings", "tau ="]);
    assert!(said.contains("--settings: "), "{said}");
    let said = complaint(&file, &[]);
    assert!(said.contains("--policy <P>"), "{said}");

    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    let damaged = folder.path().join("damaged.rec");
    fs::write(&damaged, bytes).unwrap();
    let said = complaint(&damaged, &edf);
    assert!(
        said.contains("damaged.rec: at byte 23: the block is damaged"),
        "{said}"
    );
    let policies = [
        "--policy",
        "edf",
        "--policy",
        "fcfs",
        "--record",
        "/nowhere/y",
    ];
    let fixed = [
        "simulate",
        "--workload",
        "poisson:1",
        "--profile",
        profile(),
    ];
    let ran = switchyard(&[&fixed[..], &policies].concat());
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("--record: takes one --policy"),
        "{}",
        ran.stderr
    );
}

/// The test that is written is one that the policy passes without a server, and fails once it
/// decides otherwise.
#[test]
fn a_window_becomes_a_unit_test_of_the_policy() {
    let folder = TempDir::new().unwrap();
    let file = simulated(folder.path(), "fcfs", &[]);
    let busy = |frame| match frame {
        Ok(Frame::Decision(decision)) if decision.plan.members.len() > 1 => {
            Some(decision.window.id.to_string())
        }
        _ => None,
    };
    let window = Reader::open(&file).unwrap().find_map(busy).unwrap();
    let test = folder.path().join("window.rs");
    let make = |window: &str| {
        let words = ["--policy", "fcfs", "--window", window, "--test"];
        let of = [test.to_str().unwrap(), "--type", "fcfs::Fcfs"];
        replay(&file, &[&words[..], &of].concat())
    };
    let ran = make(&window);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = fs::read_to_string(&test).unwrap();
    let json = fs::read_to_string(folder.path().join("window.json")).unwrap();

    let decided = Case::parse(&json).unwrap().decide::<Fcfs>().unwrap();
    let expected = format!("let expected: &[u64] = &{:?};", decided.dispatched());
    assert!(!decided.dispatched().is_empty());
    assert!(written.contains(&expected), "{written}");
    let shown = written
        .replace(folder.path().to_str().unwrap(), "FOLDER")
        .replace(&format!("{:?}", decided.dispatched()), "IDS")
        .replace(
            &format!("dispatches {}", decided.dispatched().len()),
            "dispatches K",
        )
        .replace(&format!("indow {window} of"), "indow N of")
        .replace(&format!("window_{window}_of"), "window_N_of");
    assert_snapshot!("window_as_a_test", shown);

    let error = Case::parse("{\"catalog\": {}}").unwrap_err();
    assert!(error.starts_with("catalog"), "{error}");
    let ran = make("999999");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("run 1 has no window 999999"),
        "{}",
        ran.stderr
    );
}

/// The written test compiles and passes in a project of `policy new`, without a registry: the crates
/// are those of this repository. Their build is kept from run to run.
#[test]
fn a_window_becomes_a_test_in_a_new_project() {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replayed");
    let project = base.join("first-try");
    let _ = fs::remove_dir_all(&project);
    let dir = project.to_str().unwrap();
    let ran = switchyard(&["policy", "new", "first-try", "--dir", dir]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    fs::create_dir(project.join("tests")).unwrap();

    let (_folder, trace) = recorded();
    let test = project.join("tests/window.rs");
    let words = ["--policy", "edf", "--window", "2", "--test"];
    let of = [
        test.to_str().unwrap(),
        "--type",
        "first_try::EarliestDeadline",
    ];
    let ran = replay(&trace, &[&words[..], &of].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);

    let mut cargo = switchyard_kit::cargo::host(&project);
    cargo
        .args(["test", "--offline"])
        .env("CARGO_TARGET_DIR", base.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env_remove("RUSTFLAGS");
    let output = cargo.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("window_2_of_run_1 ... ok"), "{stdout}");
    // Such as `warning: `switchyard-sdk` (lib) generated 3 warnings`.
    assert!(!stderr.contains(" generated "), "{stderr}");
}
