//! RAMSIS on a running server: a load beyond all tables gets one, without a lost request.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use ramsis_prepare::tables::{INDEX_FILE, Set};
use ramsis_prepare::{Generator, Loads, Model, Spec, prepare};

use super::fixture::policy;
use super::load::Load;
use super::test_bed::{Setup, TestBed};

/// A set for a load of one request per second, in the policy's folder.
fn prepared(folder: &Path) {
    // Not this machine's latencies: the server makes the table anew with its own.
    let model = |name: &str, accuracy, one_us: u64| Model {
        name: name.to_owned(),
        accuracy,
        latency_us: (1..=8).map(|batch| one_us * (batch + 1)).collect(),
    };
    let models = vec![model("cnn-small", 0.8, 300), model("resnet", 0.9, 900)];
    let spec = Spec {
        app: Some("heart".to_owned()),
        kind: "cpu-1t".to_owned(),
        queue_max: 8,
        ..Spec::new(models, 150_000, 2)
    };
    let generator = Generator::new(spec).unwrap();
    let loads = Loads::Each(vec![1.0]);
    let never = AtomicBool::new(false);
    prepare(&generator, &loads, &folder.join("set"), &|_| {}, &never).unwrap();
}

fn set(test_bed: &TestBed) -> Set {
    let folder = test_bed.policy.with_extension("").join("set");
    Set::parse(&fs::read_to_string(folder.join(INDEX_FILE)).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_beyond_all_tables_gets_one_while_it_is_served() {
    let setup = Setup::new("tables").policy(policy("ramsis"));
    let command = [
        env!("CARGO_BIN_EXE_switchyard"),
        "prepare",
        "ramsis-table",
        "--profile",
        "{profile}",
        "--zoo",
        "{zoo}",
        "--sets",
        "{artifacts}",
        "--app",
        "{app}",
        "--load",
        "{load_rps}",
    ];
    let lines = format!("settings = {{ tables = \"set\" }}\n[pool.prepare]\ncommand = {command:?}");
    let test_bed = setup.lines(&lines).start_with_artifacts(prepared).await;
    assert_eq!(set(&test_bed).tables.len(), 1);
    let load = Load::start(test_bed.http, 2);
    load.answered_by("ramsis@", 20).await;
    // The watcher sees the table, and the same policy comes again with it.
    let pool = test_bed
        .until("a second version", |pool| pool.policies.swaps.len() >= 2)
        .await;
    assert!(pool.policies.swaps.iter().all(|swap| swap.error.is_none()));
    let found = set(&test_bed);
    assert!(found.tables.len() >= 2, "{found:#?}");
    assert!(found.tables.last().unwrap().load_rps > 1.0);
    load.answered_by("ramsis@", 20).await;
    let tally = load.stop().await;
    assert!(tally.failed.is_empty(), "{tally:?}");
    let made = test_bed.metrics().await;
    assert!(made.sum("switchyard_prepare_runs_total", &[("result", "succeeded")]) >= 1);
    test_bed.settled().await;
    test_bed.stop().await;
}
