//! Components that import WASI get an empty world, the same one each time.

use switchyard_core::policy::FaultKind;
use switchyard_core::time::Time;
use switchyard_policy::Loader;

use crate::support::{ask, guest, load, loader, made_up, patient, window};

/// What the guest saw in one window at a time.
fn seen(loader: &Loader, now_us: u64) -> String {
    let mut policy = load(loader, &guest("worldly")).unwrap().policy;
    let mut window = window(1, 1);
    window.now = Time(now_us);
    let plan = ask(policy.as_mut(), &window).unwrap();
    plan.reasons[0].1.clone()
}

#[test]
fn there_are_no_files_no_environment_and_no_network() {
    let seen = seen(&loader(patient()), 5);
    assert!(
        seen.starts_with(
            "environment 0 arguments 0 cwd None directories 0 \
             socket Some(ErrorCode::AccessDenied)"
        ),
        "{seen}"
    );
    assert!(seen.ends_with("room 4096 wrote true read false"), "{seen}");
}

#[test]
fn the_clock_is_the_windows_and_nothing_waits() {
    let seen = seen(&loader(patient()), 3_000_007);
    let clocks = "now 3000007000 wall 3.000007000 ready true [0, 1]";
    assert!(seen.contains(clocks), "{seen}");
}

#[test]
fn the_same_window_gives_the_same_world() {
    let loader = loader(patient());
    assert_eq!(seen(&loader, 42), seen(&loader, 42));
}

#[test]
fn a_call_without_an_answer_is_a_fault_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("worldly.wasm");
    std::fs::copy(guest("worldly"), &file).unwrap();
    std::fs::write(file.with_extension("toml"), "escape = true").unwrap();
    let mut policy = load(&loader(patient()), &file).unwrap().policy;
    let fault = ask(policy.as_mut(), &window(1, 1)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(
        fault.to_string().contains("wasi:http/outside@0.2.0#call"),
        "{fault}"
    );
}

#[test]
fn another_wasi_is_refused_by_name() {
    let wit = "package a:b; world w { import wasi:cli/environment@0.3.0; \
               export switchyard:policy/scheduling@0.1.0; } \
               package wasi:cli@0.3.0 { interface environment { get: func() -> string; } } \
               package switchyard:policy@0.1.0 { interface scheduling { describe: func(); } }";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("later.wasm");
    std::fs::write(&file, made_up(wit)).unwrap();
    let error = load(&loader(patient()), &file).err().unwrap().to_string();
    assert!(error.contains("`wasi:cli/environment@0.3.0`"), "{error}");
}
