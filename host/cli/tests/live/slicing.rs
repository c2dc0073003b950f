//! A long model and a short one on one worker: run in slices, the long one lets the short one pass,
//! and its answers are the same to the last bit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::client::Client;
use super::fixture::{beat, policy};
use super::test_bed::{Setup, TestBed};

/// Requests of the short model that are measured in a round, and rounds.
const SHORT: usize = 20;
const ROUNDS: usize = 4;
/// Different inputs of the long one.
const INPUTS: u64 = 4;
/// Tries to meet the bound. A machine that does something else for a while may miss it, one that
/// does not slice misses it each time.
const TRIES: usize = 5;
/// At worst the short model waits for a whole run of the long one, or for a slice of it.
const SHARE: f64 = 0.8;
/// Quantile of the waits that is compared; longer waits come from the machine.
const HIGH: f64 = 0.8;

/// One worker, both models as shipped.
fn config(folder: &Path, profiles: &Path, algorithm: &str) -> String {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo");
    format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[app]]
name = "images"
zoo = "{zoo}"
variants = ["resnet56"]
[[app]]
name = "heart"
zoo = "{zoo}"
variants = ["cnn-small"]
[[worker]]
name = "only"
memory_mb = 64
[[pool]]
name = "sliced"
apps = ["images", "heart"]
workers = ["only"]
policy = "active"
settings = {{ algorithm = "{algorithm}", slicing = "always" }}
window_budget_ms = 500
[policies]
dir = "{folder}"
[profile]
dir = "{profiles}"
measure_s = 2
"#,
        zoo = zoo.display(),
        folder = folder.display(),
        profiles = profiles.display(),
    )
}

fn picture(nth: u64) -> String {
    let pixels =
        (0..3 * 32 * 32).map(|i| f64::from((i * 37 + nth as u32 * 11) % 201) / 100.0 - 1.0);
    let input = json!({
        "name": "image", "datatype": "FP32", "shape": [1, 3, 32, 32],
        "data": pixels.collect::<Vec<_>>(),
    });
    json!({ "inputs": [input] }).to_string()
}

/// Asks for the long model again and again; its answers by input, all of them the same each time.
fn long_runs(test_bed: &TestBed, stopping: &Arc<AtomicBool>) -> JoinHandle<Vec<Value>> {
    let (http, stopping) = (test_bed.http, Arc::clone(stopping));
    tokio::spawn(async move {
        let mut client = Client::connect(http).await;
        let mut answers = Vec::<Value>::new();
        for nth in 0.. {
            if nth >= INPUTS && stopping.load(Ordering::Relaxed) {
                break;
            }
            let path = "/v2/models/images/infer";
            let answer = client
                .send("POST", path, picture(nth % INPUTS))
                .await
                .unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text);
            let outputs = answer.json()["outputs"].clone();
            match answers.get((nth % INPUTS) as usize) {
                None => answers.push(outputs),
                Some(before) => assert_eq!(*before, outputs),
            }
        }
        answers
    })
}

/// Time that a request of the short model waits, in microseconds.
async fn waits_us(client: &mut Client, nth: u64) -> f64 {
    let answer = client.infer(beat(nth)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["parameters"]["queue_us"].as_f64().unwrap()
}

fn high(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * HIGH) as usize]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_requests_pass_long_ones_that_run_in_slices() {
    let profiles = TempDir::new().unwrap();
    let mut test_beds = Vec::new();
    for algorithm in ["slo-mael", "pslo-mael"] {
        let folder = TempDir::new().unwrap();
        let setup = Setup::new("sliced").policy(policy("mael"));
        // One profile for both, which the first of them measures.
        let text = config(folder.path(), profiles.path(), algorithm);
        test_beds.push(setup.start_with(&text, folder).await);
    }
    let mut shares = Vec::new();
    for _ in 0..TRIES {
        let (mut answers, mut waits) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        // Alternately: they must not slow each other down, and a longer disturbance hits both.
        for round in 0..2 * ROUNDS {
            let at = round % 2;
            let stopping = Arc::new(AtomicBool::new(false));
            let long = long_runs(&test_beds[at], &stopping);
            let mut client = test_beds[at].client().await;
            for nth in 0..SHORT {
                waits[at].push(waits_us(&mut client, nth as u64).await);
            }
            stopping.store(true, Ordering::Relaxed);
            answers[at] = long.await.unwrap();
        }
        assert_eq!(answers[0], answers[1], "slices change nothing");
        let [whole, sliced] = waits.map(high);
        shares.push(sliced / whole);
        if sliced < SHARE * whole {
            break;
        }
    }
    assert!(
        shares.last().is_some_and(|&share| share < SHARE),
        "{shares:?}"
    );
    for test_bed in test_beds {
        test_bed.settled().await;
        test_bed.stop().await;
    }
}
