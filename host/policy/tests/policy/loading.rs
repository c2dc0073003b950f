//! Files that the loader refuses, its reasons, and the code that it keeps.

use std::fs;
use std::path::PathBuf;

use switchyard_core::policy::FaultKind;
use switchyard_policy::loader::{LoadCause, LoadPhase, PolicyTrial};
use switchyard_policy::{
    EngineOptions, Limits, LoadError, Loaded, Loader, LoaderOptions, PolicyEngine,
};
use tempfile::TempDir;

use crate::support::{
    ask, catalog, engine, fifo, guest, load, load_tried, loader, made_up, made_up_module, patient,
    window, with_instances, with_memories,
};

const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";

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
    for (version, reason) in [("0.3.0", "newer minor"), ("1.0.0", "another major")] {
        let error = refusal_of(&made_up(&format!(
            "package switchyard:policy@{version}; {SCHEDULING} world w {{ export scheduling; }}"
        )));
        let message = error.to_string();
        assert!(
            message.contains(version) && message.contains("speaks 0.1 and 0.2"),
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
        Loader::new(engine(), options)
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

#[test]
fn all_memories_of_a_component_share_one_limit() {
    let good = fs::read(guest("good")).unwrap();
    let limits = Limits {
        memory_bytes: 64 << 20,
        ..patient()
    };
    let try_it = |instances, mib_each| {
        let (_dir, file) = folder(&with_memories(&good, instances, mib_each));
        load(&loader(limits.clone()), &file)
    };
    let mut two = try_it(2, 20).unwrap();
    assert!(two.usage.memory_peak_bytes() > 40 << 20);
    ask(two.policy.as_mut(), &window(1, 2)).unwrap();

    let error = refused(try_it(10, 40)).to_string();
    assert!(error.contains("memory: start asked for"), "{error}");
    assert!(error.contains("the limit is 67108864"), "{error}");
}

#[test]
fn the_numbers_of_memories_and_instances_are_limited() {
    let good = fs::read(guest("good")).unwrap();
    let error = refusal_of(&with_memories(&good, 40, 0)).to_string();
    assert!(error.contains("memory count too high"), "{error}");
    let error = refusal_of(&with_instances(&good, EMPTY_MODULE, 300)).to_string();
    assert!(error.contains("instance count too high"), "{error}");
    // One table without elements.
    let table = [EMPTY_MODULE, &[4, 4, 1, 0x70, 0, 0]].concat();
    let error = refusal_of(&with_instances(&good, &table, 70)).to_string();
    assert!(error.contains("table count too high"), "{error}");
}

#[test]
fn a_component_past_the_largest_size_is_not_read() {
    let (_dir, file) = folder(b"");
    let two_gib = 2 << 30;
    fs::File::create(&file).unwrap().set_len(two_gib).unwrap();
    let error = refused(load(&loader(patient()), &file));
    assert_eq!(error.phase, LoadPhase::Read);
    let reason = "the file has 2147483648 bytes, must be at most 67108864";
    assert!(error.to_string().ends_with(reason), "{error}");
    assert!(!error.may_pass());
}

#[test]
fn a_fifo_under_the_name_of_a_policy_or_its_settings_is_refused() {
    let (dir, file) = folder(&fs::read(guest("good")).unwrap());
    fifo(&dir.path().join("candidate.toml"));
    let error = refused(load(&loader(patient()), &file));
    assert_eq!(error.phase, LoadPhase::Settings);
    let reason = "it is a FIFO, must be a regular file";
    assert!(error.to_string().contains(reason), "{error}");

    fs::remove_file(&file).unwrap();
    fifo(&file);
    let error = refused(load(&loader(patient()), &file));
    assert_eq!(error.phase, LoadPhase::Read);
    assert!(error.to_string().contains(reason), "{error}");

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = refused(load(&loader(patient()), &file));
    assert!(error.to_string().contains("it is a folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_the_system_cannot_open_may_load_later_and_a_missing_one_is_missing() {
    let (_dir, file) = folder(b"");
    fs::remove_file(&file).unwrap();
    let missing = refused(load(&loader(patient()), &file));
    assert!(missing.is_not_found() && !missing.may_pass(), "{missing}");
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let turning = refused(load(&loader(patient()), &file));
    assert!(turning.may_pass() && !turning.is_not_found(), "{turning}");
}

#[test]
fn a_component_that_takes_too_long_to_compile_is_refused() {
    let options = EngineOptions {
        compile_time_max: std::time::Duration::ZERO,
        ..EngineOptions::default()
    };
    let engine = PolicyEngine::deterministic(&options).unwrap();
    let loader = Loader::new(engine, LoaderOptions::default());
    let error = refused(load(&loader, &guest("good")));
    assert_eq!(error.phase, LoadPhase::Compile);
    assert!(matches!(error.cause, LoadCause::CompileTime(_)), "{error}");
    let way_out = "not compiled within 0 s; raise policies.compile_timeout_s";
    assert!(error.to_string().contains(way_out), "{error}");
}

#[test]
fn a_stopped_loader_gives_up() {
    let loader = loader(patient());
    loader.stop().stop();
    let error = refused(load(&loader, &guest("good")));
    assert!(matches!(error.cause, LoadCause::Stopped), "{error}");
}
