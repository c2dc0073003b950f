//! Workers and schedulers that find each other in a real etcd: `cargo xtask etcd`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::real_etcd::RealEtcd;
use super::binary::{Process, switchyard};
use super::client::{Client, get};
use super::ctl::{TOKEN, ctl, put, refused, said};
use super::fixture::{APP, beat, beats, fixture, guest, policy};
use super::metrics::Metrics;
use super::remote::{Clients, blocking, ready};
use super::test_bed::PATIENCE;

/// Time after which etcd drops a silent process, in seconds.
const TTL_S: u64 = 2;

/// The configuration of all processes. With the policy `chatters` schedulers have an election, and requests
/// wait for the patience. With `active` they also share their policies, and take orders.
fn config(folder: &Path, etcd: &RealEtcd, policy: &str, profiles: &Path) -> String {
    format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
drain_delay_ms = 600
{operators}
[etcd]
endpoints = ["http://{at}"]
ttl_s = {TTL_S}
{election}
[[app]]
name = "{APP}"
zoo = "{zoo}"
slo_ms = 600000
[[worker]]
name = "far"
remote = {{ etcd = "yard/workers/far", at_most = 3 }}
[[pool]]
name = "scaled"
apps = ["{APP}"]
workers = ["far"]
policy = "{policy}"
patience_ms = {patience_ms}
[policies]
dir = "{policies}"
[profile]
dir = "{profiles}"
measure_s = 1
"#,
        at = etcd.at,
        election = match policy {
            "chatters" => "election = \"yard/leader\"",
            "active" => "election = \"yard/leader\"\npolicies = \"yard/policies\"",
            _ => "",
        },
        operators = match policy {
            "active" => format!("operators = \"{}\"", operators(profiles).display()),
            _ => String::new(),
        },
        patience_ms = TTL_S * 1_500,
        zoo = fixture().zoo.display(),
        policies = folder.display(),
        profiles = profiles.display(),
    )
}

/// Starts a command of the program on the configuration.
fn start(etcd: &RealEtcd, profiles: &Path, policy: &str, arguments: &[&str]) -> Process {
    let folder = TempDir::new().unwrap();
    if policy == "chatters" {
        std::fs::write(folder.path().join("chatters.wasm"), guest("chatters")).unwrap();
    }
    start_in(folder, etcd, profiles, policy, arguments)
}

/// The same in a folder that may have policies.
fn start_in(
    folder: TempDir,
    etcd: &RealEtcd,
    profiles: &Path,
    policy: &str,
    arguments: &[&str],
) -> Process {
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, config(folder.path(), etcd, policy, profiles)).unwrap();
    let mut command = switchyard();
    command.args(["--log", "json"]).args(arguments);
    command.arg("--config").arg(file);
    let mut process = Process::spawn(command, folder);
    process.listening();
    process
}

fn worker(etcd: &RealEtcd, profiles: &Path, name: &str) -> Process {
    let ports = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"];
    let arguments = ["worker", "far", "--as", name];
    start(
        etcd,
        profiles,
        "edf-fallback",
        &[&arguments[..], &ports].concat(),
    )
}

