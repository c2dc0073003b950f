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
use super::test_bed::Setup;

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
fn an_order_without_the_right_token_or_for_another_version_changes_nothing() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    let wrong = refused(&ctl(&server, "0123456789abcdef", &["swap", "next"]));
    assert!(wrong.contains("no operator has this token"), "{wrong}");
    let unknown = refused(&ctl(&server, TOKEN, &["swap", "nxet"]));
    assert!(unknown.contains("nxet.wasm"), "{unknown}");
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
fn a_server_without_operators_only_answers() {
    let server = Process::serve(&Setup::new("main").policy(policy("fcfs")));
    server.wait_for_line("policy switched");
    let refused = refused(&ctl(&server, TOKEN, &["rollback"]));
    assert!(refused.contains("this port only reads"), "{refused}");
    let window = said(&ctl(&server, TOKEN, &["models"]));
    assert!(window.contains("heart/"), "{window}");
}
