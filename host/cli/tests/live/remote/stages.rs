//! Ranges of stages on far workers, with activations parked there in between.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::ids::{ExitId, RequestId, VariantId};
use switchyard_executor::{
    BatchOutput, CandleExecutor, Device, ExecuteError, Executor, Job, JobRow, ModelSource, Weights,
};
use switchyard_remote::RemoteExecutor;
use switchyard_server::admin::ServerStatus;
use tempfile::TempDir;

use crate::free_address::free_address;

use super::super::binary::Process;
use super::super::client::{Client, get};
use super::super::fixture::{APP, beat, fixture, policy};
use super::super::test_bed::{PATIENCE, Setup};
use super::batches::batch;
use super::{ALIKE, Clients, blocking, config, manifest, options, ready, two_workers, worker};

const ROWS: usize = 7;

/// A series of the worker's own metrics.
async fn series(http: SocketAddr, name: &str) -> f64 {
    let answer = get(http, "/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut lines = answer.text.lines().filter(|line| line.starts_with(name));
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no {name} in {}", answer.text));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

async fn becomes(http: SocketAddr, parked: f64) {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        let found = series(http, "switchyard_parked_requests").await;
        if found == parked {
            return;
        }
        assert!(
            Instant::now() < give_up,
            "{found} parked, expected {parked}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A variant of several stages, with its stages and its last exit.
fn long() -> (VariantId, u32, ExitId) {
    let manifest = manifest();
    let variants = (0..).map(VariantId).zip(&manifest.variants);
    let (id, variant) = variants.max_by_key(|(_, variant)| variant.stages).unwrap();
    assert!(variant.stages > 2);
    (id, variant.stages, variant.last_exit())
}

/// Stages of the batch; without an exit its rows are parked.
fn range(from: u32, to: u32, exit: Option<ExitId>) -> Job {
    let (variant, ..) = long();
    let whole = batch(ROWS, variant, to, ExitId(0));
    let rows = whole.rows.into_iter();
    let rows = rows.map(|row| JobRow {
        input: row.input.filter(|_| from == 0),
        ..row
    });
    Job {
        from_stage: from,
        exit,
        rows: rows.collect(),
        ..whole
    }
}

fn local() -> CandleExecutor {
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest().source) as _;
    CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX)
}

async fn one_worker() -> (SocketAddr, Process) {
    blocking(fixture).await;
    let at = free_address();
    let process = blocking(move || worker("far-a", at)).await;
    ready(process.http).await;
    (at, process)
}

fn parked(executor: &mut dyn Executor, from: u32, to: u32) {
    let outcome = executor.run(&mut range(from, to, None));
    assert_eq!(outcome.result.unwrap(), BatchOutput::Parked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stages_on_a_far_worker_answer_as_whole_batches_and_are_released() {
    let (at, process) = one_worker().await;
    let http = process.http;
    let (mut remote, answered) = blocking(move || {
        let (_, stages, exit) = long();
        let mut remote = RemoteExecutor::connect(options(at)).unwrap();
        assert!(remote.runs_stages());
        let whole = local().run(&mut range(0, stages, Some(exit))).result;
        let whole = whole.unwrap();
        // Each stage by itself, and two ranges with rows of both batches.
        for cut in 1..stages {
            parked(&mut remote, 0, cut);
            let rest = remote.run(&mut range(cut, stages, Some(exit)));
            assert_eq!(rest.result.unwrap(), whole, "cut after {cut}");
        }
        for stage in 0..stages - 1 {
            parked(&mut remote, stage, stage + 1);
        }
        let last = remote.run(&mut range(stages - 1, stages, Some(exit)));
        assert_eq!(last.result.unwrap(), whole);
        parked(&mut remote, 0, 1);
        (remote, whole)
    })
    .await;
    assert_eq!(
        series(http, "switchyard_parked_requests").await,
        ROWS as f64
    );
    assert!(series(http, "switchyard_parked_total").await > ROWS as f64);

    // The first two are released: a batch with them is lost, and frees the others.
    remote.release(RequestId(0));
    remote.release(RequestId(1));
    becomes(http, (ROWS - 2) as f64).await;
    let (mut remote, answered) = blocking(move || {
        let (_, stages, exit) = long();
        let mut all = range(1, stages, Some(exit));
        let error = remote.run(&mut all).result.unwrap_err();
        assert!(matches!(error, ExecuteError::NotParked { .. }), "{error}");
        assert!(error.is_repeatable() && !error.is_fatal());
        (remote, answered)
    })
    .await;
    becomes(http, 0.0).await;
    let (mut remote, answered) = blocking(move || {
        parked(&mut remote, 0, 2);
        (remote, answered)
    })
    .await;
    becomes(http, ROWS as f64).await;

    // Another scheduler has none of them, and the end of this one frees them.
    blocking(move || {
        let (_, stages, exit) = long();
        let mut other = RemoteExecutor::connect(options(at)).unwrap();
        let error = other.run(&mut range(2, stages, Some(exit))).result;
        assert!(matches!(error, Err(ExecuteError::NotParked { .. })));
        let rest = remote.run(&mut range(2, stages, Some(exit))).result;
        assert_eq!(rest.unwrap(), answered);
        parked(&mut remote, 0, 2);
    })
    .await;
    becomes(http, 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_started_anew_says_that_activations_are_lost() {
    let (at, mut process) = one_worker().await;
    let mut remote = blocking(move || {
        let mut remote = RemoteExecutor::connect(options(at)).unwrap();
        parked(&mut remote, 0, 1);
        remote
    })
    .await;
    process.kill();
    let process = blocking(move || worker("far-a", at)).await;
    ready(process.http).await;
    blocking(move || {
        let (_, stages, exit) = long();
        let error = remote.run(&mut range(1, stages, Some(exit))).result;
        let error = error.unwrap_err();
        let text = error.to_string();
        assert!(error.is_repeatable() && !error.is_fatal(), "{text}");
        assert!(text.contains("is not parked here"), "{text}");
        // From the first stage on it answers.
        parked(&mut remote, 0, 1);
        let again = remote.run(&mut range(1, stages, Some(exit))).result;
        let whole = local().run(&mut range(0, stages, Some(exit))).result;
        assert_eq!(again.unwrap(), whole.unwrap());
    })
    .await;
}

/// Long models are always cut.
const SLICED: &str = r#"policy = "active"
settings = { algorithm = "pslo-mael", slicing = "always", slice_over = 1.0 }
window_budget_ms = 500"#;

fn slicing_scheduler(addresses: [SocketAddr; 2]) -> Process {
    let folder = TempDir::new().unwrap();
    let text = sliced(folder.path(), addresses);
    std::fs::write(folder.path().join("active.wasm"), policy("mael")).unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, text).unwrap();
    let mut process = Process::start(&file, folder);
    process.listening();
    process
}

fn sliced(folder: &Path, addresses: [SocketAddr; 2]) -> String {
    let [a, b] = addresses.map(|at| format!("grpc://{at}"));
    let text = config(folder, [&a, &b], ALIKE);
    let sliced = text.replace(r#"policy = "edf-fallback""#, SLICED);
    assert_ne!(text, sliced);
    // The one that can be cut.
    let one = "slo_ms = 5000\nvariants = [\"resnet\"]";
    sliced.replace("slo_ms = 5000", one)
}

/// How often both workers have parked a request.
async fn parkings(a: &Process, b: &Process) -> f64 {
    let name = "switchyard_parked_total";
    series(a.http, name).await + series(b.http, name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_slices_on_far_workers_and_a_killed_one_loses_no_request() {
    let (addresses, [mut a, b]) = two_workers().await;
    let scheduler = blocking(move || slicing_scheduler(addresses)).await;
    ready(scheduler.http).await;
    let near = Setup::new("near-sliced").start().await;
    let (mut here, mut there) = (near.client().await, Client::connect(scheduler.http).await);
    let variant = manifest().variants[long().0.index()].name.clone();
    let path = format!("/v2/models/{APP}/versions/{variant}/infer");
    // Measuring parks too.
    let measured = parkings(&a, &b).await;
    for nth in 0..20 {
        let remote = there.infer(beat(nth)).await;
        assert_eq!(remote.status, 200, "{}", remote.text);
        assert!(remote.policy().starts_with("mael@"), "{}", remote.text);
        assert_eq!(remote.json()["parameters"]["variant"], variant);
        let local = here.send("POST", &path, beat(nth)).await.unwrap();
        assert_eq!(local.json()["outputs"], remote.json()["outputs"]);
    }
    near.stop().await;
    let kept = parkings(&a, &b).await - measured;
    println!("20 requests were parked {kept} times");
    assert!(kept >= 20.0, "each at least once");

    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(500)).await;
    a.kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (answered, longest) = clients.stop().await;
    println!(
        "worker killed between stages: {answered} answers, none lost, the longest after {longest:?}"
    );
    assert!(longest < PATIENCE);
    becomes(b.http, 0.0).await;
    let status = get(scheduler.admin, "/admin/v1/status").await;
    let status: ServerStatus = serde_json::from_str(&status.text).unwrap();
    let driver = &status.pools[0].driver;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}
