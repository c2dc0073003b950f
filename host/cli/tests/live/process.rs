//! The binary from start to exit code.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use switchyard_server::admin::ServerStatus;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::binary::{Process, serve_file};
use super::client::{Answer, Client, get};
use super::fixture::{APP, beat, beats, fixture, guest, policy};
use super::load::Load;
use super::test_bed::{FALLBACK, PATIENCE, Setup};

type Asked = JoinHandle<Result<Answer, String>>;

async fn started(setup: Setup) -> Process {
    tokio::task::spawn_blocking(move || Process::serve(&setup))
        .await
        .unwrap()
}

async fn status(admin: SocketAddr) -> ServerStatus {
    serde_json::from_str(&get(admin, "/admin/v1/status").await.text).unwrap()
}

/// Sends requests, each on its own connection, and waits until all have been taken in.
async fn taken_in(process: &Process, count: u64) -> Vec<Asked> {
    let http = process.http;
    let ask = |nth| {
        tokio::spawn(async move {
            let mut client = Client::connect(http).await;
            client
                .send("POST", &format!("/v2/models/{APP}/infer"), beat(nth))
                .await
        })
    };
    let asked = (0..count).map(ask).collect();
    let give_up = Instant::now() + PATIENCE;
    while status(process.admin).await.pools[0].driver.accepted < count {
        assert!(Instant::now() < give_up, "they are not taken in");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    asked
}

/// Waits until the policy serves; not needed for serving, but for knowing who does.
async fn policy_serves(process: &Process) {
    let give_up = Instant::now() + PATIENCE;
    while status(process.admin).await.pools[0]
        .policies
        .active
        .is_none()
    {
        assert!(Instant::now() < give_up, "{:?}", process.messages());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The policy decides nothing, so the requests are inside until their deadline for sure; then the fallback
/// serves them, on a busy machine too.
fn holding(slo_ms: u32) -> Setup {
    let setup = Setup::new("holding").policy(guest("chatters"));
    setup
        .app(&format!("slo_ms = {slo_ms}\nlate = \"serve\""))
        .lines("patience_ms = 1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_lets_requests_in_flight_end_and_exits_with_0() {
    let mut process = started(holding(3_000)).await;
    policy_serves(&process).await;
    let asked = taken_in(&process, 6).await;
    process.terminate();
    let give_up = Instant::now() + PATIENCE;
    while TcpStream::connect(process.http).await.is_ok() {
        assert!(Instant::now() < give_up, "it still listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for answer in asked {
        let answer = answer.await.unwrap().expect("an answer, though it drains");
        assert!(answer.policy().starts_with(FALLBACK), "{answer:?}");
    }
    let exit = tokio::task::spawn_blocking(move || {
        let exit = process.ended();
        (exit, process)
    });
    let (exit, mut process) = exit.await.unwrap();
    assert_eq!(exit.code(), Some(0), "{:?}", process.messages());
    assert_eq!(process.lines("draining")[0]["signal"], "SIGTERM");
    let drained = &process.lines("drained")[0];
    assert_eq!(drained["cut_connections"], 0);
    assert_eq!(drained["empty"], true);
    let messages = process.messages();
    assert_eq!(messages.last().unwrap(), "stopped", "{messages:?}");
    assert_eq!(process.printed(), "", "the log is on stderr");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_has_an_end() {
    let setup = holding(600_000).server("drain_timeout_ms = 200");
    let process = started(setup).await;
    policy_serves(&process).await;
    let asked = taken_in(&process, 3).await;
    process.terminate();
    for answer in asked {
        let end = answer.await.unwrap();
        assert!(end.is_err(), "cut, not answered: {end:?}");
    }
    let exit = tokio::task::spawn_blocking(move || {
        let mut process = process;
        let exit = process.ended();
        (exit, process)
    });
    let (exit, process) = exit.await.unwrap();
    assert_eq!(exit.code(), Some(0), "{:?}", process.messages());
    assert_eq!(process.lines("drained")[0]["cut_connections"], 3);
    assert!(
        !process
            .messages()
            .contains(&"requests were left at the end".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_process_at_once() {
    let setup = holding(600_000).server("drain_timeout_ms = 600000");
    let mut process = started(setup).await;
    policy_serves(&process).await;
    let _held = taken_in(&process, 1).await;
    process.terminate();
    process.wait_for_line("draining");
    let began = Instant::now();
    process.terminate();
    assert_eq!(process.ended().code(), Some(128 + 15));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binary_swaps_its_policy_and_logs_how_long_it_took() {
    let process = started(Setup::new("binary").policy(policy("fcfs"))).await;
    policy_serves(&process).await;
    let load = Load::start(process.http, 2);
    load.answered_by("fcfs@", 10).await;
    let active = status(process.admin).await.pools[0].policies.file.clone();
    std::fs::write(active, policy("sneakpeek")).unwrap();
    load.answered_by("sneakpeek@", 10).await;
    load.stop().await;
    // The driver answers by the new policy before the log tells.
    let give_up = Instant::now() + PATIENCE;
    while process.lines("policy switched").len() < 2 {
        assert!(Instant::now() < give_up, "{:?}", process.messages());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let swaps = process.lines("policy switched");
    assert_eq!(swaps.len(), 2, "{swaps:?}");
    assert!(
        swaps[1]["policy"]
            .as_str()
            .unwrap()
            .starts_with("sneakpeek@")
    );
    for time in ["compile_us", "validate_us", "switch_us"] {
        assert!(swaps[1][time].is_u64(), "{time}: {}", swaps[1]);
    }
    // From an answer to its decision, with the request as the policy saw it.
    let mut client = Client::connect(process.http).await;
    let wishes = json!({"timeout": 60_000_000, "priority": 3, "min_accuracy": 0.25});
    let answer = client.infer(beats(5, 1, &wishes)).await.json();
    let window = answer["parameters"]["window"].as_u64().unwrap();
    let path = format!("/admin/v1/windows/{window}");
    let decision = get(process.admin, &path).await.json();
    assert_eq!(decision["by"], answer["parameters"]["policy"]);
    // Why: a code and numbers for everything that was decided.
    let listed = |name: &str| decision["plan"][name].as_array().unwrap();
    let reasons = listed("dispatches").iter().chain(listed("reasons"));
    let reasons: Vec<_> = reasons.map(|said| &said["reason"]).collect();
    assert!(!reasons.is_empty(), "{decision}");
    for reason in reasons {
        assert!(reason["code"].is_string(), "{reason}");
        assert!(
            reason["numbers"]["groups"]
                .as_f64()
                .is_some_and(|n| n >= 1.0),
            "{reason}"
        );
    }
    let seen = decision["requests"].as_array().unwrap();
    let ours = seen.iter().find(|seen| seen["priority"] == 3).unwrap();
    assert_eq!(ours["min_accuracy"], 0.25);
    let time = |name: &str| ours[name].as_u64().unwrap();
    assert_eq!(time("deadline_us") - time("arrival_us"), 60_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_from_pypi_are_content() {
    let setup = Setup::new("pypi")
        .policy(policy("sneakpeek"))
        .server("model_control = true\ngrpc = \"127.0.0.1:0\"");
    let process = started(setup).await;
    policy_serves(&process).await;
    let grpc = process.grpc.unwrap();
    crate::pypi::drive(process.http, grpc, APP).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_one_that_the_page_of_the_api_has() {
    let setup = Setup::new("api")
        .policy(policy("sneakpeek"))
        .server("model_control = true")
        // Deadlines of any length are served late: 504 is documented, and says nothing here.
        .app("late = \"serve\"");
    let process = started(setup).await;
    policy_serves(&process).await;
    crate::pypi::check_api(process.http).await;
    assert_eq!(status(process.admin).await.pools[0].driver.imbalance, 0);
}

/// The error of `serve` for a refused configuration.
fn refused(text: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    std::fs::write(&file, text).unwrap();
    let output = serve_file(&file);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(output.stdout, b"");
    said.replace(&*folder.path().to_string_lossy(), "DIR")
}

/// The same, but no profile has been measured yet, and measuring takes ten minutes.
fn unmeasured(toml: &str, folder: &Path) -> String {
    let profiles = fixture().profiles.to_string_lossy();
    let changed = toml.replace(&*profiles, &folder.join("none").to_string_lossy());
    changed.replace("measure_s = 1\n", "measure_s = 600\n")
}

#[test]
fn sigterm_ends_a_start_that_measures() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    let toml = Setup::new("unmeasured").toml(fixture(), folder.path());
    std::fs::write(&file, unmeasured(&toml, folder.path())).unwrap();
    let mut process = Process::start(&file, TempDir::new().unwrap());
    process.wait_for_line("no profile of this machine yet: measuring one");
    process.terminate();
    let status = process.ended();
    assert_eq!(status.code(), Some(0), "{:?}", process.messages());
    let messages = process.messages();
    assert_eq!(
        messages.last().map(String::as_str),
        Some("stopped"),
        "{messages:?}"
    );
    assert!(
        !messages.iter().any(|message| message == "listening"),
        "{messages:?}"
    );
    assert!(
        !folder.path().join("none").exists(),
        "half a profile is none"
    );
}

#[test]
fn an_unusable_configuration_ends_with_exit_code_2() {
    let folder = TempDir::new().unwrap();
    let good = Setup::new("bad").toml(fixture(), folder.path());

    let said = refused(&good.replace("\npolicy = ", "\npolcy = "));
    assert!(said.starts_with("error: DIR/switchyard.toml:"), "{said}");
    assert!(said.contains(": pool[0].polcy: unknown field"), "{said}");
    assert!(said.contains("did you mean `policy`?"), "{said}");

    let zoo = fixture().zoo.to_string_lossy();
    let said = refused(&good.replace(&*zoo, "/nowhere/zoo"));
    assert!(
        said.contains("/nowhere/zoo/heart") && said.contains("has the folder heart"),
        "{said}"
    );

    let said = refused(&good.replace(
        "name = \"heart\"\n",
        "name = \"heart\"\nvariants = [\"cn\"]\n",
    ));
    assert!(said.contains("`cn`") || said.contains("cn"), "{said}");

    let said = refused(&good.replace(&*folder.path().to_string_lossy(), "/nowhere/policies"));
    assert!(
        said.contains("pool bad: cannot watch /nowhere/policies: "),
        "{said}"
    );

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for field in ["http", "admin"] {
        let free = format!("{field} = \"127.0.0.1:0\"");
        let said = refused(&good.replace(&free, &format!("{field} = \"{address}\"")));
        let words = format!("error: server.{field}: {address}: Address already in use");
        assert!(said.contains(&words), "{said}");
        // Also where measuring would take ten minutes: it is said before.
        let unmeasured = unmeasured(&good, folder.path());
        let said = refused(&unmeasured.replace(&free, &format!("{field} = \"{address}\"")));
        assert!(
            said.contains(&words) && !said.contains("measuring"),
            "{said}"
        );
    }

    let output = serve_file(Path::new("/nowhere/switchyard.toml"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.starts_with("error: /nowhere/switchyard.toml: cannot be read: "),
        "{said}"
    );
}

#[test]
fn a_start_without_a_policy_that_serves_is_refused_unless_asked_for() {
    let setup = |components: &[(&str, Vec<u8>)]| {
        let folder = TempDir::new().unwrap();
        let text = Setup::new("strict").toml(fixture(), folder.path());
        for (name, component) in components {
            std::fs::write(folder.path().join(name), component).unwrap();
        }
        std::fs::write(folder.path().join("switchyard.toml"), &text).unwrap();
        (folder, text)
    };
    let said = |folder: &TempDir| {
        let output = serve_file(&folder.path().join("switchyard.toml"));
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let (folder, _) = setup(&[("activate.wasm", policy("fcfs"))]);
    let missing = said(&folder);
    assert!(missing.contains("error: pool strict: policy "), "{missing}");
    assert!(missing.contains("did you mean `activate`?"), "{missing}");
    assert!(
        missing.contains("`required = false` in [policies]"),
        "{missing}"
    );

    let (folder, text) = setup(&[("active.wasm", b"no component".to_vec())]);
    let refused = said(&folder);
    assert!(refused.contains("not a WebAssembly file"), "{refused}");
    let file = folder.path().join("switchyard.toml");
    std::fs::write(
        &file,
        text.replace("[policies]", "[policies]\nrequired = false"),
    )
    .unwrap();
    let mut process = Process::start(&file, folder);
    process.wait_for_line("listening");
    process.terminate();
    assert_eq!(process.ended().code(), Some(0));
}

/// Each log line would wait for the reader: none of them may stop the start, an answer or the end.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_of_stderr_stops_neither_the_server_nor_its_end() {
    let setup = Setup::new("stalled").policy(policy("fcfs"));
    let http = crate::free_address::free_address();
    let start = move || {
        let folder = TempDir::new().unwrap();
        setup.furnish(folder.path());
        let free = "http = \"127.0.0.1:0\"";
        let text = setup.toml(fixture(), folder.path());
        let text = text.replace(free, &format!("http = \"{http}\""));
        let file = folder.path().join("switchyard.toml");
        std::fs::write(&file, text).unwrap();
        Process::start_unread(&file, folder, http)
    };
    let mut process = tokio::task::spawn_blocking(start).await.unwrap();
    let give_up = Instant::now() + PATIENCE;
    while TcpStream::connect(http).await.is_err() {
        assert!(Instant::now() < give_up, "it does not listen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut client = Client::connect(http).await;
    let answer = client.infer(beat(0)).await;
    assert!(!answer.policy().is_empty(), "{answer:?}");
    process.terminate();
    let ended = tokio::task::spawn_blocking(move || process.ended());
    assert_eq!(ended.await.unwrap().code(), Some(0));
}
