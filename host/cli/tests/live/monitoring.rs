//! The files of `monitoring/` against the metrics of the real server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::fixture::policy;
use super::load::Load;
use super::test_bed::Setup;

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

/// Kinds of metrics that a fault, a canary or a lost worker brings about, not a healthy server.
const LATER: [&str; 1] = ["switchyard_profile_drift_ratio"];

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
