//! `switchyard ctl` against the real server: orders need a token, hold for the version that was seen, and
//! outlive a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use super::binary::{Process, switchyard};
use super::fixture::policy;
use super::load::Load;
use super::test_bed::Setup;
use crate::text_zoo::{Answers, write_app};

pub(super) const TOKEN: &str = "5f0c2b9a7e1d4c38";

/// A folder with the file of one operator.
pub(super) fn operators() -> (TempDir, Setup) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("operators");
    fs::write(&file, format!("anna {TOKEN}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let lines = format!("operators = \"{}\"", file.display());
    let setup = Setup::new("main").policy(policy("fcfs")).server(&lines);
    (folder, setup)
}

pub(super) fn ctl(server: &Process, token: &str, arguments: &[&str]) -> Output {
    let mut command = switchyard();
    let admin = server.admin.to_string();
    command.args(["ctl", "--admin", &admin]).args(arguments);
    command.env("SWITCHYARD_TOKEN", token).output().unwrap()
}

pub(super) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) fn put(policy_file: &Path, name: &str, component: &[u8], settings: Option<&str>) {
    let file = policy_file.with_file_name(format!("{name}.wasm"));
    if let Some(settings) = settings {
        fs::write(file.with_extension("toml"), settings).unwrap();
    }
    fs::write(file, component).unwrap();
}

#[test]
fn an_operator_swaps_and_rolls_back_and_both_outlive_a_restart() {
    let (_folder, setup) = operators();
    let mut server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    let status = said(&ctl(&server, TOKEN, &["status"]));
    assert!(status.contains("pool main: fcfs@"), "{status}");

    let live = server.policy();
    let settings = "exits = [\"final\"]\n";
    put(&live, "next", &policy("stability"), Some(settings));
    let swapped = said(&ctl(&server, TOKEN, &["swap", "next"]));
    assert!(swapped.contains("swapped: stability@"), "{swapped}");
    assert!(swapped.contains("serves instead of fcfs@"), "{swapped}");
    assert_eq!(fs::read(&live).unwrap(), policy("stability"));
    let own = live.with_extension("toml");
    assert_eq!(fs::read_to_string(&own).unwrap(), settings);

    server.terminate();
    assert!(server.ended().success());
    let server = server.again();
    let status = said(&ctl(&server, TOKEN, &["status"]));
    assert!(status.contains("pool main: stability@"), "{status}");

    // The version of before the restart, without settings.
    let back = said(&ctl(&server, TOKEN, &["rollback"]));
    assert!(back.contains("rolled back: fcfs@"), "{back}");
    assert_eq!(fs::read(&live).unwrap(), policy("fcfs"));
    assert!(!own.exists());
    let events = said(&ctl(&server, TOKEN, &["events"]));
    let line = events
        .lines()
        .find(|line| line.contains("rolled back"))
        .unwrap();
    assert!(line.contains("anna"), "{events}");
    let audit = server.wait_for_line("ordered");
    assert_eq!(
        (&audit["by"], &audit["pool"]),
        (&Value::from("anna"), &Value::from("main"))
    );
    // The files that the order wrote are no second swap.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(said(&ctl(&server, TOKEN, &["events"])), events);
}

#[test]
fn an_order_names_a_policy_of_the_program_and_the_name_of_the_pools_file_stays_that_policys() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    // The folder of policies has no such file.
    let swapped = said(&ctl(&server, TOKEN, &["swap", "stability"]));
    assert!(swapped.contains("swapped: stability@"), "{swapped}");
    assert_eq!(fs::read(server.policy()).unwrap(), policy("stability"));
    let again = said(&ctl(&server, TOKEN, &["swap", "stability"]));
    assert!(again.contains("serves, as before"), "{again}");
    let near = refused(&ctl(&server, TOKEN, &["swap", "sneekpeek"]));
    assert!(near.contains("did you mean `sneakpeek`?"), "{near}");

    // The file of the pool's policy has the one that serves. Its name is that of no other policy.
    let file = server.policy();
    let slot = file.file_stem().unwrap().to_str().unwrap();
    let same = said(&ctl(&server, TOKEN, &["swap", slot]));
    let note = format!("{slot}.wasm has stability: orders write the version that serves");
    assert!(same.contains(&note), "{same}");
}

