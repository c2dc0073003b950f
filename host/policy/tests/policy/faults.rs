//! Each hostile guest ends in a fault of the right kind, and the policy answers again afterwards.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use switchyard_core::policy::{FaultKind, Policy};
use switchyard_policy::{CodeTier, EngineOptions, Limits, Loader, LoaderOptions, PolicyEngine};

use crate::support::{ask, guest, guests_dir, load, load_guest, loader, patient, window};

/// Every guest with its expected behaviour. `every_guest_has_a_test` compares this list with the
/// guests that were built.
const TESTED: &[(&str, Expected)] = &[
    ("good", Expected::Serves),
    ("garbage", Expected::Serves),
    ("chatters", Expected::Serves),
    ("fleet-changed", Expected::Serves),
    ("fleet-whole", Expected::Serves),
    // Found by `policy check`.
    ("forgets-workers", Expected::Serves),
    ("lanes", Expected::Serves),
    ("shows", Expected::Serves),
    ("shows-0-1", Expected::Serves),
    ("unknown-worker", Expected::Serves),
    ("doubled", Expected::Serves),
    // Its mistakes are tested in host/cli/tests/cli/mistakes.rs.
    ("mistakes", Expected::Serves),
    (
        "imports-other",
        Expected::NotLoaded("contract: it imports `acme:telemetry/network`"),
    ),
    (
        "traps",
        Expected::Fault(FaultKind::Trap, "schedule trapped: wasm `unreachable`"),
    ),
    (
        "loops",
        Expected::Fault(FaultKind::Overrun, "schedule was cut at its budget"),
    ),
    (
        "allocates",
        Expected::Fault(FaultKind::Memory, "the limit is 16777216"),
    ),
    (
        "overflows-stack",
        Expected::Fault(FaultKind::Stack, "schedule overflowed its stack"),
    ),
    ("huge", Expected::Fault(FaultKind::Refused, "more bytes")),
    (
        "errs",
        Expected::Fault(FaultKind::Failed, "schedule: no plan for window"),
    ),
    (
        "malformed",
        Expected::Fault(FaultKind::Trap, "schedule broke the contract: list pointer"),
    ),
    (
        "loops-in-configure",
        Expected::NotLoaded("configure: overrun: configure was cut"),
    ),
    (
        "asks-at-wrong-time",
        Expected::NotLoaded("configure: failed: configure: artifact table.bin: not found"),
    ),
    (
        "layouts",
        Expected::NotLoaded("contract: it does not export `switchyard:policy/scheduling`"),
    ),
];

enum Expected {
    /// Loads and answers windows. The core decides whether a plan can be applied.
    Serves,
    /// Loads, and faults in each window with this kind and reason.
    Fault(FaultKind, &'static str),
    /// Is refused with this reason.
    NotLoaded(&'static str),
}

#[test]
fn every_guest_has_a_test() {
    let built: BTreeSet<String> = std::fs::read_dir(guests_dir())
        .expect("run `cargo xtask plugins --with-guests` first")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "wasm"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let tested: BTreeSet<String> = TESTED.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(built, tested, "guests built, and guests in TESTED");
}

#[test]
fn guests_behave_as_expected() {
    behave_as_expected(&loader(patient()), CodeTier::Optimized);
}

/// Only x86-64 has a baseline compiler.
#[cfg(target_arch = "x86_64")]
#[test]
fn guests_in_baseline_code_behave_as_expected() {
    behave_as_expected(&loader(patient()).loading_soon(), CodeTier::Baseline);
}

fn behave_as_expected(loader: &Loader, code: CodeTier) {
    for (name, expected) in TESTED {
        let loaded = load(loader, &guest(name));
        if let Expected::NotLoaded(reason) = expected {
            let error = loaded.map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(reason), "{name}: {error}");
            continue;
        }
        let mut loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.report.code, code, "{name}");
        match expected {
            Expected::Fault(kind, reason) => faults(name, loaded.policy.as_mut(), *kind, reason),
            _ => serves(name, loaded.policy.as_mut()),
        }
    }
}

fn serves(name: &str, policy: &mut dyn Policy) {
    assert_eq!(policy.description().label(), format!("{name}@1.0.0"));
    for id in 1..4 {
        if let Err(fault) = ask(policy, &window(id, 3)) {
            panic!("{name}: {fault}");
        }
    }
}

/// The second fault comes from a fresh instance, and is the same.
fn faults(name: &str, policy: &mut dyn Policy, kind: FaultKind, reason: &str) {
    for id in 1..3 {
        let fault = ask(policy, &window(id, 3)).unwrap_err();
        assert_eq!(fault.kind, kind, "{name}, window {id}: {fault}");
        assert!(
            fault.reason.contains(reason),
            "{name}, window {id}: {fault}"
        );
    }
}

