//! Baseline code until the optimised code is there. Only x86-64 has a baseline compiler.

use std::fs;

use switchyard_core::policy::Policy;
use switchyard_policy::{CodeTier, LoadedCode, Loader, LoaderOptions};

use crate::support::{ask, engine, guest, load, loader, patient, window, with_instances};

#[test]
fn a_component_is_baseline_code_until_it_is_optimised() {
    let cache = tempfile::tempdir().unwrap();
    let options = LoaderOptions {
        cache_dir: Some(cache.path().to_owned()),
        limits: patient(),
        seed: 0,
    };
    let soon = Loader::new(engine(), options).loading_soon();
    let mut first = load(&soon, &guest("good")).unwrap();
    assert_eq!(first.report.code, CodeTier::Baseline);
    assert!(!first.report.cached);
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);

    soon.optimize(&first.version).unwrap();
    let mut second = load(&soon, &guest("good")).unwrap();
    assert_eq!(second.report.code, CodeTier::Optimized);
    assert!(second.report.cached);
    assert_eq!(first.version, second.version);

    let plan = |policy: &mut dyn Policy| ask(policy, &window(1, 5)).unwrap();
    let [baseline, optimised] = [&mut first, &mut second].map(|it| plan(it.policy.as_mut()));
    assert_eq!(baseline, optimised);
    let [baseline, optimised] = [first, second].map(|mut it| it.policy.save().unwrap());
    assert_eq!(baseline, optimised);
}

#[test]
fn optimised_code_is_found_in_memory_without_a_folder() {
    let soon = loader(patient())
        .with_loaded_code(LoadedCode::new(1))
        .loading_soon();
    let first = load(&soon, &guest("good")).unwrap();
    assert_eq!(first.report.code, CodeTier::Baseline);
    soon.optimize(&first.version).unwrap();
    let second = load(&soon, &guest("good")).unwrap().report;
    assert_eq!((second.code, second.cached), (CodeTier::Optimized, true));
}

#[test]
fn a_component_with_an_instruction_that_the_baseline_compiler_lacks_is_optimised_at_once() {
    let module = wat::parse_str("(module (func $f) (func return_call $f))").unwrap();
    let component = with_instances(&fs::read(guest("good")).unwrap(), &module, 1);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tail-call.wasm");
    fs::write(&file, component).unwrap();
    let mut loaded = load(&loader(patient()).loading_soon(), &file).unwrap();
    assert_eq!(loaded.report.code, CodeTier::Optimized);
    assert_eq!(
        ask(loaded.policy.as_mut(), &window(1, 2))
            .unwrap()
            .members
            .len(),
        2
    );
}
