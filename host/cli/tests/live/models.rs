//! Models that change, break, go and come back while requests flow.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use switchyard_server::reloads::Reload;
use tempfile::TempDir;

use super::client::{Client, get};
use super::fixture::{APP, beat, fixture, policy};
use super::load::Load;
use super::test_bed::{Setup, TestBed};

/// The variant whose files are changed.
const VARIANT: &str = "cnn-small";

/// A zoo of a test's own.
struct OwnZoo {
    folder: TempDir,
}

// === impl OwnZoo ===

impl OwnZoo {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        copy(&fixture().zoo, folder.path());
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(APP).join(VARIANT).join(name)
    }

    fn weights(&self) -> PathBuf {
        self.file("weights.safetensors")
    }

    /// Puts bytes in a file's place, whole at once.
    fn replace(&self, name: &str, bytes: &[u8]) {
        let beside = self.file("beside.part");
        fs::write(&beside, bytes).unwrap();
        fs::rename(&beside, self.file(name)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// The same tensors, each number times `factor`.
fn scaled(weights: &[u8], factor: f32) -> Vec<u8> {
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let (head, data) = weights.split_at(8 + header);
    let numbers = data.chunks_exact(4).flat_map(|bytes| {
        let number = f32::from_le_bytes(bytes.try_into().unwrap());
        (number * factor).to_le_bytes()
    });
    head.iter().copied().chain(numbers).collect()
}

/// The variant's answer to the first beat.
async fn answer(test_bed: &TestBed) -> Value {
    let path = format!("/v2/models/{APP}/versions/{VARIANT}/infer");
    let mut client = test_bed.client().await;
    let answer = client.send("POST", &path, beat(0)).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["outputs"].clone()
}

/// Waits for the reload after `known` others.
async fn next_reload(test_bed: &TestBed, known: usize) -> Reload {
    let pool = test_bed
        .until("a reload", |pool| pool.reloads.len() > known)
        .await;
    pool.reloads[known].clone()
}

async fn post(test_bed: &TestBed, path: &str) -> super::client::Answer {
    let mut client = test_bed.client().await;
    client.send("POST", path, String::new()).await.unwrap()
}

async fn states(test_bed: &TestBed) -> Vec<String> {
    let index = post(test_bed, "/v2/repository/index").await.json();
    let entries = index.as_array().unwrap().iter();
    let states = entries.map(|entry| entry["state"].as_str().unwrap().to_owned());
    states.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_that_change_serve_without_a_request_lost() {
    let zoo = OwnZoo::new();
    let setup = Setup::new("reloads").policy(policy("fcfs"));
    let test_bed = setup.zoo(zoo.folder.path()).start().await;
    let old = answer(&test_bed).await;
    let load = Load::start(test_bed.http, 3);
    load.answered_by("fcfs@", 20).await;

    let weights = fs::read(zoo.weights()).unwrap();
    zoo.replace("weights.safetensors", &scaled(&weights, 0.5));
    let reload = next_reload(&test_bed, 0).await;
    assert_eq!(reload.error, None);
    assert_eq!(reload.variant, format!("{APP}/{VARIANT}"));
    load.answered_by("fcfs@", 20).await;
    let new = answer(&test_bed).await;
    assert_ne!(new, old, "the old weights still answer");

    zoo.replace("weights.safetensors", &weights);
    assert_eq!(next_reload(&test_bed, 1).await.error, None);
    assert_eq!(answer(&test_bed).await, old);
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
    let switched = [("result", "switched")];
    let metrics = test_bed.metrics().await;
    assert_eq!(
        metrics.sum("switchyard_model_cache_reloads_total", &switched),
        2
    );
    test_bed.settled().await;
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_that_are_no_good_are_refused_and_the_old_ones_serve_on() {
    let zoo = OwnZoo::new();
    let setup = Setup::new("no-good").policy(policy("fcfs"));
    let test_bed = setup.zoo(zoo.folder.path()).start().await;
    let old = answer(&test_bed).await;
    let load = Load::start(test_bed.http, 2);

    let weights = fs::read(zoo.weights()).unwrap();
    let card = fs::read_to_string(zoo.file("model.toml")).unwrap();
    let wider = card.replacen("max_batch = ", "max_batch = 1", 1);
    assert_ne!(wider, card);
    let broken: [(&str, &str, Vec<u8>, &str); 4] = [
        (
            "cut off",
            "weights.safetensors",
            weights[..weights.len() / 2].to_vec(),
            "no safetensors file",
        ),
        (
            "no file",
            "weights.safetensors",
            b"no".to_vec(),
            "no safetensors file",
        ),
        (
            "not finite",
            "weights.safetensors",
            scaled(&weights, f32::NAN),
            "value 0 is NaN",
        ),
        (
            "another card",
            "model.toml",
            wider.into_bytes(),
            "the pool started with",
        ),
    ];
    let cases = broken.len();
    for (count, (what, name, bytes, said)) in broken.into_iter().enumerate() {
        if name == "model.toml" {
            zoo.replace("weights.safetensors", &weights);
            assert_eq!(next_reload(&test_bed, count).await.error, None);
        }
        let known = test_bed.pool().await.reloads.len();
        zoo.replace(name, &bytes);
        let error = next_reload(&test_bed, known).await.error;
        let error = error.unwrap_or_else(|| panic!("{what}: taken"));
        assert!(error.contains(said), "{what}: {error}");
        assert!(error.contains(name), "{what}: {error}");
        assert_eq!(answer(&test_bed).await, old, "{what}");
        load.answered_by("fcfs@", 5).await;
    }
    let refused = [("result", "refused")];
    let metrics = test_bed.metrics().await;
    assert_eq!(
        metrics.sum("switchyard_model_cache_reloads_total", &refused),
        cases as i64
    );
    assert_eq!(
        test_bed
            .logged("weights refused: the old ones serve on")
            .len(),
        cases
    );
    load.stop().await;
    test_bed.settled().await;
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_goes_and_comes_back_and_each_request_has_one_answer() {
    let setup = Setup::new("unloads")
        .policy(policy("fcfs"))
        .server("model_control = true");
    let test_bed = setup
        .worker(&format!("pin = [\"{APP}/{VARIANT}\"]"))
        .start()
        .await;
    let stopping = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for first in 0..3_u64 {
        let (address, stopping) = (test_bed.http, Arc::clone(&stopping));
        clients.push(tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            let (mut served, mut refused) = (0_u64, 0_u64);
            for nth in (first..).step_by(3) {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                let answer = client.infer(beat(nth)).await;
                match answer.status {
                    200 => served += 1,
                    503 => {
                        let error = answer.error();
                        assert!(error.contains("load"), "{error}");
                        refused += 1;
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    }
                    other => panic!("{other}: {}", answer.text),
                }
            }
            (served, refused)
        }));
    }
    let pinned = |pool: &switchyard_server::admin::PoolReport| {
        let resident = pool.driver.workers.iter().map(|worker| &worker.resident);
        resident.flatten().filter(|held| held.pinned).count()
    };
    let resident = test_bed
        .until("resident models", |pool| pinned(pool) == 2)
        .await;
    assert!(resident.driver.workers[0].resident[0].bytes > 0);
    let unload = format!("/v2/repository/models/{APP}/unload");
    let reload = format!("/v2/repository/models/{APP}/load");
    for _ in 0..3 {
        assert_eq!(post(&test_bed, &unload).await.status, 200);
        let ready = get(test_bed.http, &format!("/v2/models/{APP}/ready")).await;
        assert_eq!(ready.status, 503, "{}", ready.text);
        let gone = |pool: &switchyard_server::admin::PoolReport| {
            let mut workers = pool.driver.workers.iter();
            workers.all(|worker| worker.resident.is_empty())
        };
        test_bed.until("freed memory", gone).await;
        test_bed
            .until("an unloaded app", |pool| {
                pool.driver.apps[APP] == "UNAVAILABLE"
            })
            .await;
        assert!(
            states(&test_bed)
                .await
                .iter()
                .all(|state| state == "UNAVAILABLE")
        );
        assert_eq!(get(test_bed.http, "/v2/health/ready").await.status, 200);
        let answer = post(&test_bed, &reload).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(states(&test_bed).await.iter().all(|state| state == "READY"));
        let ready = get(test_bed.http, &format!("/v2/models/{APP}/ready")).await;
        assert_eq!(ready.status, 200, "{}", ready.text);
        test_bed
            .until("resident models", |pool| pinned(pool) == 2)
            .await;
    }
    stopping.store(true, Ordering::Relaxed);
    let (mut served, mut refused) = (0, 0);
    for client in clients {
        let (some, others) = client.await.unwrap();
        served += some;
        refused += others;
    }
    assert!(
        served > 0 && refused > 0,
        "{served} served, {refused} refused"
    );
    let pool = test_bed.settled().await;
    assert_eq!(
        pool.driver.ended, served,
        "what was refused was not accepted"
    );
    let metrics = test_bed.metrics().await;
    assert!(metrics.sum("switchyard_model_cache_hits_total", &[]) > 0);
    assert!(metrics.sum("switchyard_model_cache_loads_total", &[]) >= 8);
    assert!(metrics.sum("switchyard_model_cache_resident_bytes", &[]) > 0);
    let unknown = post(&test_bed, "/v2/repository/models/liver/load").await;
    assert_eq!(unknown.status, 404, "{}", json!(unknown.text));
    test_bed.stop().await;
}
