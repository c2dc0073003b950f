//! A list of hashes says which components may serve.

use std::fs;
use std::process::Command;

use super::binary::{Process, serve_file};
use super::ctl::{TOKEN, ctl, operators, refused, said};
use super::fixture::policy;

/// The line of `sha256sum` for a component.
fn line(component: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("some.wasm"), component).unwrap();
    let mut command = Command::new("sha256sum");
    let output = command.arg("some.wasm").current_dir(&folder).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn only_listed_components_serve_at_the_start_and_after_a_change_a_swap_or_a_rollback() {
    let (folder, setup) = operators();
    let list = folder.path().join("allowed");
    let (fcfs, stability) = (policy("fcfs"), policy("stability"));
    fs::write(&list, line(&fcfs)).unwrap();
    let mut server = Process::serve(&setup.policies(&format!("allow = \"{}\"", list.display())));
    server.wait_for_line("policy switched");

    let next = server.policy().with_file_name("next.wasm");
    fs::write(&next, &stability).unwrap();
    let hash = line(&stability)[..64].to_owned();
    let unlisted = refused(&ctl(&server, TOKEN, &["swap", "next"]));
    let expected = format!(
        "allow: its SHA-256 {hash} is not in {0} (policies.allow); `sha256sum next.wasm >> {0}`",
        list.display()
    );
    assert!(unlisted.contains(&expected), "{unlisted}");
    // The same component as a changed file.
    let part = server.policy().with_extension("part");
    fs::write(&part, &stability).unwrap();
    fs::rename(&part, server.policy()).unwrap();
    let refusal = server.wait_for_line("policy refused: the old one serves on");
    assert!(refusal.to_string().contains(&hash), "{refusal}");

    // Read anew: both may serve, then the first one no more.
    fs::write(&list, line(&fcfs) + &line(&stability)).unwrap();
    let swapped = said(&ctl(&server, TOKEN, &["swap", "next"]));
    assert!(swapped.contains("swapped: stability@"), "{swapped}");
    fs::write(&list, line(&stability)).unwrap();
    let back = refused(&ctl(&server, TOKEN, &["rollback"]));
    assert!(back.contains(&line(&fcfs)[..64]), "{back}");
    let status = said(&ctl(&server, TOKEN, &["status"]));
    assert!(status.contains("pool main: stability@"), "{status}");

    server.terminate();
    assert!(server.ended().success());
    fs::write(&list, line(&fcfs)).unwrap();
    let start = serve_file(&server.policy().with_file_name("switchyard.toml"));
    assert!(!start.status.success(), "{start:?}");
    let start = String::from_utf8_lossy(&start.stderr).into_owned();
    assert!(start.contains(&hash), "{start}");
}
