//! A scheduler and its workers in processes of their own.

mod batches;
mod fleet;
mod links;
mod losses;
mod stages;
mod unix;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use switchyard_executor::manifest::Manifest;
use switchyard_models::card::TensorCard;
use switchyard_models::zoo::{Zoo, ZooApp};
use switchyard_remote::{RemoteModel, RemoteOptions, RemoteOutputs, RemoteTensor, StageRanges};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::free_address::free_address;

use super::binary::{Process, switchyard};
use super::client::{Client, get};
use super::fixture::{APP, beat, fixture};
use super::test_bed::PATIENCE;

pub(super) use batches::compare;

/// Kinds of workers that are measured together.
const ALIKE: [&str; 2] = ["far", "far"];

/// A scheduler with workers `far-a` and `far-b` of these kinds, whose batches go to these addresses.
fn config(folder: &Path, urls: [&str; 2], kinds: [&str; 2]) -> String {
    let fixture = fixture();
    let (zoo, profiles) = (fixture.zoo.display(), folder.join("profiles"));
    let ([a, b], [kind_a, kind_b]) = (urls, kinds);
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
remote = {{ url = "{a}", kind = "{kind_a}" }}
[[worker]]
name = "far-b"
remote = {{ url = "{b}", kind = "{kind_b}" }}
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
    worker_at(name, &at.to_string(), &format!("grpc://{at}"), arguments)
}

/// The same at any address, which schedulers call `url`.
fn worker_at(name: &str, at: &str, url: &str, arguments: impl FnOnce(&mut Command)) -> Process {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, config(folder.path(), [url, url], ALIKE)).unwrap();
    let mut command = switchyard();
    command.args(["--log", "json", "worker", name, "--http", "127.0.0.1:0"]);
    command.args(["--grpc", at, "--config"]);
    command.arg(file);
    arguments(&mut command);
    let mut process = Process::spawn(command, folder);
    process.listening();
    process
}

fn scheduler(addresses: [SocketAddr; 2], kinds: [&str; 2]) -> Process {
    let [a, b] = addresses.map(|at| format!("grpc://{at}"));
    scheduler_of([&a, &b], kinds)
}

fn scheduler_of(urls: [&str; 2], kinds: [&str; 2]) -> Process {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, config(folder.path(), urls, kinds)).unwrap();
    let mut process = Process::start(&file, folder);
    process.listening();
    process
}

pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Waits until the server is ready: a worker has its models, a scheduler its policies.
pub(super) async fn ready(http: SocketAddr) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let answer = get(http, "/v2/health/ready").await;
        if answer.status == 200 {
            return;
        }
        assert!(Instant::now() < give_up, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
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
pub(super) struct Clients {
    stopping: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Duration>>,
}

impl Clients {
    pub(super) fn start(http: SocketAddr, count: u64) -> Self {
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
    pub(super) async fn stop(self) -> (u64, Duration) {
        self.stopping.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for task in self.tasks {
            longest = longest.max(task.await.unwrap());
        }
        (self.answered.load(Ordering::Relaxed), longest)
    }
}

fn options(at: SocketAddr) -> RemoteOptions {
    RemoteOptions {
        address: format!("grpc://{at}").parse().unwrap(),
        tls: None,
        timeout: Duration::from_secs(10),
        models: app_models(),
        stages: StageRanges::IfOffered,
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
