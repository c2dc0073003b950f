//! Changes of the configuration while the server serves: apps and variants come and go, with no
//! restart and no lost request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchyard_policy::recording::{Frame, Reader};
use switchyard_server::config::Config;
use switchyard_server::server::Server;
use tempfile::TempDir;

use super::binary::switchyard;
use super::client::{Client, get};
use super::fixture::policy;
use super::graphs::{write_app, write_zoo};
use super::test_bed::PATIENCE;
use super::zoo_server::{POLICY, ZooServer};
use crate::onnx::{FLOAT, Graph, Node, OPEN, Value as Port};

fn pairs() -> String {
    let input =
        |name: &str| json!({"name": name, "datatype": "FP32", "shape": [1, 2], "data": [1.0, 3.0]});
    json!({ "inputs": [input("x"), input("y")] }).to_string()
}

fn sums() -> String {
    json!({ "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]},
        {"name": "k", "datatype": "INT64", "shape": [1, 2], "data": [5, 6]},
        {"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [4.0]},
    ]})
    .to_string()
}

async fn infer(client: &mut Client, app: &str, body: String) -> (u16, Value) {
    let path = format!("/v2/models/{app}/infer");
    let answer = client.send("POST", &path, body).await.unwrap();
    (answer.status, answer.json())
}

/// A server of `pairs` in a zoo that has `tensors` too, under the policy fcfs.
async fn start() -> ZooServer {
    let zoo = TempDir::new().unwrap();
    write_zoo(zoo.path());
    std::fs::write(zoo.path().join(POLICY), policy("fcfs")).unwrap();
    let server = ZooServer::start(zoo, &["pairs"]).await;
    until(&server, "/v2/health/ready", 200).await;
    server
}

