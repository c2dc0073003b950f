//! The modules of each crate: their imports and public types.
//!
//! - [`tree`]: a crate's files as modules, with their definitions and uses
//! - [`circles`]: modules that import each other

mod circles;
mod tree;

use std::collections::BTreeMap;

use anyhow::Result;

use self::tree::Crate;
use super::source::Sources;
use crate::workspace::Workspace;

/// Crates with unsafe code; each place says why. All others forbid it.
const UNSAFE: [&str; 5] = [
    "host/executor",
    "host/policy",
    "models",
    "models/kernels",
    "plugins/sdk",
];

/// Policies that misbehave on purpose, also with unsafe code.
const GUESTS: &str = "tests/guests/";

/// Circles, public types of one name, and unsafe code where none may be.
///
/// # Errors
/// A file of Rust does not parse.
pub(super) fn breaches(workspace: &Workspace, sources: &Sources) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in workspace.packages() {
        let Some(own) = Crate::read(&workspace.relative(package.folder()), sources)? else {
            continue;
        };
        found.extend(circles::breaches(&own));
        found.extend(double_names(&own));
        found.extend(unsafe_code(&own));
    }
    Ok(found)
}

/// Two public types of one name are one too many in a crate.
fn double_names(own: &Crate) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for module in own.modules() {
        for name in &module.public_types {
            places.entry(name).or_default().push(&module.path);
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    let breach = |(name, paths): (&str, Vec<&str>)| {
        format!(
            "{}: public type `{name}` stands in {}",
            paths[0],
            paths.join(", ")
        )
    };
    places.into_iter().map(breach).collect()
}

/// A crate's root forbids unsafe code, or denies it and each place allows it with a reason.
fn unsafe_code(own: &Crate) -> Option<String> {
    let root = own.root();
    let level = match UNSAFE.contains(&own.folder.as_str()) {
        true => "deny",
        false => "forbid",
    };
    let attribute = format!("#![{level}(unsafe_code)]");
    let is_exempt = own.folder.starts_with(GUESTS);
    (!is_exempt && !root.text.contains(&attribute))
        .then(|| format!("{}:1: no `{attribute}`", root.path))
}