/// A file with one operator.
fn operators(folder: &Path) -> PathBuf {
    let file = folder.join("operators");
    std::fs::write(&file, format!("anna {TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file
}

/// Waits until a scheduler's pool has this policy.
async fn until_policy(scheduler: &Process, policy: &str) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let status = get(scheduler.admin, "/admin/v1/status").await.json();
        let active = status["pools"][0]["policies"]["active"]["policy"].clone();
        if active.as_str().is_some_and(|it| it.starts_with(policy)) {
            return;
        }
        let messages = scheduler.messages();
        assert!(Instant::now() < give_up, "{active}: {messages:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a file has this content: it is written after the switch, the component last.
async fn until_file(file: &Path, content: &[u8]) {
    let give_up = Instant::now() + PATIENCE;
    while std::fs::read(file).unwrap_or_default() != content {
        assert!(Instant::now() < give_up, "{}", file.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a metric has this value.
async fn until(process: &Process, metric: &str, value: i64) {
    let give_up = Instant::now() + 2 * PATIENCE;
    loop {
        let metrics = Metrics::parse(&get(process.admin, "/metrics").await.text);
        let found = metrics.sum(metric, &[]);
        if found == value {
            return;
        }
        let messages = process.messages();
        assert!(
            Instant::now() < give_up,
            "{metric} is {found}, not {value}: {messages:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Batches that a scheduler's workers have run.
async fn batches(scheduler: &Process) -> i64 {
    let metrics = Metrics::parse(&get(scheduler.admin, "/metrics").await.text);
    metrics.sum("switchyard_batch_size_count", &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn serving_goes_on_while_etcd_is_away_and_workers_come_and_go() {
    blocking(fixture).await;
    let profiles = TempDir::new().unwrap();
    let mut etcd = RealEtcd::start();
    let (etcd_now, folder) = (&etcd, profiles.path());
    let [_a, b] =
        tokio::task::block_in_place(|| ["a", "b"].map(|name| worker(etcd_now, folder, name)));
    let near = tokio::task::block_in_place(|| start(&etcd, folder, "edf-fallback", &["serve"]));
    until(&near, "switchyard_worker_up", 2).await;
    ready(near.http).await;

    // A worker that stops leaves first, and one of its name has its slot again.
    let clients = Clients::start(near.http, 4);
    b.terminate();
    until(&near, "switchyard_worker_up", 1).await;
    let mut again = tokio::task::block_in_place(|| worker(&etcd, folder, "b"));
    until(&near, "switchyard_worker_up", 2).await;
    // Its batches run elsewhere.
    again.kill();
    until(&near, "switchyard_worker_up", 1).await;
    let _again = tokio::task::block_in_place(|| worker(&etcd, folder, "b"));
    until(&near, "switchyard_worker_up", 2).await;
    let (count, longest) = clients.stop().await;
    println!("{count} answers around restarts, the longest after {longest:?}");

    let clients = Clients::start(near.http, 4);
    etcd.stop();
    until(&near, "switchyard_etcd_up", 0).await;
    tokio::time::sleep(Duration::from_secs(3 * TTL_S)).await;
    etcd.resume();
    until(&near, "switchyard_etcd_up", 1).await;
    tokio::time::sleep(Duration::from_secs(3 * TTL_S)).await;
    until(&near, "switchyard_worker_up", 2).await;
    let (count, longest) = clients.stop().await;
    println!("{count} answers around a restart of etcd, the longest after {longest:?}");
    assert!(count > 0 && longest < Duration::from_secs(2), "{longest:?}");
    assert_eq!(near.lines("etcd answers again").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn a_scheduler_that_was_paused_past_its_lease_begins_nothing() {
    blocking(fixture).await;
    let profiles = TempDir::new().unwrap();
    let (etcd, folder) = (RealEtcd::start(), profiles.path());
    let serve = || tokio::task::block_in_place(|| start(&etcd, folder, "chatters", &["serve"]));
    let far = tokio::task::block_in_place(|| worker(&etcd, folder, "a"));
    ready(far.http).await;
    let first = serve();
    until(&first, "switchyard_active", 1).await;
    let second = serve();
    until(&second, "switchyard_worker_up", 1).await;
    second.wait_for_line("this scheduler stands by");
    let probe = get(second.http, "/v2/health/ready").await;
    assert_eq!(probe.status, 503);
    assert!(
        probe.text.contains("stands by: the active scheduler is"),
        "{}",
        probe.text
    );
    let refused = Client::connect(second.http).await.infer(beat(0)).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(
        refused.text.contains("the active scheduler is"),
        "{}",
        refused.text
    );

    // Requests wait in the first one; its patience ends while it is paused.
    let http = first.http;
    let asked = (0..8)
        .map(|nth| tokio::spawn(async move { Client::connect(http).await.infer(beat(nth)).await }));
    let asked: Vec<_> = asked.collect();
    let accepted = async || {
        let status = get(first.admin, "/admin/v1/status").await.json();
        status["pools"][0]["accepted"].as_u64()
    };
    let give_up = Instant::now() + PATIENCE;
    while accepted().await != Some(8) {
        assert!(Instant::now() < give_up, "not all are accepted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.signal("STOP");
    until(&second, "switchyard_active", 1).await;
    ready(second.http).await;
    let mut client = Client::connect(second.http).await;
    // The policy does nothing: the host serves it before its deadline.
    let in_two_seconds = serde_json::json!({ "timeout": 2_000_000 });
    let answer = client.infer(beats(9, 1, &in_two_seconds)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    tokio::time::sleep(Duration::from_secs(2 * TTL_S)).await;
    assert_eq!(batches(&second).await, 1);
    first.signal("CONT");
    for answer in asked {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(answer.text.contains("stands by"), "{}", answer.text);
    }
    first.wait_for_line("this scheduler stands by");
    let refused = Client::connect(first.http).await.infer(beat(10)).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(batches(&first).await, 0, "it ran a batch");

    // One that stops hands over at once.
    let began = Instant::now();
    second.terminate();
    until(&first, "switchyard_active", 1).await;
    println!("handed over after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn schedulers_that_share_a_policy_swap_together() {
    blocking(fixture).await;
    let profiles = TempDir::new().unwrap();
    let (etcd, shared) = (RealEtcd::start(), profiles.path());
    let far = tokio::task::block_in_place(|| worker(&etcd, shared, "a"));
    ready(far.http).await;
    let serve = |component: Option<Vec<u8>>| {
        let folder = TempDir::new().unwrap();
        if let Some(component) = component {
            std::fs::write(folder.path().join("active.wasm"), component).unwrap();
        }
        tokio::task::block_in_place(|| start_in(folder, &etcd, shared, "active", &["serve"]))
    };
    let first = serve(Some(policy("fcfs")));
    until(&first, "switchyard_active", 1).await;
    until(&first, "switchyard_policy_in_step", 1).await;
    // The second one has no policy of its own.
    let second = serve(None);
    until(&second, "switchyard_policy_in_step", 1).await;
    until_policy(&second, "fcfs@").await;

    // An order on the active one is one on both; the other one refuses orders.
    let settings = "exits = [\"final\"]\n";
    put(
        &first.policy(),
        "next",
        &policy("stability"),
        Some(settings),
    );
    let began = Instant::now();
    let order = |scheduler: &Process, arguments: &[&str]| {
        tokio::task::block_in_place(|| ctl(scheduler, TOKEN, arguments))
    };
    said(&order(&first, &["swap", "next"]));
    until_policy(&second, "stability@").await;
    println!("both have it after {:?}", began.elapsed());
    let own = second.policy();
    until_file(&own, &policy("stability")).await;
    let own_settings = std::fs::read_to_string(own.with_extension("toml")).unwrap();
    assert_eq!(own_settings, settings);
    let followed = second.lines("policy switched").pop().unwrap();
    assert_eq!(followed["by"], "anna", "{followed}");
    let error = refused(&order(&second, &["swap", "next"]));
    let wanted = "order it there: this scheduler stands by: the active scheduler is";
    assert!(error.contains(wanted), "{error}");
    // A file that changes there is taken back.
    put(&first.policy(), "plain", &policy("mael"), None);
    said(&order(&first, &["swap", "plain"]));
    until_policy(&second, "mael@").await;
    until_file(&own, &policy("mael")).await;
    assert!(!own.with_extension("toml").exists());
    std::fs::write(&own, policy("stability")).unwrap();
    until_policy(&second, "stability@").await;
    until_policy(&second, "mael@").await;
    until(&second, "switchyard_policy_in_step", 1).await;

    // The next active one swaps back, and the first one returns to the policy of now.
    let mut before = first;
    before.terminate();
    assert!(tokio::task::block_in_place(|| before.ended()).success());
    until(&second, "switchyard_active", 1).await;
    put(&second.policy(), "next", &policy("fcfs"), None);
    said(&order(&second, &["swap", "next"]));
    until_policy(&second, "fcfs@").await;
    let again = tokio::task::block_in_place(|| before.again());
    until_policy(&again, "fcfs@").await;
    until(&again, "switchyard_policy_in_step", 1).await;
    until_file(&again.policy(), &policy("fcfs")).await;
}