#[test]
fn an_order_for_a_policy_that_two_pools_follow_is_refused() {
    let (folder, setup) = operators();
    let zoo = folder.path().join("moods");
    write_app(&zoo, "mood", Answers::Classes, &["small"]);
    let second = format!(
        "[[app]]\nname = \"mood\"\nzoo = \"{}\"\n[[worker]]\nname = \"c\"\n[[pool]]\nname = \"second\"\n\
         apps = [\"mood\"]\nworkers = [\"c\"]\npolicy = \"active\"\n",
        zoo.display()
    );
    let server = Process::serve(&setup.lines(&second));
    server.wait_for_line("policy switched");
    let both = refused(&ctl(
        &server,
        TOKEN,
        &["swap", "stability", "--pool", "main"],
    ));
    assert!(both.contains("pool `second` follows"), "{both}");
    assert_eq!(fs::read(server.policy()).unwrap(), policy("fcfs"));
    let one = said(&ctl(
        &server,
        TOKEN,
        &["status", "--json", "--pool", "second"],
    ));
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["pools"].as_array().unwrap().len(), 1, "{one}");
    let none = ctl(&server, TOKEN, &["status", "--json", "--pool", "third"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}

#[test]
fn an_order_without_the_right_token_or_for_another_version_changes_nothing() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    let wrong = refused(&ctl(&server, "0123456789abcdef", &["swap", "next"]));
    assert!(wrong.contains("no operator has this token"), "{wrong}");
    let unknown = refused(&ctl(&server, TOKEN, &["swap", "nxet"]));
    assert!(unknown.contains("nxet.wasm"), "{unknown}");
    assert!(unknown.contains("did you mean `next`?"), "{unknown}");
    let past = refused(&ctl(&server, TOKEN, &["explain", "99999"]));
    assert!(
        past.contains("window 99999 is not kept: pool `main` has had"),
        "{past}"
    );
    let outside = refused(&ctl(&server, TOKEN, &["swap", "../next"]));
    assert!(
        outside.contains("name of a component in the folder"),
        "{outside}"
    );
    let none = refused(&ctl(&server, TOKEN, &["promote"]));
    assert!(
        none.contains("the pool has neither a canary nor a shadow"),
        "{none}"
    );
    let version = refused(&ctl(&server, TOKEN, &["rollback", "xyz"]));
    assert!(
        version.contains("no single hash begins with `xyz`"),
        "{version}"
    );

    let order = |expect: &str| {
        let body = format!("{{\"policy\": \"next\", \"expect\": \"{expect}\"}}");
        let command = format!(
            "curl -s -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {TOKEN}' \
             -H 'Content-Type: application/json' -d '{body}' \
             http://{}/admin/v1/pools/main/policy/swap",
            server.admin
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(order("ffffffffffff"), "409");
    let status = said(&ctl(&server, TOKEN, &["status"]));
    assert!(status.contains("pool main: fcfs@"), "{status}");
    let history = said(&ctl(&server, TOKEN, &["history", "--json"]));
    let history: Value = serde_json::from_str(&history).unwrap();
    let active = history["pools"][0]["policies"]["active"]["hash"]
        .as_str()
        .unwrap();
    assert_eq!(order(active), "200");
    assert_eq!(
        order(active),
        "200",
        "an order that is sent twice is carried out once"
    );
    let events = said(&ctl(&server, TOKEN, &["events"]));
    assert_eq!(events.matches("swapped: ").count(), 2, "{events}");
}

#[test]
fn an_operator_sees_why_a_request_ran_as_it_did_and_the_other_ways() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    let body = super::fixture::beat(0);
    let url = format!("http://{}/v2/models/heart/infer", server.http);
    let output = std::process::Command::new("curl")
        .args(["-s", "-d", &body, &url])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let window = answer["parameters"]["window"].to_string();
    let chosen = answer["model_version"].as_str().unwrap();

    let explained = said(&ctl(&server, TOKEN, &["explain", &window]));
    assert!(explained.contains("fcfs@"), "{explained}");
    let batch = explained
        .lines()
        .find(|line| line.contains("batch on"))
        .unwrap();
    assert!(
        batch.contains(chosen) && batch.contains("utility"),
        "{batch}"
    );
    let others = explained.lines().filter(|line| line.contains("instead "));
    let others: Vec<&str> = others.collect();
    assert!(!others.is_empty(), "{explained}");
    assert!(others.iter().all(|line| line.contains("expected in")));

    let decision = said(&ctl(&server, TOKEN, &["explain", &window, "--json"]));
    let decision: Value = serde_json::from_str(&decision).unwrap();
    let request = decision["plan"]["dispatches"][0]["requests"][0].to_string();
    let about = said(&ctl(&server, TOKEN, &["explain", "--request", &request]));
    assert!(about.contains(&format!("window {window} ")), "{about}");
    let unknown = refused(&ctl(&server, TOKEN, &["explain", "--request", "4000000"]));
    assert!(
        unknown.contains("a window about request 4000000 is not kept"),
        "{unknown}"
    );
}

/// Twenty swaps, a promotion and a rollback, ordered while clients never pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_under_load_lose_no_request() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "one", &policy("fcfs"), None);
    put(&server.policy(), "two", &policy("stability"), None);
    let load = Load::start(server.http, 4);
    load.answered_by("fcfs@", 20).await;
    let began = std::time::Instant::now();
    for order in 0..20 {
        let (next, label) = [("two", "stability@"), ("one", "fcfs@")][order % 2];
        said(&ctl(&server, TOKEN, &["swap", next]));
        load.answered_by(label, 5).await;
    }
    let canary = ["canary", "two", "--share", "50%", "--promote-if", "never"];
    said(&ctl(&server, TOKEN, &canary));
    said(&ctl(&server, TOKEN, &["promote"]));
    load.answered_by("stability@", 5).await;
    said(&ctl(&server, TOKEN, &["rollback"]));
    load.answered_by("fcfs@", 5).await;
    let seconds = began.elapsed().as_secs_f64();
    // Fails if a request had no answer, or two.
    let answered = load.stop().await.sent;
    println!("{:.0} requests per second", answered as f64 / seconds);
    let status = said(&ctl(&server, TOKEN, &["status", "--json"]));
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["pools"][0]["imbalance"], 0);
}

