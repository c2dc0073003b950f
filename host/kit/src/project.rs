//! Builds a policy's project, in any language.

mod c;
mod folder;
mod javascript;
mod python;
mod rust;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::folder::ProjectFolder;
use crate::{Language, component, install};

pub(crate) use self::c::bind;

/// Folder of a project for components.
const BUILD: &str = "build";

/// Options of a build.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions<'a> {
    /// The component's file; by default `build/NAME.wasm` in the project's folder.
    pub out: Option<&'a Path>,
    /// Keep the WASI imports of the language's library (Python, JavaScript), so that printed lines
    /// reach the log.
    pub wasi: bool,
}

/// A component that was built.
#[derive(Debug)]
pub struct BuiltPolicy {
    /// Its file.
    pub file: PathBuf,
    /// The language of its project.
    pub language: Language,
    /// Its length in bytes.
    pub size_bytes: usize,
    /// Interfaces and functions that it imports.
    pub imports: Vec<String>,
}

/// The reason why a folder without a [`Language`] is not built.
pub fn no_policy(folder: &Path) -> String {
    let marks = Language::ALL.map(Language::mark).join(", ");
    let folder = folder.display();
    format!("{folder} holds no policy: it has none of the files {marks}")
}

/// Builds the project in a folder with the tools of its language. They write to stderr.
///
/// # Errors
/// When the folder holds no project, a tool is missing (with the packages to install), the build
/// fails, or its result is no policy.
pub fn build(folder: &Path, options: BuildOptions<'_>) -> Result<BuiltPolicy> {
    let Some(language) = Language::of(folder) else {
        bail!(no_policy(folder));
    };
    let found = fs::canonicalize(folder);
    let folder = found.with_context(|| format!("cannot read {}", folder.display()))?;
    let project = ProjectFolder {
        build: folder.join(BUILD),
        path: folder,
        wasi: options.wasi,
    };
    let (name, bytes) = match language {
        Language::Rust => (rust::name(&project)?, rust::component(&project)?),
        Language::Python => (python::name(&project)?, python::component(&project)?),
        Language::JavaScript => (
            javascript::name(&project)?,
            javascript::component(&project)?,
        ),
        Language::C => (c::name(&project), c::component(&project)?),
    };
    component::check(&bytes)?;
    let file = match options.out {
        Some(out) => out.to_owned(),
        None => project.build.join(format!("{name}.wasm")),
    };
    install::belongings(&project.path, &name, &file)?;
    install::write(&file, &bytes)?;
    Ok(BuiltPolicy {
        imports: component::imports(&bytes)?,
        size_bytes: bytes.len(),
        file,
        language,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_project_is_refused_with_the_files_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = build(folder.path(), BuildOptions::default()).unwrap_err();
        let text = error.to_string();
        for mark in ["Cargo.toml", "pyproject.toml", "package.json", "policy.c"] {
            assert!(text.contains(mark), "{text}");
        }
    }
}