/// `traps` and others never answer. `good` faults only in a window that is too large for it.
#[test]
fn after_a_fault_the_next_call_is_answered() {
    let limits = Limits {
        memory_bytes: 2 << 20,
        ..patient()
    };
    let mut policy = load(&loader(limits), &guest("good")).unwrap().policy;
    let plan = ask(policy.as_mut(), &window(1, 3)).unwrap();
    assert_eq!(plan.dispatches.len(), 3);
    let fault = ask(policy.as_mut(), &window(2, 100_000)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Memory, "{fault}");
    let plan = ask(policy.as_mut(), &window(3, 3)).expect("configured again");
    assert_eq!(plan.members.len(), 3);
    assert_eq!(plan.dispatches[0].size, 1);
}

#[test]
fn a_runaway_is_cut_soon_after_its_budget() {
    let limits = Limits {
        window_budget: Duration::from_millis(5),
        ..patient()
    };
    let mut policy = load(&loader(limits), &guest("loops")).unwrap().policy;
    let window = window(1, 1);
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let fault = ask(policy.as_mut(), &window).unwrap_err();
        let took = began.elapsed();
        assert_eq!(fault.kind, FaultKind::Overrun);
        // A late tick before the first look can cut the call a little early.
        assert!(
            took >= Duration::from_millis(4),
            "cut early, after {took:?}"
        );
        fastest = fastest.min(took);
    }
    // A wide limit: other tests share the machine. The benchmark `window` measures the time.
    assert!(
        fastest < Duration::from_millis(50),
        "cut late, after {fastest:?}"
    );
}

#[test]
fn each_window_has_a_budget_of_its_own() {
    let limits = Limits {
        window_budget: Duration::from_millis(100),
        ..patient()
    };
    let mut policy = load(&loader(limits), &guest("good")).unwrap().policy;
    let end = Instant::now() + Duration::from_millis(300);
    let window = window(1, 8);
    while Instant::now() < end {
        ask(policy.as_mut(), &window).expect("no single window takes 100 ms");
    }
}

#[test]
fn fuel_cuts_at_the_same_instruction_every_time() {
    let engine = PolicyEngine::deterministic(&EngineOptions::default()).unwrap();
    let loader = |window_us| {
        let limits = Limits {
            window_budget: Duration::from_micros(window_us),
            ..patient()
        };
        let options = LoaderOptions {
            limits,
            ..LoaderOptions::default()
        };
        Loader::new(engine.clone(), options)
    };
    let mut runaway = load(&loader(5_000), &guest("loops")).unwrap().policy;
    let fault = ask(runaway.as_mut(), &window(1, 1)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Overrun, "{fault}");

    // The smallest window that is cut has the same size in each run.
    let first_cut = || -> Option<u64> {
        let mut policy = load(&loader(20), &guest("good")).unwrap().policy;
        (0..2_000).find(|&n| ask(policy.as_mut(), &window(1, n)).is_err())
    };
    let cut = first_cut();
    assert!(cut.is_some_and(|n| n > 1), "{cut:?}");
    assert_eq!(cut, first_cut());
}

#[test]
fn hostile_plans_arrive_as_they_were_written() {
    let mut unknown = load_guest("unknown-worker");
    let plan = ask(unknown.as_mut(), &window(1, 2)).unwrap();
    assert_eq!(plan.dispatches[0].worker.0, 9999);
    let mut doubled = load_guest("doubled");
    let plan = ask(doubled.as_mut(), &window(1, 2)).unwrap();
    assert_eq!(plan.members[0], plan.members[1]);
    assert_eq!(plan.dispatches.len(), 2);
}

#[test]
fn a_catalog_change_reaches_the_policy() {
    let mut policy = load_guest("good");
    let mut catalog = crate::support::catalog();
    catalog.variants.clear();
    let fault = policy.configure(&catalog).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Failed);
    assert!(fault.reason.contains("catalog.variants"), "{fault}");
}

#[test]
fn an_answer_of_more_bytes_than_its_window_can_need_is_refused() {
    let limits = Limits {
        crossing_bytes: 400,
        ..patient()
    };
    let mut policy = load(&loader(limits), &guest("good")).unwrap().policy;
    ask(policy.as_mut(), &window(1, 1)).unwrap();
    let fault = ask(policy.as_mut(), &window(2, 100)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
    assert!(fault.reason.contains("more bytes"), "{fault}");
}
