//! Files that the loader refuses, its reasons, and the code that it keeps.

use std::fs;
use std::path::PathBuf;

use switchyard_core::policy::FaultKind;
use switchyard_policy::loader::{LoadCause, LoadPhase, PolicyTrial};
use switchyard_policy::{LoadError, Loaded, Loader, LoaderOptions};
use tempfile::TempDir;

use crate::support::{
    ask, catalog, engine, guest, load, load_tried, loader, made_up, made_up_module, patient, window,
};

const SCHEDULING: &str = "interface scheduling { describe: func() -> string; }";

fn refused(result: Result<Loaded, LoadError>) -> LoadError {
    match result {
        Ok(loaded) => panic!("{} was loaded", loaded.version.label),
        Err(error) => error,
    }
}

/// A folder with one policy file in it.
fn folder(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("candidate.wasm");
    fs::write(&file, bytes).unwrap();
    (dir, file)
}

fn refusal_of(bytes: &[u8]) -> LoadError {
    let (_dir, file) = folder(bytes);
    let error = refused(load(&loader(patient()), &file));
    assert!(error.to_string().contains("candidate.wasm: "), "{error}");
    error
}

#[test]
fn files_that_are_no_components_are_refused_with_the_reason() {
    let missing = refused(load(&loader(patient()), "/nowhere/none.wasm".as_ref()));
    assert_eq!(missing.phase, LoadPhase::Read);
    assert!(
        missing.to_string().contains("/nowhere/none.wasm: read: "),
        "{missing}"
    );

    let text = refusal_of(b"#!/bin/sh\necho no\n");
    assert!(matches!(text.cause, LoadCause::NotWasm), "{text}");

    let module = made_up_module("package a:b; world w { export f: func(); }");
    let module = refusal_of(&module);
    assert!(matches!(module.cause, LoadCause::CoreModule), "{module}");

    let whole = fs::read(guest("good")).unwrap();
    let half = refusal_of(&whole[..whole.len() / 2]);
    assert!(matches!(half.cause, LoadCause::Truncated { .. }), "{half}");

    let mut broken = whole;
    broken.extend([0x7f, 1, 0]);
    let broken = refusal_of(&broken);
    assert_eq!(broken.phase, LoadPhase::Compile);
    assert!(matches!(broken.cause, LoadCause::Invalid(_)), "{broken}");
}

#[test]
fn a_component_of_another_world_is_refused_with_the_missing_export() {
    let error = refusal_of(&made_up(
        "package other:thing@2.0.0; interface run { go: func(); } world w { export run; }",
    ));
    let reason = error.to_string();
    assert_eq!(error.phase, LoadPhase::Contract);
    assert!(
        reason.contains("does not export `switchyard:policy/scheduling`"),
        "{reason}"
    );
    assert!(reason.contains("`other:thing/run@2.0.0`"), "{reason}");
}

