//! Policies, from Rust to components.
//!
//! All of them in one cargo invocation with a target folder of their own, so that the standard
//! library is built at most once and the host's build is left alone.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo::{self, Artifact};
use crate::toolchain::{self, Toolchain};
use crate::workspace::{Package, Workspace};
use crate::{component, install};

/// The profile of the root `Cargo.toml` that policies are built with.
const PROFILE: &str = "wasm";

/// Folder of a package with the files that its policy reads (`read-artifact`).
const WEIGHTS: &str = "weights";

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
/// When no wasm toolchain can be had, a package does not compile, or a module is no policy.
pub(crate) fn build(workspace: &Workspace, with: Guests) -> Result<Vec<Built>> {
    let policies = (policies(workspace), workspace.components_in("plugins"));
    let mut groups = vec![policies];
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
    // The good ones are in place by now: one broken policy does not hold up work on another.
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
) -> Result<Vec<Artifact>> {
    let mut command = toolchain.cargo_build(&workspace.root);
    command.args(["--lib", "--profile", PROFILE]);
    command.arg("--target-dir").arg(workspace.target("wasm"));
    for package in packages {
        command.args(["--package", &package.name]);
    }
    cargo::build(&mut command)
}

/// One package's module becomes `folder/NAME.wasm`, its settings `folder/NAME.toml`, and what it
/// reads lies in `folder/NAME/`.
fn place(folder: &Path, package: &Package, artifacts: &[Artifact]) -> Result<Built> {
    let name = &package.name;
    let path = module_of(package, artifacts)
        .with_context(|| format!("cargo named no .wasm file for package `{name}`"))?;
    let module = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let component =
        component::encode(&module).with_context(|| format!("package `{name}` is no policy"))?;
    let imports =
        component::imports(&component).with_context(|| format!("package `{name}` is no policy"))?;
    install_settings(folder, package)?;
    install_weights(&package.folder().join(WEIGHTS), &folder.join(name))?;
    install::write(&folder.join(format!("{name}.wasm")), &component)?;
    Ok(Built {
        name: name.clone(),
        size_bytes: component.len(),
        imports,
    })
}

fn module_of<'a>(package: &Package, artifacts: &'a [Artifact]) -> Option<&'a Path> {
    artifacts
        .iter()
        .filter(|artifact| artifact.manifest_path == package.manifest_path)
        .flat_map(|artifact| &artifact.filenames)
        .map(PathBuf::as_path)
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        })
}

/// Settings are optional, and written before the component: a watcher acts on the component.
fn install_settings(folder: &Path, package: &Package) -> Result<()> {
    let file = format!("{}.toml", package.name);
    let source = package.folder().join(&file);
    match fs::read(&source) {
        Ok(settings) => install::write(&folder.join(file), &settings).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", source.display())),
    }
}

/// Weights and tables are optional, and written before the component as well. Files that a
/// folder had before stay: whoever runs a server may have put them there.
fn install_weights(from: &Path, to: &Path) -> Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", from.display())),
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            install_weights(&source, &target)?;
            continue;
        }
        let bytes =
            fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
        install::write(&target, &bytes)?;
    }
    Ok(())
}

/// The components as a table: name, size, what they ask of the host.
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
    fn weights_lie_beside_the_component() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("weights"), folder.path().join("to/name"));
        install_weights(&from, &to).unwrap();
        assert!(!to.exists(), "a policy without any has no folder");
        fs::create_dir_all(from.join("image")).unwrap();
        fs::write(from.join("a.safetensors"), b"one").unwrap();
        fs::write(from.join("image/b.safetensors"), b"two").unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join("own.safetensors"), b"three").unwrap();
        install_weights(&from, &to).unwrap();
        for (file, bytes) in [
            ("a.safetensors", b"one".as_slice()),
            ("image/b.safetensors", b"two"),
            ("own.safetensors", b"three"),
        ] {
            assert_eq!(fs::read(to.join(file)).unwrap(), bytes, "{file}");
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
