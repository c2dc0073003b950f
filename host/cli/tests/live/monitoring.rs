//! The files of `monitoring/` against the metrics of the real server.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::get;
use super::fixture::policy;
use super::graphs::write_zoo;
use super::load::Load;
use super::test_bed::{PATIENCE, Setup};
use super::zoo_server::{POLICY, ZooServer};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring")
}

/// The metrics of this server that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let is_metric = |word: &&str| {
        let has_prefix = ["switchyard_", "process_"];
        has_prefix.iter().any(|prefix| word.starts_with(prefix))
    };
    words.filter(is_metric).map(str::to_owned).collect()
}

/// Kinds of metrics that a fault, a canary, a lost or a remote worker brings about, not a healthy server of
/// this machine.
const LATER: [&str; 2] = [
    "switchyard_profile_drift_ratio",
    "switchyard_worker_address_info",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_of_alerts_and_dashboard_exists() {
    let test_bed = Setup::new("monitored").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
    let mut client = test_bed.client().await;
    let refused = client.infer("{}".to_owned()).await;
    assert_eq!(refused.status, 400);
    let exposed = test_bed.exposition().await;
    let known = named(&exposed);
    for file in ["alerts.yml", "alerts_test.yml", "grafana.json"] {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        let unknown: Vec<String> = named(&text)
            .into_iter()
            .filter(|name| !known.contains(name) && !LATER.contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    // A policy, its hash, the build and the process.
    for part in [
        "switchyard_build_info{version=\"",
        "switchyard_policy_info{pool=\"monitored\",policy=\"fcfs@",
        "switchyard_worker_busy_seconds_total{pool=\"monitored\",worker=",
        "process_cpu_seconds_total ",
        "switchyard_requests_total{app=\"heart\",outcome=\"overloaded\"} 0",
        "in_time=\"true\"",
    ] {
        assert!(exposed.contains(part), "{part}: {exposed}");
    }
    test_bed.stop().await;
}

/// The lines of a metric that have this label.
fn series(exposed: &str, metric: &str, label: &str) -> Vec<String> {
    let lines = exposed.lines();
    let has = |line: &&str| line.starts_with(metric) && line.contains(label);
    lines.filter(has).map(str::to_owned).collect()
}

/// Fails if promtool has anything to say; without promtool there is nothing to check.
fn lint(exposed: &str) {
    let mut check = match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(check) => check,
        Err(error) => {
            eprintln!("promtool: {error}");
            return;
        }
    };
    check
        .stdin
        .take()
        .unwrap()
        .write_all(exposed.as_bytes())
        .unwrap();
    let said = check.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr),
    );
    assert!(
        said.status.success() && out.is_empty() && err.is_empty(),
        "{out}{err}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_of_rare_events_begin_at_0() {
    let test_bed = Setup::new("from-0").policy(policy("fcfs")).start().await;
    let exposed = test_bed.exposition().await;
    for line in [
        "switchyard_policy_swaps_total{result=\"switched\"} 1",
        "switchyard_policy_swaps_total{result=\"refused\"} 0",
        "switchyard_policy_faults_total{pool=\"from-0\",policy=\"fcfs\",kind=\"trap\"} 0",
        "switchyard_refused_total{app=\"heart\",status=\"400\"} 0",
        "switchyard_refused_total{app=\"\",status=\"404\"} 0",
    ] {
        assert!(
            exposed.lines().any(|shown| shown == line),
            "{line}: {exposed}"
        );
    }
    lint(&exposed);
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_two_swaps_replaced_leaves_no_series() {
    let test_bed = Setup::new("policies-go")
        .policy(policy("fcfs"))
        .start()
        .await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 20).await;
    let before = test_bed.exposition().await;
    for (swaps, next) in [(2, "sneakpeek"), (3, "mael")] {
        test_bed.replace(&policy(next));
        let swap = test_bed.swap_number(swaps).await;
        assert!(swap.error.is_none(), "{swap:?}");
        load.answered_by(&format!("{next}@"), 20).await;
    }
    load.stop().await;
    // Shown once more, for the last counts.
    test_bed.exposition().await;
    let exposed = test_bed.exposition().await;
    for metric in [
        "switchyard_request_latency_seconds_count",
        "switchyard_variant_requests_total",
        "switchyard_window_seconds_count",
        "switchyard_policy_faults_total",
        "switchyard_policy_info",
    ] {
        let of = |exposed: &str, policy| series(exposed, metric, &format!("policy=\"{policy}"));
        assert!(!of(&before, "fcfs").is_empty(), "{metric}: {before}");
        let staying = of(&exposed, "fcfs");
        assert!(staying.is_empty(), "{staying:#?}");
        assert!(!of(&exposed, "mael").is_empty(), "{metric}: {exposed}");
    }
    // The last good version may serve again.
    assert!(!series(&exposed, "switchyard_window_seconds", "policy=\"sneakpeek").is_empty());
    lint(&exposed);
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_and_an_app_that_left_leave_no_series() {
    let zoo = TempDir::new().unwrap();
    write_zoo(zoo.path());
    fs::write(zoo.path().join(POLICY), policy("fcfs")).unwrap();
    let server = ZooServer::start(zoo, &["pairs", "tensors"]).await;
    let exposed = async || get(server.admin, "/metrics").await.text;
    let text = fs::read_to_string(server.zoo().join("switchyard.toml")).unwrap();
    let left = ["pool=\"main\"", "app=\"tensors\"", "worker=\"w\""];
    let first = exposed().await;
    for label in left {
        assert!(!series(&first, "", label).is_empty(), "{label}: {first}");
    }
    let moved = text
        .replace("name = \"main\"", "name = \"other\"")
        .replace("\"w\"", "\"v\"")
        .replace("apps = [\"pairs\", \"tensors\"]", "apps = [\"pairs\"]");
    let tensors = moved.find("[[app]]\nname = \"tensors\"").unwrap();
    let workers = moved.find("[[worker]]").unwrap();
    server.configure(&format!("{}{}", &moved[..tensors], &moved[workers..]));
    let give_up = Instant::now() + PATIENCE;
    loop {
        let exposed = exposed().await;
        let staying: Vec<String> = left
            .iter()
            .flat_map(|label| series(&exposed, "", label))
            .collect();
        if staying.is_empty() {
            let came = ["pool=\"other\"", "worker=\"v\"", "app=\"pairs\""];
            assert!(
                came.iter()
                    .all(|label| !series(&exposed, "", label).is_empty()),
                "{exposed}"
            );
            lint(&exposed);
            break;
        }
        assert!(Instant::now() < give_up, "{staying:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().await;
}

/// Every alert of the rules has a case in which it fires.
#[test]
fn every_alert_is_tested() {
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let tests = fs::read_to_string(folder().join("alerts_test.yml")).unwrap();
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in alerts {
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(tests.contains(&fires), "{alert} is in no case");
    }
}
