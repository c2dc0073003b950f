//! Manifests that stand alone: fields that a workspace member inherits are written out, as
//! `cargo publish` does.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The root manifest, from which members inherit.
const ROOT: &str = include_str!("../../../Cargo.toml");

/// Writes a member's manifest so that it works in any place: inherited fields and dependencies are
/// filled in, lints and tests' dependencies are left out. Dependencies on members of this repository
/// point to folders of their name below `vendored`, a path relative to the manifest. Comments and
/// order stay.
///
/// # Errors
/// When a manifest does not parse, or inherits a field that the root lacks: a fault of this
/// repository, found by its tests.
pub(crate) fn standalone(member: &str, vendored: &str) -> Result<DocumentMut> {
    let root: DocumentMut = ROOT.parse().context("the workspace's Cargo.toml")?;
    let mut manifest: DocumentMut = member.parse().context("a member's Cargo.toml")?;
    for unused in ["lints", "dev-dependencies"] {
        manifest.remove(unused);
    }
    if let Some(package) = manifest["package"].as_table_mut() {
        package.remove("publish");
        fill_fields(package, &root)?;
    }
    if let Some(dependencies) = manifest["dependencies"].as_table_mut() {
        fill_dependencies(dependencies, &root, vendored)?;
    }
    let targets = manifest.get_mut("target").and_then(Item::as_table_mut);
    for (_, target) in targets.into_iter().flat_map(Table::iter_mut) {
        if let Some(dependencies) = target["dependencies"].as_table_mut() {
            fill_dependencies(dependencies, &root, vendored)?;
        }
    }
    Ok(manifest)
}

/// The build profile of policies, as a section of a manifest.
///
/// # Errors
/// When the root has no such profile: a fault of this repository, found by its tests.
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

/// Replaces `field.workspace = true` by the workspace's value.
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

/// `name = { workspace = true, ... }` becomes the workspace's version with both feature lists, or the
/// path of a member below `vendored`.
fn fill_dependencies(dependencies: &mut Table, root: &DocumentMut, vendored: &str) -> Result<()> {
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
        if let Some(path) = filled.get_mut("path") {
            *path = format!("{vendored}/{}", name.get()).into();
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
    Ok(())
}

fn inherits(item: &Item) -> bool {
    let table = item.as_table_like();
    let workspace = table.and_then(|table: &dyn TableLike| table.get("workspace"));
    workspace.and_then(Item::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_entries_are_written_out() {
        let member = r#"
[package]
name = "sdk" # stays
edition.workspace = true
publish.workspace = true

[lints]
workspace = true

[dependencies]
libm = { workspace = true }
wit-bindgen = { workspace = true, features = ["bitflags"] }

[target.'cfg(not(target_arch = "wasm32"))'.dependencies]
switchyard-core = { workspace = true }

[dev-dependencies]
proptest = { workspace = true }
"#;
        let text = standalone(member, "..").unwrap().to_string();
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
        let native = &manifest["target"]["cfg(not(target_arch = \"wasm32\"))"]["dependencies"];
        assert_eq!(
            native["switchyard-core"]["path"].as_str(),
            Some("../switchyard-core")
        );
        for gone in ["lints", "dev-dependencies"] {
            assert!(!manifest.contains_key(gone), "{gone}");
        }
    }
}
