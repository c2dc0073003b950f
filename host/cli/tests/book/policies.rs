//! A page per shipped policy, with the settings that the component knows. The policy's own tests
//! compare the defaults in its README with the code.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::block::{blocks, page};
use crate::binary::{policy, root, switchyard};

/// Policies that are components; `edf-fallback` is native and has no settings.
const SHIPPED: [&str; 9] = [
    "fcfs",
    "mael",
    "ppo-router",
    "ramsis",
    "routing",
    "selection",
    "sneakpeek",
    "stability",
    "yardmaster",
];

/// The page of a policy, with its README.
fn page_of(name: &str) -> String {
    page(&root().join(format!("docs/policies/{name}.md")))
}

/// Rows of settings: name, type, default, range and meaning.
fn settings(text: &str) -> Vec<&str> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let rows = text.lines().filter(|line| {
        let name = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split('`').next());
        name.is_some_and(is_name) && line.matches(" | ").count() == 4
    });
    rows.collect()
}

/// The settings that a component knows, from its own words about one that it does not.
fn known(name: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.wasm"));
    fs::copy(policy(name), &file).unwrap();
    fs::write(file.with_extension("toml"), "no_such_setting = 1\n").unwrap();
    let ran = switchyard(&["policy", "check", file.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let reason = report["reasons"][0].as_str().unwrap_or_default();
    let (_, expected) = reason
        .split_once("unknown field `no_such_setting`, expected ")
        .unwrap_or_else(|| panic!("{name}: {report}"));
    let names = expected.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn every_shipped_policy_has_a_page() {
    for entry in fs::read_dir(root().join("plugins")).unwrap() {
        let folder = entry.unwrap().path();
        let is_policy = fs::read_to_string(folder.join("Cargo.toml"))
            .is_ok_and(|manifest| manifest.contains("\"cdylib\""));
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(is_policy, SHIPPED.contains(&name), "{name}");
    }
    for name in SHIPPED.into_iter().chain(["edf-fallback"]) {
        let page = page_of(name);
        let is_page = page.starts_with(&format!("# {name}\n"));
        let is_advised = page.contains("**Use it**") || name == "edf-fallback";
        assert!(
            is_page && is_advised,
            "{name}: its name, and when to use it"
        );
        let equations = blocks(&page).iter().any(|block| block.language == "text");
        assert!(equations, "{name}: no equations");
    }
}

#[test]
fn the_settings_of_a_page_are_those_of_the_component() {
    for name in SHIPPED {
        let page = page_of(name);
        let names = settings(&page)
            .into_iter()
            .map(|row| row.split('`').nth(1).unwrap().to_owned());
        let names: BTreeSet<String> = names.collect();
        assert_eq!(
            names,
            known(name),
            "documented for {name}, and known to the component"
        );
    }
}