/// Waits until a GET of this path has this status.
async fn until(server: &ZooServer, path: &str, status: u16) -> Value {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let mut client = server.client().await;
        let answer = client.send("GET", path, String::new()).await.unwrap();
        if answer.status == status {
            return serde_json::from_str(&answer.text).unwrap_or_default();
        }
        assert!(Instant::now() < give_up, "{path}: {}", answer.text);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The changes with this result.
async fn changes(server: &ZooServer, result: &str) -> usize {
    let text = get(server.admin, "/metrics").await.text;
    let begin = format!("switchyard_config_changes_total{{result=\"{result}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&begin));
    line.map_or(0, |count| count.parse().unwrap())
}

async fn until_changes(server: &ZooServer, result: &str, wanted: usize) {
    let give_up = Instant::now() + PATIENCE;
    while changes(server, result).await < wanted {
        assert!(Instant::now() < give_up, "no {result} change");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apps_come_and_go_and_no_request_is_lost() {
    let server = start().await;
    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    let mut load = Vec::new();
    for client in clients {
        let (mut client, stop, answered) = (client.await, Arc::clone(&stop), Arc::clone(&answered));
        load.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let (status, answer) = infer(&mut client, "pairs", pairs()).await;
                assert_eq!(status, 200, "{answer}");
                let by = answer["parameters"]["policy"].as_str().unwrap();
                assert!(by.starts_with("fcfs@"), "{by}");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let mut client = server.client().await;
    assert_eq!(infer(&mut client, "tensors", sums()).await.0, 404);

    server.serve_apps(&["pairs", "tensors"]);
    until(&server, "/v2/models/tensors/ready", 200).await;
    let (status, answer) = infer(&mut client, "tensors", sums()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["outputs"][0]["data"], json!([5.0, 6.0]));
    until_changes(&server, "switched", 1).await;

    server.serve_apps(&["pairs"]);
    until(&server, "/v2/models/tensors/ready", 404).await;
    until_changes(&server, "switched", 2).await;

    stop.store(true, Ordering::Relaxed);
    for client in load {
        client.await.unwrap();
    }
    // The same variant in three pools, one after another: its counters go on.
    let stats = until(&server, "/v2/models/pairs/stats", 200).await;
    let counted = stats["model_stats"][0]["inference_count"].as_u64().unwrap();
    assert_eq!(counted, answered.load(Ordering::Relaxed) as u64);
    assert!(counted > 0);
    server.stop().await;
}

/// Puts another variant of `pairs` into the zoo.
fn put_variant(server: &ZooServer, name: &str) {
    let pairs = server.zoo().join("pairs");
    let (from, to) = (pairs.join("graph"), pairs.join(name));
    std::fs::create_dir(&to).unwrap();
    // The weights first: a card without weights is refused, and looked at again.
    std::fs::copy(from.join("model.onnx"), to.join("model.onnx")).unwrap();
    let card = std::fs::read_to_string(from.join("model.toml")).unwrap();
    let card = card.replace("name = \"graph\"", &format!("name = \"{name}\""));
    std::fs::write(to.join("model.toml"), card).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variant_that_is_put_into_the_zoo_is_served() {
    let server = start().await;
    let names = |metadata: Value| metadata["versions"].as_array().unwrap().len();
    assert_eq!(names(until(&server, "/v2/models/pairs", 200).await), 1);
    put_variant(&server, "other");
    until(&server, "/v2/models/pairs/versions/other/ready", 200).await;
    assert_eq!(names(until(&server, "/v2/models/pairs", 200).await), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_cannot_be_served_is_refused_and_the_old_one_serves_on() {
    let server = start().await;
    let mut client = server.client().await;
    let text = std::fs::read_to_string(server.zoo().join("switchyard.toml")).unwrap();
    let refused = [
        "no toml".to_owned(),
        text.replace("\"pairs\"", "\"absent\""),
        text.replace("[policies]", "[policies]\nhistory = 3"),
        text.replace("memory_mb = 64", "memory_mb = 64\ndevice = \"cuda:7\""),
    ];
    for (before, wrong) in refused.iter().enumerate() {
        server.configure(wrong);
        until_changes(&server, "refused", before + 1).await;
        let (status, answer) = infer(&mut client, "pairs", pairs()).await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(changes(&server, "switched").await, 0);
    // The way back is no change.
    server.configure(&text);
    until_changes(&server, "unchanged", 1).await;
    server.stop().await;
}

/// Two rows of `pairs`.
fn two_rows() -> String {
    let input = |name: &str| json!({"name": name, "datatype": "FP32", "shape": [2, 2], "data": [1.0, 3.0, 1.0, 3.0]});
    json!({ "inputs": [input("x"), input("y")] }).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_changes_while_the_pools_serve_on() {
    let server = start().await;
    let mut client = server.client().await;
    let swaps = "switchyard_policy_swaps_total{result=\"switched\"} 1";
    assert_eq!(infer(&mut client, "pairs", two_rows()).await.0, 200);
    let text = std::fs::read_to_string(server.zoo().join("switchyard.toml")).unwrap();
    server.configure(&text.replace("[server]", "[server]\nrows_max = 1"));
    until_changes(&server, "switched", 1).await;
    let (status, answer) = infer(&mut client, "pairs", two_rows()).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    server.configure(&text.replace("[server]", "[server]\nbody_max_mb = 1"));
    until_changes(&server, "switched", 2).await;
    assert_eq!(infer(&mut client, "pairs", two_rows()).await.0, 200);
    let (status, answer) = infer(&mut client, "pairs", " ".repeat(2 << 20)).await;
    assert_eq!(status, 413, "{answer}");
    // No pool was started anew.
    let metrics = get(server.admin, "/metrics").await.text;
    assert!(metrics.contains(swaps), "{metrics}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_and_settings_come_while_requests_are_answered() {
    let server = start().await;
    let mut client = server.client().await;
    let text = std::fs::read_to_string(server.zoo().join("switchyard.toml")).unwrap();
    let text = text.replace("policy = \"policy\"", "policy = \"policy\"\nsettings = { variants = { pairs = \"graph\" } }\nshadow = { policy = \"policy\" }");
    server.configure(&text);
    while changes(&server, "switched").await == 0 {
        let (status, answer) = infer(&mut client, "pairs", pairs()).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(changes(&server, "refused").await, 0);
    }
    assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    let status: Value =
        serde_json::from_str(&get(server.admin, "/admin/v1/status").await.text).unwrap();
    assert!(status["pools"][0]["shadow"].is_object(), "{status}");
    // A setting that the policy refuses: all stays.
    server.configure(&text.replace("\"graph\"", "\"absent\""));
    until_changes(&server, "refused", 1).await;
    assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    server.stop().await;
}

/// The recording of the old pool is whole before that of the new one begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_goes_on_as_another_run_of_the_same_file() {
    let server = start().await;
    let file = server.zoo().join("main.rec");
    let record = format!("[[pool]]\nrecord = {{ file = {file:?} }}\n");
    let config = server.zoo().join("switchyard.toml");
    let text = std::fs::read_to_string(config).unwrap();
    let text = text.replace("[[pool]]\n", &record);
    server.configure(&text);
    until_changes(&server, "switched", 1).await;
    let mut client = server.client().await;
    for _ in 0..3 {
        assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    }
    server.configure(&text.replace("name = \"main\"", "name = \"main\"\nseed = 7"));
    until_changes(&server, "switched", 2).await;
    for _ in 0..2 {
        assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    }
    drop(client);
    let zoo = server.stop().await;
    let mut windows = Vec::new();
    for frame in Reader::open(&file).unwrap() {
        match frame.unwrap() {
            Frame::Start(_) => windows.push(0),
            Frame::Decision(_) => *windows.last_mut().unwrap() += 1,
            Frame::Gap(missing) => panic!("{missing} windows are missing"),
            _ => {}
        }
    }
    assert_eq!(windows, [3, 2]);
    drop(zoo);
}

fn run(command: &str, args: &[&str], config: &Path) -> String {
    let output = switchyard()
        .arg(command)
        .args(args)
        .arg("--config")
        .arg(config)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_is_added_to_a_running_server_and_removed_again() {
    let server = start().await;
    let graph = server.zoo().join("pairs/graph/model.onnx");
    let (zoo, config) = (
        server.zoo().to_owned(),
        server.zoo().join("switchyard.toml"),
    );
    let added = tokio::task::spawn_blocking({
        let (zoo, config) = (zoo.clone(), config.clone());
        move || {
            let (graph, zoo) = (graph.display().to_string(), zoo.display().to_string());
            run("add", &[&graph, "--as", "late", "--zoo", &zoo], &config)
        }
    });
    let said = added.await.unwrap();
    assert!(said.contains("the running server serves it, "), "{said}");
    let mut client = server.client().await;
    let (status, answer) = infer(&mut client, "late", pairs()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["outputs"][0]["data"], json!([2.0, 6.0]));

    let config_again = config.clone();
    let removed =
        tokio::task::spawn_blocking(move || run("remove", &["late", "--delete"], &config));
    let said = removed.await.unwrap();
    assert!(said.contains("the running server has let it go"), "{said}");
    assert_eq!(infer(&mut client, "late", pairs()).await.0, 404);
    assert!(!zoo.join("late").exists());
    let unknown = switchyard()
        .args(["remove", "late", "--config"])
        .arg(config_again)
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(
        said.ends_with("switchyard.toml: has no app late\n"),
        "{said}"
    );
    server.stop().await;
}

/// Every app answers to the version `1`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variant_of_the_name_1_is_removed() {
    let server = start().await;
    put_variant(&server, "1");
    let served = |metadata: Value| metadata["versions"].as_array().unwrap().len();
    let give_up = Instant::now() + PATIENCE;
    while served(until(&server, "/v2/models/pairs", 200).await) < 2 {
        assert!(Instant::now() < give_up, "the variant is not served");
    }
    let config = server.zoo().join("switchyard.toml");
    let removed =
        tokio::task::spawn_blocking(move || run("remove", &["pairs/1", "--delete"], &config));
    let said = removed.await.unwrap();
    assert!(said.contains("the running server has let it go"), "{said}");
    let metadata = until(&server, "/v2/models/pairs", 200).await;
    assert_eq!(metadata["versions"], json!(["graph"]));
    assert!(!server.zoo().join("pairs/1").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_loads_an_app_that_only_the_zoo_has() {
    let server = start().await;
    let mut client = server.client().await;
    let load = |app: &str| format!("/v2/repository/models/{app}/load");
    for unknown in ["absent", "..%2Fpairs", "pairs%2Fgraph"] {
        let answer = client.send("POST", &load(unknown), "{}".to_owned()).await;
        assert_eq!(answer.unwrap().status, 404, "{unknown}");
    }
    let answer = client.send("POST", &load("tensors"), "{}".to_owned()).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(infer(&mut client, "tensors", sums()).await.0, 200);
    assert_eq!(infer(&mut client, "pairs", pairs()).await.0, 200);
    std::fs::create_dir(server.zoo().join("broken")).unwrap();
    std::fs::write(server.zoo().join("broken/app.toml"), "name = 3").unwrap();
    let answer = client.send("POST", &load("broken"), "{}".to_owned()).await;
    assert_eq!(answer.unwrap().status, 500);
    assert_eq!(infer(&mut client, "tensors", sums()).await.0, 200);
    server.stop().await;
}

/// As `switchyard add` writes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_the_native_fallback_is_ready_without_a_policy_file() {
    let zoo = TempDir::new().unwrap();
    write_zoo(zoo.path());
    let server = ZooServer::start(zoo, &["pairs"]).await;
    let mut client = server.client().await;
    let waits = client.send("GET", "/v2/health/ready", String::new()).await;
    let waits = waits.unwrap();
    assert_eq!(waits.status, 503, "{}", waits.text);
    let text = std::fs::read_to_string(server.zoo().join("switchyard.toml")).unwrap();
    server.configure(&text.replace("policy = \"policy\"", "policy = \"edf-fallback\""));
    until(&server, "/v2/health/ready", 200).await;
    let answer = client
        .send("POST", "/v2/models/pairs/infer", pairs())
        .await
        .unwrap();
    assert!(
        answer.policy().starts_with("edf-fallback@"),
        "{}",
        answer.policy()
    );
    server.stop().await;
}

/// The kept profile has the variants of the first start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_variants_that_the_profile_lacks_are_measured() {
    let zoo = start().await.stop().await;
    let profile = || {
        let files = std::fs::read_dir(zoo.path()).unwrap();
        let json = files
            .map(|file| file.unwrap().path())
            .find(|path| path.extension().is_some_and(|e| e == "json"));
        let text = std::fs::read_to_string(json.unwrap()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let of = |profile: &Value, app: &str| -> Vec<Value> {
        let cells = profile["latencies"].as_array().unwrap();
        cells
            .iter()
            .filter(|cell| cell["app"] == app)
            .cloned()
            .collect()
    };
    let before = profile();
    assert!(of(&before, "tensors").is_empty());
    let next = Graph {
        nodes: vec![Node::new("Sub", &["x", "y"], "logits")],
        inputs: vec![
            Port::new("x", FLOAT, Some(&[OPEN, 2])),
            Port::new("y", FLOAT, Some(&[OPEN, 2])),
        ],
        outputs: vec![Port::new("logits", FLOAT, Some(&[OPEN, 2]))],
        ..Graph::default()
    };
    let card = std::fs::read_to_string(zoo.path().join("pairs/app.toml")).unwrap();
    let card = card.replace("name = \"pairs\"", "name = \"next\"");
    write_app(zoo.path(), "next", &card, "", next);
    let file = zoo.path().join("switchyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let dir = zoo.path().display();
    let text = text
        .replace(
            "[[worker]]",
            &format!("[[app]]\nname = \"next\"\nzoo = \"{dir}\"\n[[worker]]"),
        )
        .replace("[\"pairs\"]", "[\"pairs\", \"next\"]");
    std::fs::write(&file, text).unwrap();
    let config = Config::read(&file).unwrap();
    let starting = tokio::task::spawn_blocking(move || drop(Server::start(config).unwrap()));
    starting.await.unwrap();
    let after = profile();
    assert!(!of(&after, "next").is_empty());
    assert_eq!(of(&after, "pairs"), of(&before, "pairs"));
}
