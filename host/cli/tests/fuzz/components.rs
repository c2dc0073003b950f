//! Components through the loader, and the windows of those that load.

use std::path::{Path, PathBuf};

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{EngineOptions, Loader, LoaderOptions, PolicyEngine, PolicyVersion, trial};

use crate::hostile_parts::hostile;

use super::mutate::Form;
use super::target::{Target, root};

fn guest(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("SWITCHYARD_GUESTS")
        .map_or_else(|| root().join("target/policies-test"), PathBuf::from);
    let file = folder.join(format!("{name}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: run `cargo xtask plugins --with-guests`",
            file.display()
        )
    })
}

/// On fuel, so that an execution is the same on every machine.
pub(crate) fn loader() -> Loader {
    let engine = PolicyEngine::deterministic(&EngineOptions::default()).unwrap();
    Loader::new(engine, LoaderOptions::default())
}

pub(crate) fn read(loader: &Loader, catalog: &Catalog, bytes: &[u8]) -> Result<(), String> {
    let version = PolicyVersion::new(Path::new("mutated.wasm"), bytes.to_vec(), "{}".to_owned());
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    let loaded = loader
        .load_version(&version, trial)
        .map_err(|error| error.to_string())?;
    let mut policy = loaded.policy;
    let wants = policy.description().wants;
    for made in trial::made_windows(catalog, wants) {
        let mut plan = Plan::default();
        // A fault is an answer.
        let _ = policy.schedule(&made.window, &mut plan);
    }
    Ok(())
}

#[test]
fn components() {
    let (loader, catalog) = (loader(), trial::catalog());
    let target = Target {
        name: "component",
        seeds: vec![hostile("more", ""), guest("good"), guest("garbage")],
        form: Form::Binary,
        executions: 200,
        accepted_min: 0.01,
        memory_max: (64 << 20, 64),
    };
    target.run(|bytes| read(&loader, &catalog, bytes));
}
