//! Artifacts: read from the policy's own folder, in `configure` only.

use std::fs;
use std::path::PathBuf;

use switchyard_core::policy::FaultKind;
use switchyard_policy::Limits;
use tempfile::TempDir;

use crate::support::{ask, guest, load, loader, patient, window};

/// A policy `asks` that reads the given artifact, with an artifact `table.bin` in its folder.
fn asks_for(artifact: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("asks.wasm");
    fs::copy(guest("asks-at-wrong-time"), &file).unwrap();
    fs::write(
        dir.path().join("asks.toml"),
        format!("artifact = {artifact:?}\n"),
    )
    .unwrap();
    fs::create_dir(dir.path().join("asks")).unwrap();
    fs::write(dir.path().join("asks/table.bin"), [5; 100]).unwrap();
    fs::write(dir.path().join("secret"), [6; 100]).unwrap();
    (dir, file)
}

fn refusal(artifact: &str, limits: Limits) -> String {
    let (_dir, file) = asks_for(artifact);
    let error = load(&loader(limits), &file).map(|_| ()).unwrap_err();
    error.to_string()
}

#[test]
fn artifacts_are_read_in_configure_and_forbidden_in_schedule() {
    let (_dir, file) = asks_for("table.bin");
    let mut policy = load(&loader(patient()), &file).unwrap().policy;
    assert_eq!(
        policy.save().unwrap(),
        b"table.bin 100",
        "the whole artifact"
    );
    let fault = ask(policy.as_mut(), &window(1, 1)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Failed);
    assert!(
        fault.reason.contains("artifact table.bin: forbidden"),
        "{fault}"
    );
}

#[test]
fn artifacts_outside_the_folder_are_forbidden() {
    let reason = refusal("../secret", patient());
    assert!(reason.contains("artifact ../secret: forbidden"), "{reason}");
    let reason = refusal("/etc/passwd", patient());
    assert!(reason.contains("forbidden"), "{reason}");
}

#[test]
fn missing_and_too_large_artifacts_are_refused_with_the_reason() {
    let reason = refusal("none.bin", patient());
    assert!(reason.contains("artifact none.bin: not found"), "{reason}");
    let limits = Limits {
        artifact_bytes: 99,
        ..patient()
    };
    let reason = refusal("table.bin", limits);
    assert!(reason.contains("too large, 100 bytes"), "{reason}");
}
