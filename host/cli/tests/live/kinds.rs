//! Workers of two kinds: a fast one that holds a network at full precision, and a small one whose
//! memory fits only the same network in 8 bits. MAEL places by the profile of each kind.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use switchyard_profile::{Machine, ProfileFile};
use tempfile::TempDir;

use super::client::{Client, get};
use super::fixture::policy;
use super::test_bed::{Setup, TestBed};

const FULL: &str = "resnet56";
const NARROW: &str = "resnet56@int8";
/// Requests at a time, and each client's.
const CLIENTS: usize = 6;
const EACH: u64 = 5;

fn config(folder: &Path, profiles: &Path) -> String {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo");
    format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[app]]
name = "images"
zoo = "{zoo}"
variants = ["{FULL}", "{NARROW}"]
[[worker]]
name = "large"
threads = 2
memory_mb = 64
power_w = 20
[[worker]]
name = "small"
memory_mb = 1
parked_max = 0
power_w = 5
[[pool]]
name = "kinds"
apps = ["images"]
workers = ["large", "small"]
policy = "active"
settings = {{ algorithm = "slo-mael" }}
window_budget_ms = 500
windows_kept = 4096
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

/// The answer's parameters.
async fn infer(client: &mut Client, nth: u64) -> Value {
    let path = "/v2/models/images/infer";
    let answer = client.send("POST", path, picture(nth)).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["parameters"].clone()
}

/// The workers and variants that the window of an answer placed requests on.
async fn placed(test_bed: &TestBed, answer: &Value) -> Vec<(String, String)> {
    let path = format!("/admin/v1/windows/{}", answer["window"]);
    let window = get(test_bed.admin, &path).await.json();
    let batches = window["plan"]["dispatches"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let batches = batches.iter();
    batches
        .map(|batch| (text(&batch["worker"]), text(&batch["variant"])))
        .collect()
}

/// Latency of one request in the catalog, in microseconds.
fn told_us(profile: &ProfileFile, kind: &str, variant: &str) -> u64 {
    let is_whole = |cell: &&switchyard_profile::LatencyCell| {
        (&*cell.kind, &*cell.variant, cell.batch) == (kind, variant, 1)
            && (cell.from_stage, cell.exit.as_deref()) == (0, Some("final"))
    };
    profile.latencies.iter().find(is_whole).unwrap().p95_us
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_to_the_fastest_worker_as_the_variant_that_fits() {
    let (profiles, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let setup = Setup::new("kinds").policy(policy("mael"));
    let text = config(folder.path(), profiles.path());
    let test_bed = setup.start_with(&text, folder).await;

    let measured = profiles.path().join(Machine::detect().file_name());
    let measured = ProfileFile::load(&measured).unwrap();
    let bytes = |variant: &str| {
        let mut models = measured.models.iter();
        models.find(|m| m.variant == variant).unwrap().memory_bytes
    };
    assert!(bytes(FULL) > 1 << 20 && bytes(NARROW) <= 1 << 20);

    // One request on idle workers. Both variants have the same accuracy, so the faster one serves.
    let large = [FULL, NARROW].map(|variant| told_us(&measured, "cpu-2t", variant));
    let large = large.into_iter().min().unwrap();
    let best = match told_us(&measured, "cpu-1t", NARROW) < large {
        true => "small",
        false => "large",
    };
    let mut client = test_bed.client().await;
    for nth in 0..EACH {
        let answer = infer(&mut client, nth).await;
        let placed = placed(&test_bed, &answer).await;
        assert_eq!(placed[0].0, best, "{placed:?}, {large} us on the large one");
    }

    // Under load both workers serve, each the variant that fits.
    let clients = (0..CLIENTS).map(|_| {
        let http = test_bed.http;
        tokio::spawn(async move {
            let mut client = Client::connect(http).await;
            let mut answers = Vec::new();
            for nth in 0..EACH {
                answers.push(infer(&mut client, nth).await);
            }
            answers
        })
    });
    let mut used = BTreeSet::new();
    for client in clients.collect::<Vec<_>>() {
        for answer in client.await.unwrap() {
            used.extend(placed(&test_bed, &answer).await);
        }
    }
    let workers: BTreeSet<&str> = used.iter().map(|(worker, _)| worker.as_str()).collect();
    assert_eq!(workers, BTreeSet::from(["large", "small"]), "{used:?}");
    let small = used.iter().filter(|(worker, _)| worker == "small");
    let small: Vec<&str> = small.map(|(_, variant)| variant.as_str()).collect();
    assert_eq!(small, [NARROW]);

    // A client may name it, as any version.
    let path = format!("/v2/models/images/versions/{NARROW}/infer");
    let answer = client.send("POST", &path, picture(1)).await.unwrap();
    assert_eq!(answer.json()["model_version"], NARROW, "{}", answer.text);

    test_bed.settled().await;
    test_bed.stop().await;
}
