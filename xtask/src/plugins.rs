//! Policies, from Rust to components.
//!
//! All of them in one cargo invocation with a target folder of their own, so that the standard
//! library is built at most once and the host's build is left alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use switchyard_kit::cargo::{self, CargoArtifact};
use switchyard_kit::toolchain::{self, Toolchain};
use switchyard_kit::{component, install};

use crate::workspace::{Package, Workspace};

/// The profile of the root `Cargo.toml` that policies are built with.
const PROFILE: &str = "wasm";

/// Whether to build the components that only tests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guests {
    /// Build them, with the policies.
    Include,
    /// Policies only.
    Leave,
}

/// A component that lies where a host can load it.
#[derive(Debug)]
pub(crate) struct Built {
    name: String,
    size_bytes: usize,
    imports: Vec<String>,
}

/// Where the shipped policies go.
pub(crate) fn policies(workspace: &Workspace) -> PathBuf {
    workspace.target("policies")
}

/// Where the tests' own components go.
pub(crate) fn guests(workspace: &Workspace) -> PathBuf {
    workspace.target("policies-test")
}

/// Builds every policy, and the tests' guests when asked, and puts them in their folders.
///
/// # Errors
/// No wasm toolchain is available, a package does not compile, or a module is not a policy.
pub(crate) fn build(workspace: &Workspace, with: Guests) -> Result<Vec<Built>> {
    let mut shipped = workspace.components_in("plugins");
    // The templates of `policy new` are built by `policy build` and not shipped.
    let examples = workspace.root.join("plugins/examples");
    shipped.retain(|package| !package.manifest_path.starts_with(&examples));
    let mut groups = vec![(policies(workspace), shipped)];
    if with == Guests::Include {
        groups.push((guests(workspace), workspace.components_in("tests/guests")));
    }
    let packages: Vec<_> = groups
        .iter()
        .flat_map(|(_, packages)| packages)
        .copied()
        .collect();
    if packages.is_empty() {
        bail!("no member of this workspace under plugins/ builds a cdylib");
    }
    let toolchain = toolchain::find()?;
    eprintln!("wasm toolchain: {}", toolchain.summary());
    let artifacts = compile(workspace, &toolchain, &packages)?;
    let (mut built, mut failures) = (Vec::new(), Vec::new());
    for (folder, packages) in &groups {
        for package in packages {
            match place(folder, package, &artifacts) {
                Ok(row) => built.push(row),
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
    }
    // The other components are written by now: one broken policy does not block work on another.
    if !failures.is_empty() {
        bail!(
            "{} of {} components failed:\n{}",
            failures.len(),
            packages.len(),
            failures.join("\n")
        );
    }
    Ok(built)
}

fn compile(
    workspace: &Workspace,
    toolchain: &Toolchain,
    packages: &[&Package],
) -> Result<Vec<CargoArtifact>> {
    let mut command = toolchain.cargo_build(&workspace.root);
    command.args(["--lib", "--profile", PROFILE]);
    command.arg("--target-dir").arg(workspace.target("wasm"));
    for package in packages {
        command.args(["--package", &package.name]);
    }
    cargo::build(&mut command)
}

/// Writes one package's component to `folder/NAME.wasm`, with its settings and artifacts.
fn place(folder: &Path, package: &Package, artifacts: &[CargoArtifact]) -> Result<Built> {
    let name = &package.name;
    let path = cargo::module(artifacts, &package.manifest_path)
        .with_context(|| format!("cargo named no .wasm file for package `{name}`"))?;
    let module = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let component =
        component::encode(&module).with_context(|| format!("package `{name}` is not a policy"))?;
    let imports = component::imports(&component)
        .with_context(|| format!("package `{name}` is not a policy"))?;
    let file = folder.join(format!("{name}.wasm"));
    install::belongings(package.folder(), name, &file)?;
    install::write(&file, &component)?;
    Ok(Built {
        name: name.clone(),
        size_bytes: component.len(),
        imports,
    })
}

/// The components as a table: name, size, imports.
pub(crate) fn table(built: &[Built]) -> String {
    let width = built
        .iter()
        .map(|row| row.name.len())
        .chain(["component".len()])
        .max();
    let width = width.unwrap_or_default();
    let mut table = format!("{:<width$}  {:>10}  imports\n", "component", "size");
    for row in built {
        let imports = if row.imports.is_empty() {
            "none".to_owned()
        } else {
            row.imports.join(", ")
        };
        let size = format!("{:.1} KiB", kibibytes(row.size_bytes));
        writeln!(table, "{:<width$}  {size:>10}  {imports}", row.name)
            .expect("a String takes every write");
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn kibibytes(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, size_bytes: usize, imports: &[&str]) -> Built {
        let imports = imports.iter().map(ToString::to_string).collect();
        Built {
            name: name.to_owned(),
            size_bytes,
            imports,
        }
    }

    #[test]
    fn the_table_lines_up() {
        let rows = [
            row("fcfs", 31_744, &["switchyard:policy/host@0.1.0"]),
            row("ppo-router", 512, &[]),
        ];
        assert_eq!(
            table(&rows),
            "component         size  imports\n\
             fcfs          31.0 KiB  switchyard:policy/host@0.1.0\n\
             ppo-router     0.5 KiB  none\n"
        );
    }
}
