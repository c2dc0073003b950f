//! The packages of this repository, from cargo.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use switchyard_kit::cargo;

use crate::files;

/// The repository: its root and its packages.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Absolute path of the folder with the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    packages: Vec<Package>,
}

/// One workspace member, as `cargo metadata` prints it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// The package's name, which is also the policy's.
    pub(crate) name: String,
    /// Absolute path of its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    targets: Vec<Target>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// One line under `[dependencies]`, or one of its kinds.
#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// None for the package itself, `dev` or `build`.
    kind: Option<String>,
}

/// One thing cargo builds from a package.
#[derive(Debug, Deserialize)]
struct Target {
    crate_types: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<Package>,
}

// === impl Workspace ===

impl Workspace {
    /// Asks cargo for the members of the workspace this task runner belongs to.
    ///
    /// # Errors
    /// When cargo cannot be run or the workspace does not parse; cargo's own message is shown.
    pub(crate) fn load() -> Result<Self> {
        // At run time, so that a checkout that was moved is still found.
        let own =
            env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let mut command = cargo::host(Path::new(&own));
        command
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stderr(Stdio::inherit());
        let output = command.output().context("cannot start cargo")?;
        if !output.status.success() {
            bail!("cargo cannot read this workspace");
        }
        Self::parse(&output.stdout)
    }

    fn parse(metadata: &[u8]) -> Result<Self> {
        let Metadata {
            workspace_root,
            packages,
        } = serde_json::from_slice(metadata).context("cargo metadata is not as expected")?;
        Ok(Self {
            root: workspace_root,
            packages,
        })
    }

    /// Members somewhere below `folder` (relative to the root) that build a `cdylib`, by name.
    pub(crate) fn components_in(&self, folder: &str) -> Vec<&Package> {
        let folder = self.root.join(folder);
        let wanted = |p: &&Package| p.manifest_path.starts_with(&folder) && p.is_cdylib();
        let mut found: Vec<_> = self.packages.iter().filter(wanted).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// All members, by name.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Every page of the repository: Markdown outside of build outputs and hidden folders.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(crate) fn pages(&self) -> Result<Vec<PathBuf>> {
        files::below(&self.root, |extension| extension == "md")
    }

    /// A path relative to the root, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    }

    /// `target/` of the root, also if `CARGO_TARGET_DIR` is set: components have a fixed place.
    pub(crate) fn target(&self, below: &str) -> PathBuf {
        self.root.join("target").join(below)
    }
}

// === impl Package ===

impl Package {
    /// Whether it builds a `cdylib`, as policies do.
    pub(crate) fn is_cdylib(&self) -> bool {
        self.targets
            .iter()
            .any(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))
    }

    /// Whether its library or program links this package, tests and build scripts aside.
    pub(crate) fn links(&self, package: &str) -> bool {
        self.dependencies
            .iter()
            .any(|dependency| dependency.name == package && dependency.kind.is_none())
    }

    /// The folder with the package's `Cargo.toml`.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_root": "/repo",
        "packages": [
            {"name": "sneakpeek", "manifest_path": "/repo/plugins/sneakpeek/Cargo.toml",
             "targets": [{"crate_types": ["cdylib", "rlib"]}]},
            {"name": "fcfs", "manifest_path": "/repo/plugins/fcfs/Cargo.toml",
             "targets": [{"crate_types": ["bin"]}, {"crate_types": ["cdylib"]}]},
            {"name": "switchyard-sdk", "manifest_path": "/repo/plugins/sdk/Cargo.toml",
             "targets": [{"crate_types": ["lib"]}]},
            {"name": "loops", "manifest_path": "/repo/tests/guests/loops/Cargo.toml",
             "targets": [{"crate_types": ["cdylib"]}]},
            {"name": "odd", "manifest_path": "/repo/plugins-old/odd/Cargo.toml",
             "targets": [{"crate_types": ["cdylib"]}]}
        ]
    }"#;

    #[test]
    fn components_are_found_by_folder_and_crate_type() {
        let workspace = Workspace::parse(METADATA.as_bytes()).unwrap();
        let names = |folder| {
            workspace
                .components_in(folder)
                .iter()
                .map(|p| p.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("plugins"), ["fcfs", "sneakpeek"]);
        assert_eq!(names("tests/guests"), ["loops"]);
    }

    #[test]
    fn a_package_knows_its_folder() {
        let workspace = Workspace::parse(METADATA.as_bytes()).unwrap();
        let guests = workspace.components_in("tests/guests");
        assert_eq!(guests[0].folder(), Path::new("/repo/tests/guests/loops"));
    }

    #[test]
    fn this_very_workspace_loads() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.root.join("xtask/Cargo.toml").is_file());
    }
}