#[test]
fn a_server_without_operators_only_answers() {
    let server = Process::serve(&Setup::new("main").policy(policy("fcfs")));
    server.wait_for_line("policy switched");
    let refused = refused(&ctl(&server, TOKEN, &["rollback"]));
    assert!(refused.contains("this port only reads"), "{refused}");
    let window = said(&ctl(&server, TOKEN, &["models"]));
    assert!(window.contains("heart/"), "{window}");
}

#[test]
fn an_admin_port_with_tls_is_asked_by_its_authority_and_name() {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/tls");
    let file = |name: &str| tls.join(name).display().to_string();
    let lines = format!(
        "admin_tls = {{ certificate = \"{}\", key = \"{}\" }}",
        file("server.pem"),
        file("server.key")
    );
    let setup = Setup::new("main").policy(policy("fcfs")).server(&lines);
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    let asked = |admin: &str, ca: &[&str]| {
        let mut command = switchyard();
        command.args(["ctl", "status", "--admin", admin]).args(ca);
        command.env_remove("SWITCHYARD_TOKEN").output().unwrap()
    };
    let secure = format!("https://localhost:{}", server.admin.port());
    let status = said(&asked(&secure, &["--ca", &file("ca.pem")]));
    assert!(status.contains("pool main: fcfs@"), "{status}");

    let foreign = refused(&asked(&secure, &["--ca", &file("foreign-ca.pem")]));
    assert!(foreign.contains("certificate is not accepted"), "{foreign}");
    let plain = refused(&asked(&server.admin.to_string(), &[]));
    assert!(plain.contains("ask for https://"), "{plain}");
    let no_tls = format!("https://localhost:{}", server.http.port());
    let no_tls = refused(&asked(&no_tls, &["--ca", &file("ca.pem")]));
    assert!(no_tls.contains("the port serves no TLS"), "{no_tls}");
}
