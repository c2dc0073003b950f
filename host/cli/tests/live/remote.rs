//! A scheduler and its workers in processes of their own.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::json;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{
    CandleExecutor, Device, Executor, InputTensor, Job, JobRow, ModelSource, Weights, Worker,
    WorkerEvent, WorkerOptions,
};
use switchyard_models::card::TensorCard;
use switchyard_models::zoo::{Zoo, ZooApp};
use switchyard_remote::{RemoteExecutor, RemoteModel, RemoteOptions, RemoteOutputs, RemoteTensor};
use switchyard_server::admin::ServerStatus;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::binary::{Process, switchyard};
use super::client::{Client, get};
use super::fixture::{APP, beat, beats, fixture};
use super::test_bed::{PATIENCE, Setup};

/// A scheduler with workers `far-a` and `far-b`, whose batches go to these addresses.
fn config(folder: &Path, addresses: [SocketAddr; 2]) -> String {
    let fixture = fixture();
    let (zoo, profiles) = (fixture.zoo.display(), folder.join("profiles"));
    let [a, b] = addresses;
    format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
drain_delay_ms = 600
[[app]]
name = "{APP}"
zoo = "{zoo}"
slo_ms = 5000
[[worker]]
name = "far-a"
remote = {{ url = "grpc://{a}", kind = "far" }}
[[worker]]
name = "far-b"
remote = {{ url = "grpc://{b}", kind = "far" }}
[[pool]]
name = "scaled"
apps = ["{APP}"]
workers = ["far-a", "far-b"]
policy = "edf-fallback"
[policies]
dir = "{policies}"
[profile]
dir = "{profiles}"
measure_s = 1
"#,
        policies = folder.display(),
        profiles = profiles.display()
    )
}

pub(super) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A worker that serves at this address.
fn worker(name: &str, at: SocketAddr) -> Process {
    worker_process(name, at, |_| {})
}

/// The same, with more arguments.
pub(super) fn worker_process(
    name: &str,
    at: SocketAddr,
    arguments: impl FnOnce(&mut Command),
) -> Process {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, config(folder.path(), [at, at])).unwrap();
    let mut command = switchyard();
    command.args(["--log", "json", "worker", name, "--http", "127.0.0.1:0"]);
    command.args(["--grpc", &at.to_string(), "--config"]);
    command.arg(file);
    arguments(&mut command);
    let mut process = Process::spawn(command, folder);
    process.listening();
    process
}