#[test]
fn another_contract_version_is_refused_with_both_versions() {
    for (version, reason) in [("0.2.0", "newer minor"), ("1.0.0", "another major")] {
        let error = refusal_of(&made_up(&format!(
            "package switchyard:policy@{version}; {SCHEDULING} world w {{ export scheduling; }}"
        )));
        let message = error.to_string();
        assert!(
            message.contains(version) && message.contains("speaks 0.1"),
            "{message}"
        );
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn imports_beyond_the_host_interface_are_refused_by_name() {
    let error = refusal_of(&made_up(&format!(
        "package switchyard:policy@0.1.0; {SCHEDULING} interface clock {{ now: func() -> u64; }} \
         world w {{ import clock; export scheduling; }}"
    )));
    assert!(
        error
            .to_string()
            .contains("imports `switchyard:policy/clock@0.1.0`"),
        "{error}"
    );
}

#[test]
fn right_names_with_wrong_types_are_refused() {
    let error = refusal_of(&made_up(&format!(
        "package switchyard:policy@0.1.0; {SCHEDULING} world w {{ export scheduling; }}"
    )));
    assert!(
        error.to_string().contains("does not fit contract 0.1"),
        "{error}"
    );
}

#[test]
fn settings_reach_the_policy_and_errors_in_them_name_the_line() {
    let (dir, file) = folder(&fs::read(guest("good")).unwrap());
    let toml = dir.path().join("candidate.toml");
    fs::write(&toml, "\nrefuse = \n").unwrap();
    let error = refused(load(&loader(patient()), &file));
    assert_eq!(error.phase, LoadPhase::Settings);
    assert!(error.to_string().contains("candidate.toml:2: "), "{error}");

    fs::write(&toml, "refuse = true\n").unwrap();
    let error = refused(load(&loader(patient()), &file));
    assert_eq!(error.phase, LoadPhase::Configure);
    assert!(error.to_string().contains("settings.refuse"), "{error}");

    fs::write(&toml, "other = true\n").unwrap();
    let loaded = load(&loader(patient()), &file).unwrap();
    assert_eq!(loaded.version.settings, r#"{"other":true}"#);
}

#[test]
fn a_policy_is_tried_on_the_windows_and_starts_fresh() {
    let windows: Vec<_> = (1..=5).map(|id| window(id, 4)).collect();
    let loaded = load_tried(&loader(patient()), &guest("good"), &windows);
    let mut loaded = loaded.unwrap();
    assert_eq!(loaded.report.windows, 5);
    // `good` counts its windows. Those of the trial do not count.
    assert_eq!(loaded.policy.save().unwrap(), 0u64.to_le_bytes());
}

#[test]
fn a_trial_refuses_faults_and_plans_that_cannot_be_applied() {
    let mut windows = [window(41, 2)];
    let error = load_tried(&loader(patient()), &guest("traps"), &windows);
    let error = refused(error);
    assert_eq!(error.phase, LoadPhase::Validate);
    assert!(
        matches!(&error.cause, LoadCause::Window { window: 41, fault } if fault.kind == FaultKind::Trap),
        "{error}"
    );

    windows[0].workers.up[0] = 0;
    let error = load_tried(&loader(patient()), &guest("good"), &windows);
    let error = refused(error).to_string();
    let reason = "its plan is refused: dispatches[0].worker: one is away";
    assert!(
        error.contains(&format!("validate: recorded window 41: {reason}")),
        "{error}"
    );
}

#[test]
fn compiled_code_is_found_again_and_damaged_code_is_not_used() {
    let cache = tempfile::tempdir().unwrap();
    let loader = || {
        let options = LoaderOptions {
            cache_dir: Some(cache.path().join("code")),
            limits: patient(),
            seed: 0,
        };
        Loader::new(engine(), options).unwrap()
    };
    let good = guest("good");
    assert!(!load(&loader(), &good).unwrap().report.cached);
    let mut second = load(&loader(), &good).unwrap();
    assert!(second.report.cached, "another loader on the same directory");
    assert_eq!(
        ask(second.policy.as_mut(), &window(1, 2))
            .unwrap()
            .members
            .len(),
        2
    );
    drop(second);

    let entries: Vec<_> = fs::read_dir(cache.path().join("code")).unwrap().collect();
    assert_eq!(entries.len(), 1);
    fs::write(entries[0].as_ref().unwrap().path(), b"not code").unwrap();
    let third = load(&loader(), &good).unwrap();
    assert!(!third.report.cached, "compiled again");
    assert!(load(&loader(), &good).unwrap().report.cached, "kept again");
}

#[test]
fn a_version_that_served_can_be_loaded_again_without_its_file() {
    let (_dir, file) = folder(&fs::read(guest("good")).unwrap());
    let loader = loader(patient());
    let first = load(&loader, &file).unwrap();
    assert_eq!(first.version.label, "good@1.0.0");
    fs::write(&file, fs::read(guest("errs")).unwrap()).unwrap();
    let second = load(&loader, &file).unwrap();
    assert_ne!(first.version.hash, second.version.hash);

    let catalog = catalog();
    let trial = PolicyTrial {
        catalog: &catalog,
        windows: &[window(1, 1)],
    };
    let back = loader.load_version(&first.version, trial).unwrap();
    assert_eq!(back.version, first.version);
}

#[test]
fn the_same_file_with_other_settings_is_another_version_of_the_same_code() {
    let (dir, file) = folder(&fs::read(guest("good")).unwrap());
    let first = load(&loader(patient()), &file).unwrap().version;
    fs::write(dir.path().join("candidate.toml"), "x = 1\n").unwrap();
    let second = load(&loader(patient()), &file).unwrap().version;
    assert_eq!(first.code, second.code);
    assert_ne!(first.hash, second.hash);
}
