//! Manifests that stand alone: what a member of this repository's workspace inherits, written out,
//! as `cargo publish` would.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The root manifest, from which members inherit.
const ROOT: &str = include_str!("../../../Cargo.toml");

/// Writes a member's manifest so that it works in any place: inherited fields and dependencies are
/// filled in, lints and tests' dependencies are left out, and so is what lies elsewhere in this
/// repository. Comments and order stay.
///
/// # Errors
/// When a manifest does not parse, or inherits what the root does not have: a fault of this
/// repository, found by its tests.
pub(crate) fn standalone(member: &str) -> Result<DocumentMut> {
    let root: DocumentMut = ROOT.parse().context("the workspace's Cargo.toml")?;
    let mut manifest: DocumentMut = member.parse().context("a member's Cargo.toml")?;
    for unused in ["lints", "dev-dependencies"] {
        manifest.remove(unused);
    }
    if let Some(package) = manifest["package"].as_table_mut() {
        package.remove("publish");
        fill_fields(package, &root)?;
    }
    let mut left_out = Vec::new();
    if let Some(dependencies) = manifest["dependencies"].as_table_mut() {
        left_out = fill_dependencies(dependencies, &root)?;
    }
    drop_features(&mut manifest, &left_out);
    Ok(manifest)
}

/// The profile that policies are built with, as a piece of a manifest.
///
/// # Errors
/// When the root has none: a fault of this repository, found by its tests.
pub(crate) fn wasm_profile() -> Result<String> {
    let root: DocumentMut = ROOT.parse().context("the workspace's Cargo.toml")?;
    let found = root["profile"]["wasm"]
        .as_table()
        .context("it has no [profile.wasm]")?;
    let fields = found
        .iter()
        .map(|(key, value)| format!("{key} = {}\n", value.to_string().trim()));
    let fields: String = fields.collect();
    Ok(format!("[profile.wasm]\n{fields}"))
}

/// `field.workspace = true` becomes the workspace's value.
fn fill_fields(package: &mut Table, root: &DocumentMut) -> Result<()> {
    for (field, item) in package.iter_mut() {
        if inherits(item) {
            let value = &root["workspace"]["package"][field.get()];
            let value = value.as_value().with_context(|| field.to_string())?;
            *item = Item::Value(value.clone().decorated(" ", ""));
        }
    }
    Ok(())
}

/// `name = { workspace = true, ... }` becomes the workspace's version with both feature lists.
/// Returns the names of those that lie in this repository, which are left out.
fn fill_dependencies(dependencies: &mut Table, root: &DocumentMut) -> Result<Vec<String>> {
    let mut left_out = Vec::new();
    for (name, item) in dependencies.iter_mut() {
        let shared = &root["workspace"]["dependencies"][name.get()];
        if !inherits(item) {
            continue;
        }
        let mut filled = match shared {
            Item::Value(Value::String(version)) => {
                InlineTable::from_iter([("version", version.value().clone())])
            }
            Item::Value(Value::InlineTable(table)) => table.clone(),
            _ => anyhow::bail!("the workspace has no dependency {name}"),
        };
        if filled.contains_key("path") {
            left_out.push(name.to_string());
            continue;
        }
        let more = item.get("features").and_then(Item::as_array);
        if let Some(more) = more {
            let mut features = filled
                .get("features")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            features.extend(more.iter().cloned());
            features.fmt();
            filled.insert("features", features.into());
        }
        filled.fmt();
        *item = Item::Value(Value::from(filled).decorated(" ", ""));
    }
    for name in &left_out {
        dependencies.remove(name);
    }
    Ok(left_out)
}

fn inherits(item: &Item) -> bool {
    let table = item.as_table_like();
    let workspace = table.and_then(|table: &dyn TableLike| table.get("workspace"));
    workspace.and_then(Item::as_bool) == Some(true)
}

/// Features that stand for a dependency which is not there any more.
fn drop_features(manifest: &mut DocumentMut, left_out: &[String]) {
    let Some(features) = manifest.get_mut("features").and_then(Item::as_table_mut) else {
        return;
    };
    features.retain(|_, item| {
        let parts = item.as_array().into_iter().flatten();
        let mut parts = parts.filter_map(Value::as_str);
        !parts.any(|part| left_out.iter().any(|name| part == format!("dep:{name}")))
    });
    if features.is_empty() {
        manifest.remove("features");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inherited_is_written_out() {
        let member = r#"
[package]
name = "sdk" # stays
edition.workspace = true
publish.workspace = true

[lints]
workspace = true

[features]
native = ["dep:switchyard-core"]

[dependencies]
libm = { workspace = true }
switchyard-core = { workspace = true, optional = true }
wit-bindgen = { workspace = true, features = ["bitflags"] }

[dev-dependencies]
proptest = { workspace = true }
"#;
        let text = standalone(member).unwrap().to_string();
        let manifest: toml::Table = text.parse().unwrap();
        assert!(
            text.contains("# stays") && !text.contains("workspace"),
            "{text}"
        );
        assert_eq!(manifest["package"]["edition"].as_str(), Some("2024"));
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let names: Vec<_> = dependencies.keys().map(String::as_str).collect();
        assert_eq!(names, ["libm", "wit-bindgen"]);
        let features = dependencies["wit-bindgen"]["features"].as_array().unwrap();
        assert!(features.iter().any(|f| f.as_str() == Some("bitflags")));
        assert!(features.len() > 1, "the workspace's own are kept: {text}");
        for gone in ["lints", "features", "dev-dependencies"] {
            assert!(!manifest.contains_key(gone), "{gone}");
        }
    }
}