fn scheduler(addresses: [SocketAddr; 2]) -> Process {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, config(folder.path(), addresses)).unwrap();
    let mut process = Process::start(&file, folder);
    process.listening();
    process
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Waits until the worker has its models.
async fn ready(http: SocketAddr) {
    let give_up = Instant::now() + PATIENCE;
    while get(http, "/v2/health/ready").await.status != 200 {
        assert!(Instant::now() < give_up, "its models are not loaded");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn is_up(scheduler: &Process, worker: usize) -> bool {
    let status = get(scheduler.admin, "/admin/v1/status").await;
    let status: ServerStatus = serde_json::from_str(&status.text).unwrap();
    status.pools[0].driver.workers[worker].up
}

async fn two_workers() -> ([SocketAddr; 2], [Process; 2]) {
    blocking(fixture).await;
    let addresses = [free_address(), free_address()];
    let [at_a, at_b] = addresses;
    let a = blocking(move || worker("far-a", at_a)).await;
    let b = blocking(move || worker("far-b", at_b)).await;
    ready(a.http).await;
    ready(b.http).await;
    (addresses, [a, b])
}

/// Clients that never pause, until they are stopped. Each answer is checked.
struct Clients {
    stopping: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Duration>>,
}

impl Clients {
    fn start(http: SocketAddr, count: u64) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let drive = |first| {
            let (stopping, answered) = (Arc::clone(&stopping), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut client = Client::connect(http).await;
                let mut longest = Duration::ZERO;
                let mut nth = first;
                while !stopping.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let answer = client.infer(beat(nth)).await;
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    assert_eq!(answer.json()["id"], format!("beat-{nth}"));
                    longest = longest.max(began.elapsed());
                    answered.fetch_add(1, Ordering::Relaxed);
                    nth += count;
                }
                longest
            })
        };
        Self {
            tasks: (0..count).map(drive).collect(),
            stopping,
            answered,
        }
    }

    /// The number of answers, and the longest wait for one.
    async fn stop(self) -> (u64, Duration) {
        self.stopping.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for task in self.tasks {
            longest = longest.max(task.await.unwrap());
        }
        (self.answered.load(Ordering::Relaxed), longest)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_loses_no_request_and_serves_again_once_it_is_back() {
    let (addresses, [mut a, _b]) = two_workers().await;
    let scheduler = blocking(move || scheduler(addresses)).await;
    // The same answers as from this process.
    let near = Setup::new("near").start().await;
    let (mut here, mut there) = (near.client().await, Client::connect(scheduler.http).await);
    for (nth, variant) in (0..20).zip(["cnn-small", "resnet"].into_iter().cycle()) {
        let path = format!("/v2/models/{APP}/versions/{variant}/infer");
        let body = beat(nth);
        let local = here.send("POST", &path, body.clone()).await.unwrap();
        let remote = there.send("POST", &path, body).await.unwrap();
        assert_eq!((local.status, remote.status), (200, 200), "{}", remote.text);
        assert_eq!(local.json()["outputs"], remote.json()["outputs"]);
    }
    near.stop().await;

    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(300)).await;
    a.kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!is_up(&scheduler, 0).await && is_up(&scheduler, 1).await);
    let (answered, longest) = clients.stop().await;
    println!("worker killed: {answered} answers, none lost, the longest after {longest:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");

    let at = addresses[0];
    let a = blocking(move || worker("far-a", at)).await;
    ready(a.http).await;
    let back = Instant::now();
    while !is_up(&scheduler, 0).await {
        assert!(
            back.elapsed() < Duration::from_secs(1),
            "not back in a second"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("worker back: {:?} after it was ready", back.elapsed());
    let clients = Clients::start(scheduler.http, 4);
    tokio::time::sleep(Duration::from_millis(300)).await;
    clients.stop().await;

    let status = get(scheduler.admin, "/admin/v1/status").await;
    let status: ServerStatus = serde_json::from_str(&status.text).unwrap();
    let driver = &status.pools[0].driver;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}

async fn becomes(scheduler: &Process, worker: usize, up: bool, limit: Duration) -> Duration {
    let began = Instant::now();
    while is_up(scheduler, worker).await != up {
        assert!(began.elapsed() < limit, "not {up} within {limit:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_that_ends_is_down_before_a_batch_and_back_within_a_second() {
    let (addresses, [mut a, b]) = two_workers().await;
    let scheduler = blocking(move || scheduler(addresses)).await;
    becomes(&scheduler, 0, true, PATIENCE).await;
    a.kill();
    let down = becomes(&scheduler, 0, false, Duration::from_secs(2)).await;
    let at = addresses[0];
    let a = blocking(move || worker("far-a", at)).await;
    ready(a.http).await;
    let up = becomes(&scheduler, 0, true, Duration::from_secs(1)).await;
    println!("idle worker killed: down after {down:?}, up {up:?} after it was ready");

    // A worker that is told to end finishes its batches.
    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(300)).await;
    b.terminate();
    becomes(&scheduler, 1, false, PATIENCE).await;
    let (answered, _) = clients.stop().await;
    assert!(answered > 0);
    let failed = scheduler.lines("batch failed");
    assert!(failed.is_empty(), "{failed:?}");
}

/// Forwards a connection to a worker, answers later if it is told so.
struct Link {
    at: SocketAddr,
    delay_ms: Arc<AtomicU64>,
    /// Bytes of requests.
    bytes: Arc<AtomicU64>,
}

impl Link {
    async fn to(worker: SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (delay_ms, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (delay, counted) = (Arc::clone(&delay_ms), Arc::clone(&bytes));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(worker).await.unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let (delay, counted) = (Arc::clone(&delay), Arc::clone(&counted));
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
                        counted.fetch_add(read as u64, Ordering::Relaxed);
                        to_server.write_all(&buffer[..read]).await.unwrap();
                    }
                });
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                        let ms = delay.load(Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        if to_client.write_all(&buffer[..read]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            at,
            delay_ms,
            bytes,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_link_loses_its_work() {
    let (addresses, _workers) = two_workers().await;
    let (a, b) = (Link::to(addresses[0]).await, Link::to(addresses[1]).await);
    let links = [a.at, b.at];
    let scheduler = blocking(move || scheduler(links)).await;
    let clients = Clients::start(scheduler.http, 2);
    let share = async |time: Duration| {
        let before = [&a, &b].map(|link| link.bytes.load(Ordering::Relaxed));
        tokio::time::sleep(time).await;
        let after = [&a, &b].map(|link| link.bytes.load(Ordering::Relaxed));
        let [a, b] = [after[0] - before[0], after[1] - before[1]];
        a as f64 / (a + b).max(1) as f64
    };
    let fast = share(Duration::from_secs(1)).await;
    a.delay_ms.store(20, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut slow = share(Duration::from_secs(2)).await;
    // On a busy machine the fast link is slow for some time as well, and takes fewer batches in the
    // time in which the slow one, which is asked whenever it is idle, takes one.
    for _ in 0..3 {
        if slow <= 0.25 * fast {
            break;
        }
        slow = share(Duration::from_secs(2)).await;
    }
    println!("share of the link: {fast:.3}, with 20 ms more: {slow:.3}");
    assert!(fast > 0.1, "the link has work: {fast}");
    assert!(slow <= 0.25 * fast, "{slow} of {fast} is left");
    clients.stop().await;
}

fn batch(rows: usize, variant: VariantId, to_stage: u32, exit: ExitId) -> Job {
    let body: serde_json::Value = serde_json::from_str(&beats(0, rows, &json!({}))).unwrap();
    let input = &body["inputs"][0];
    let data: Vec<f32> = serde_json::from_value(input["data"].clone()).unwrap();
    let width = data.len() / rows;
    let row = |row: usize| JobRow {
        request: RequestId(row as u64),
        input: Some(
            std::iter::once(InputTensor::F32(
                data[row * width..(row + 1) * width].to_vec().into(),
            ))
            .collect(),
        ),
    };
    Job {
        batch: BatchId(0),
        app: AppId(0),
        variant,
        from_stage: 0,
        to_stage,
        exit: Some(exit),
        rows: (0..rows).map(row).collect(),
        soon: Soon::new(),
        until: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_batch_has_the_same_answers_at_every_exit_and_a_misfit_names_both_values() {
    let (addresses, _workers) = two_workers().await;
    blocking(move || {
        let options = options(addresses[0]);
        misfits(&options);
        compare(options);
    })
    .await;
}

fn options(at: SocketAddr) -> RemoteOptions {
    RemoteOptions {
        address: format!("grpc://{at}").parse().unwrap(),
        tls: None,
        timeout: Duration::from_secs(10),
        models: app_models(),
    }
}

fn manifest() -> Manifest {
    let app = ZooApp::open(&fixture().zoo.join(APP)).unwrap();
    let zoo = Zoo {
        dir: fixture().zoo.clone(),
        apps: vec![app],
    };
    Manifest::all(&zoo).unwrap()
}

/// The variants of the app at a `switchyard worker`.
pub(super) fn app_models() -> Arc<[RemoteModel]> {
    let card = ZooApp::open(&fixture().zoo.join(APP)).unwrap().card;
    let manifest = manifest();
    let tensors = |cards: &[TensorCard]| {
        let cards = cards.iter().enumerate();
        cards
            .map(|(at, card)| RemoteTensor::new(at, card, None))
            .collect::<Vec<_>>()
    };
    let models = manifest.variants.iter().map(|variant| {
        let last = variant.exits.len() - 1;
        let exits = variant.exits.iter().enumerate();
        RemoteModel {
            name: format!("{APP}/{}", variant.name),
            model: APP.to_owned(),
            versions: exits
                .map(|(at, exit)| match at == last {
                    true => variant.name.clone(),
                    false => format!("{}/{}", variant.name, exit.name),
                })
                .collect(),
            inputs: tensors(&card.inputs),
            outputs: RemoteOutputs::new(card.task, tensors(&card.outputs)),
        }
    });
    models.collect()
}

fn misfits(options: &RemoteOptions) {
    let refused = |change: fn(&mut RemoteModel)| {
        let mut models = options.models.to_vec();
        change(&mut models[0]);
        let wrong = RemoteOptions {
            models: models.into(),
            ..options.clone()
        };
        match RemoteExecutor::connect(wrong) {
            Ok(_) => panic!("it connects"),
            Err(error) => error.to_string(),
        }
    };
    let error = refused(|model| model.inputs[0].name = "x".to_owned());
    assert!(
        error.contains("input x: the server has only `beat`"),
        "{error}"
    );
    let error = refused(|model| model.inputs[0].shape = vec![188]);
    assert!(
        error.contains("[-1, 187]") && error.contains("[188]"),
        "{error}"
    );
    let error = refused(|model| model.versions[0] = "none".to_owned());
    assert!(
        error.contains("status 5") && error.contains("none"),
        "{error}"
    );
}

/// Every exit of every variant answers as in this process.
pub(super) fn compare(options: RemoteOptions) {
    let manifest = manifest();
    let mut remote = RemoteExecutor::connect(options).unwrap();
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
    let mut local = CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX);
    let mut exits = 0;
    for (id, variant) in (0..).map(VariantId).zip(&manifest.variants) {
        for (exit, spec) in (0..).map(ExitId).zip(&variant.exits) {
            let job = || batch(7, id, spec.after_stage, exit);
            let here = local.run(&mut job()).result.unwrap();
            let there = remote.run(&mut job()).result.unwrap();
            assert_eq!(here, there, "{}: {}", variant.name, spec.name);
            exits += 1;
        }
    }
    assert!(
        exits > manifest.variants.len(),
        "a variant has several exits"
    );
}

/// Rows of 150 KB together.
const LARGE_ROWS: usize = 201;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, for a quiet machine"]
async fn the_time_of_a_link_for_150_kb() {
    blocking(fixture).await;
    let at = free_address();
    let worker = blocking(move || worker("far-a", at)).await;
    ready(worker.http).await;
    for _ in 0..4 {
        let [here, there] = blocking(move || medians(at)).await;
        let ratio = there.as_secs_f64() / here.as_secs_f64();
        let more = there.saturating_sub(here);
        println!("150 KB: {here:?} here, {there:?} there: {more:?} more, {ratio:.2} times");
        assert!(there < 10 * here, "the link takes most of the time");
    }
}

/// The medians of a large batch on a worker of this process and on the far one, in turn.
fn medians(at: SocketAddr) -> [Duration; 2] {
    let manifest = manifest();
    let variants = (0..).map(VariantId).zip(&manifest.variants);
    let (variant, spec) = variants.min_by_key(|(_, spec)| spec.memory_bytes).unwrap();
    let exit = ExitId(spec.exits.len() as u32 - 1);
    let stages = spec.stages;
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
    let near = CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX);
    let far = RemoteExecutor::connect(options(at)).unwrap();
    let executors: [Box<dyn Executor>; 2] = [Box::new(near), Box::new(far)];
    let (report, ended) = channel();
    let workers = executors.map(|executor| {
        let report = report.clone();
        let options = WorkerOptions {
            id: WorkerId(0),
            name: "bench".to_owned(),
            threads: 1,
            cores: Vec::new(),
            commands_max: 1,
            outstanding: 1,
        };
        Worker::spawn(options, executor, move |event| report.send(event).unwrap()).unwrap()
    });
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..60 {
        for (worker, times) in workers.iter().zip(&mut times) {
            let job = batch(LARGE_ROWS, variant, stages, exit);
            let began = Instant::now();
            worker.run(job).unwrap();
            let WorkerEvent::Finished(finished) = ended.recv().unwrap() else {
                panic!("no end of the batch");
            };
            times.push(began.elapsed());
            finished.result.unwrap();
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}
