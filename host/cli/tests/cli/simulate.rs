//! `simulate`: the same command gives the same results, and unusable input is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use super::binary::{command, policy, switchyard};

/// A profile of the shipped models, measured once; its values do not matter here.
pub(super) fn profile() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("simulated.json");
        let file = file.to_str().unwrap().to_owned();
        let quick = ["--seconds", "1", "--accuracy", "0"];
        let ran = switchyard(&[&["profile", "--out", &file][..], &quick].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        file
    })
}

fn simulated(more: &[&str]) -> Value {
    let folder = policy("fcfs");
    let folder = folder.parent().unwrap().to_str().unwrap();
    let fixed = [
        "simulate",
        "--policies",
        folder,
        "--profile",
        profile(),
        "--json",
        "-",
    ];
    let ran = switchyard(&[&fixed[..], more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

const POLICIES: [&str; 6] = [
    "--policy",
    "fcfs",
    "--policy",
    "sneakpeek",
    "--policy",
    "edf",
];

#[test]
fn the_same_command_says_the_same() {
    let run = |seed: &str| {
        let workload = ["--workload", "gamma:300,0.5", "--seconds", "5"];
        let law = ["--service", "log-normal:0.9,0.3", "--seed", seed];
        simulated(&[&POLICIES[..], &workload, &law].concat())
    };
    let once = run("3");
    let windows = |at: usize| once["scheduling"][at]["windows"].as_u64().unwrap();
    let ran = |at: usize| once["runs"][at]["reports"][0]["windows"].as_u64().unwrap();
    assert!((0..3).all(|at| windows(at) == ran(at)), "each was timed");
    assert_eq!(once["runs"], run("3")["runs"]);
    assert_ne!(once["runs"], run("4")["runs"]);
    let runs = once["runs"].as_array().unwrap();
    let names: Vec<_> = runs
        .iter()
        .map(|run| run["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fcfs", "sneakpeek", "edf"]);
    // All of them saw the same arrivals, and each ended once; on a busy machine the profile is slow, and
    // requests that are too late are dropped.
    for run in runs {
        let total = &run["reports"][0]["total"];
        assert_eq!(
            total["arrivals"],
            runs[0]["reports"][0]["total"]["arrivals"]
        );
        let ended = |name: &str| total[name].as_u64().unwrap();
        assert_eq!(
            ended("in_time") + ended("late") + ended("dropped"),
            ended("arrivals"),
            "{total}"
        );
    }
}

#[test]
fn a_policy_is_compiled_once_for_all_runs() {
    let cache = tempfile::tempdir().unwrap();
    let policy = policy("fcfs");
    let run = || {
        let mut command = command();
        command.env("XDG_CACHE_HOME", cache.path());
        command.args(["simulate", "--config", "tests/paper/mael/test-bed.toml"]);
        command.args([
            "--profile",
            "tests/paper/mael/profile.json",
            "--seconds",
            "1",
        ]);
        command.args(["--workload", "*=poisson:5", "--json", "-", "--policy"]);
        let output = command.arg(&policy).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let compiled = fs::read_dir(cache.path().join("switchyard/compiled")).unwrap();
        let compiled: Vec<_> = compiled
            .map(|file| file.unwrap().metadata().unwrap().modified().unwrap())
            .collect();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        (said["runs"].clone(), compiled)
    };
    let first = run();
    assert_eq!(first.1.len(), 1);
    assert_eq!(
        run(),
        first,
        "the second run compiles nothing and says the same"
    );
}

#[test]
fn a_sweep_has_a_run_per_policy_and_value() {
    let sweep = ["--sweep", "load=0.5:1.5:0.5", "--seeds", "2"];
    let workload = ["--workload", "window:12x100ms", "--seconds", "2"];
    let swept = simulated(&[&POLICIES[..4], &workload, &sweep].concat());
    let runs = swept["runs"].as_array().unwrap();
    let points: Vec<_> = runs
        .iter()
        .map(|run| {
            (
                run["point"].as_str().unwrap(),
                run["policy"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = ["load=0.5", "load=1.0", "load=1.5"]
        .map(|point| [(point, "fcfs"), (point, "sneakpeek")])
        .concat();
    assert_eq!(points, expected);
    let arrivals: Vec<_> = runs
        .iter()
        .step_by(2)
        .map(|run| run["estimates"]["arrivals"]["mean"].as_f64().unwrap())
        .collect();
    assert_eq!(
        arrivals,
        [120.0, 240.0, 360.0],
        "12 per 100 ms over 2 s, times the load"
    );
    assert_eq!(runs[0]["reports"].as_array().unwrap().len(), 2);
}

#[test]
fn a_report_is_one_page_that_names_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("new/report");
    let fixed = ["--workload", "poisson:900", "--seconds", "2", "--report"];
    let report_words = [&fixed[..], &[report.to_str().unwrap()]].concat();
    simulated(&[&POLICIES[..], &report_words].concat());
    let page = std::fs::read_to_string(report.join("index.html")).unwrap();
    for word in ["fcfs", "sneakpeek", "edf", "poisson:900", "cpu-a", "resnet"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains("<svg") && !page.contains("src="));
}

/// On a profile from a file: the same figure on every machine.
#[test]
fn a_figure_has_a_line_or_a_bar_per_policy() {
    let folder = tempfile::tempdir().unwrap();
    let components = policy("fcfs");
    let components = components.parent().unwrap().to_str().unwrap();
    let drawn = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let fixed = [
            "simulate",
            "--config",
            "tests/paper/sneakpeek/test-bed.toml",
            "--profile",
            "tests/paper/sneakpeek/profile.json",
            "--policies",
            components,
            "--workload",
            "poisson:600",
            "--seconds",
            "2",
            "--plot",
            file.to_str().unwrap(),
        ];
        let ran = switchyard(&[&fixed[..], &POLICIES[..], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        std::fs::read_to_string(&file).unwrap()
    };
    let sweep = ["--sweep", "load=0.5:2:0.5", "--seeds", "2"];
    let lines = drawn("lines.svg", &sweep);
    assert_eq!(lines, drawn("again.svg", &sweep), "the same bytes");
    let bars = drawn("bars.svg", &[]);
    for figure in [&lines, &bars] {
        assert!(figure.starts_with("<svg xmlns=") && figure.contains("prefers-color-scheme: dark"));
        for word in [
            "fcfs",
            "sneakpeek",
            "edf",
            "Accuracy",
            "not answered in time",
        ] {
            assert!(figure.contains(word), "{word}");
        }
    }
    assert!(lines.contains(">2.0</text>") && lines.contains("class=\"line"));
    assert!(bars.contains("class=\"fill\"") && !bars.contains("class=\"line\""));
}

#[test]
fn unusable_input_of_a_simulation_is_named() {
    let complaint = |arguments: &[&str]| {
        let ran = switchyard(&[&["simulate"][..], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}\n{}", ran.stderr);
        ran.stderr
    };
    let with = |policy: &str, workload: &str, profile: &str, more: &[&str]| {
        let fixed = [
            "--policy",
            policy,
            "--workload",
            workload,
            "--profile",
            profile,
        ];
        complaint(&[&fixed[..], more].concat())
    };
    let said = with("edf", "poisson:0", profile(), &[]);
    assert!(said.contains("poisson.rate"), "{said}");
    let said = with("edf", "trace:no-such.json", profile(), &[]);
    assert!(said.contains("no-such.json"), "{said}");
    let said = with("edf", "poisson:1", "no-such-profile.json", &[]);
    assert!(said.contains("no-such-profile.json"), "{said}");
    let said = with("no-such.wasm", "poisson:1", profile(), &[]);
    assert!(said.contains("no-such.wasm"), "{said}");
    let said = with("edf", "poisson:1", profile(), &["--sweep", "tau=1"]);
    assert!(said.contains("tau") && said.contains("deadline"), "{said}");
    let said = with("edf", "poisson:1", profile(), &["--sweep", "penalty=steep"]);
    assert!(
        said.contains("penalty=steep") && said.contains("sigmoid"),
        "{said}"
    );
    let said = with("edf", "poisson:1", profile(), &["--policy", "edf"]);
    assert!(said.contains("twice"), "{said}");
}

/// Against itself under another name nothing is a difference; against another policy it is.
#[test]
fn differences_are_told_from_noise() {
    let named = [
        "--policy",
        "twin=fcfs",
        "--against",
        "fcfs",
        "--seeds",
        "10",
    ];
    let workload = ["--workload", "gamma:900,0.5", "--seconds", "3"];
    let found = simulated(&[&POLICIES[..], &named, &workload].concat());
    let comparisons = found["comparisons"].as_array().unwrap();
    let of = |policy: &str| comparisons.iter().find(|c| c["policy"] == policy).unwrap();
    assert_eq!(comparisons.len(), 3);
    for change in of("twin")["effects"].as_array().unwrap() {
        assert_eq!(change["verdict"], "noise", "{change}");
        assert_eq!(change["difference"]["mean"], 0.0);
    }
}

/// On a profile that is the same on every machine: exits trade accuracy for latency.
#[test]
fn a_difference_is_better_or_worse_by_its_metric() {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/paper/edgeserving");
    let (test_bed, measured) = (paper.join("test-bed.toml"), paper.join("profile.json"));
    let stability = policy("stability");
    let folder = stability.parent().unwrap().to_str().unwrap();
    let ran = switchyard(&[
        "simulate",
        "--config",
        test_bed.to_str().unwrap(),
        "--profile",
        measured.to_str().unwrap(),
        "--policies",
        folder,
        "--policy",
        "stability",
        "--policy",
        "early=stability{policy = \"all-early\"}",
        "--workload",
        "poisson:60",
        "--seconds",
        "5",
        "--seeds",
        "5",
        "--against",
        "early",
        "--json",
        "-",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let changes = found["comparisons"][0]["effects"].as_array().unwrap();
    let verdict = |metric: &str| {
        let change = changes.iter().find(|c| c["metric"] == metric).unwrap();
        assert_eq!(change["difference"]["runs"], 5);
        change["verdict"].as_str().unwrap()
    };
    assert_eq!(verdict("accuracy_expected"), "better");
    assert_eq!(verdict("latency_p50_ms"), "worse");
}

#[test]
fn a_baseline_is_one_of_several_policies_run_several_times() {
    let said = |words: &[&str]| {
        let fixed = [
            "simulate",
            "--workload",
            "poisson:100",
            "--profile",
            profile(),
        ];
        let ran = switchyard(&[&fixed[..], words].concat());
        assert_eq!(ran.code, Some(2));
        ran.stderr
    };
    let edf = ["--policy", "edf", "--policy", "e2=edf", "--against"];
    let other = said(&[&edf[..], &["fcfs"]].concat());
    assert!(
        other.contains("--against: `fcfs`, must be one of"),
        "{other}"
    );
    let once = said(&[&edf[..], &["edf"]].concat());
    assert!(
        once.contains("--against: takes --seeds 3 or more"),
        "{once}"
    );
}

/// On a profile from a file, by the native policy, in a folder of its own.
fn simulate_in(folder: &Path, more: &[&str]) -> std::process::Command {
    let mut command = super::binary::command();
    let fixed = [
        "simulate",
        "--config",
        "tests/paper/sneakpeek/test-bed.toml",
        "--profile",
        "tests/paper/sneakpeek/profile.json",
        "--policy",
        "edf",
    ];
    command.args(fixed).args(more).env("TMPDIR", folder);
    command
}

#[test]
fn a_trace_that_is_longer_than_the_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    std::fs::write(&trace, r#"{"arrivals_us": [5, 1500000, 90000000]}"#).unwrap();
    let workload = format!("trace:{}", trace.to_str().unwrap());
    let json = ["--workload", &workload, "--json", "-"];
    let run = |more: &[&str]| {
        let mut command = simulate_in(folder.path(), &[&json[..], more].concat());
        let ran = command.output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.success(), "{said}");
        (said, serde_json::from_slice::<Value>(&ran.stdout).unwrap())
    };
    let (said, data) = run(&["--seconds", "2"]);
    let cut = "1 of 3 arrivals of the trace, those after 2 s, are left out";
    assert!(
        said.contains(&format!("warning: --seconds: {cut}; ")),
        "{said}"
    );
    assert_eq!(data["meta"]["left_out"], serde_json::json!([cut]));
    // Without the option the trace is simulated to its end.
    let (said, data) = run(&[]);
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(data["runs"][0]["reports"][0]["total"]["arrivals"], 3);
}

#[cfg(unix)]
#[test]
fn an_interrupted_recording_leaves_the_old_file() {
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windows.rec");
    std::fs::write(&file, "old").unwrap();
    let long = ["--workload", "poisson:2000", "--seconds", "300", "--record"];
    let more = [&long[..], &[file.to_str().unwrap()]].concat();
    let mut child = simulate_in(folder.path(), &more)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let drafts = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_str().unwrap().ends_with(".partial"))
            .count()
    };
    while drafts() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        assert!(began.elapsed() < Duration::from_secs(120), "no recording");
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(drafts(), 0);
}
