//! A policy's project, in whatever language, becomes a component.

mod c;
mod javascript;
mod python;
mod rust;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{Language, component, contract, install};

pub(crate) use self::c::bind;

/// Folder of a project that components are put into.
const BUILD: &str = "build";

/// How a project is built.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions<'a> {
    /// The component; else `build/NAME.wasm` in the project's folder.
    pub out: Option<&'a Path>,
    /// Leave in what the language's library asks of an operating system (Python, JavaScript), so
    /// that what it prints reaches the log.
    pub wasi: bool,
}

/// A component that was built.
#[derive(Debug)]
pub struct Built {
    /// Where it lies.
    pub file: PathBuf,
    /// What it was written in.
    pub language: Language,
    /// Its length.
    pub size_bytes: usize,
    /// Interfaces and functions that it asks its host for.
    pub imports: Vec<String>,
}

/// A project on disk.
struct Project {
    /// Absolute.
    folder: PathBuf,
    /// Where what is made on the way goes.
    build: PathBuf,
    wasi: bool,
}

/// Builds the project in a folder with its language's own tools; they talk on stderr.
///
/// # Errors
/// When the folder holds no project, a tool is missing (the message says what to install), the
/// build fails, or what comes out is no policy.
pub fn build(folder: &Path, options: BuildOptions<'_>) -> Result<Built> {
    let Some(language) = Language::of(folder) else {
        let marks = Language::ALL.map(Language::mark).join(", ");
        bail!(
            "{} holds no policy: there is none of {marks}",
            folder.display()
        );
    };
    let found = fs::canonicalize(folder);
    let folder = found.with_context(|| format!("cannot read {}", folder.display()))?;
    let project = Project {
        build: folder.join(BUILD),
        folder,
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
    install::belongings(&project.folder, &name, &file)?;
    install::write(&file, &bytes)?;
    Ok(Built {
        imports: component::imports(&bytes)?,
        size_bytes: bytes.len(),
        file,
        language,
    })
}

impl Project {
    fn contract(&self) -> Result<PathBuf> {
        contract::of_project(&self.folder, &self.build)
    }

    /// A file of the project as text.
    fn read(&self, file: &str) -> Result<String> {
        let path = self.folder.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Where a tool shall put a component or module, its folder made.
    fn made(&self, file: &str) -> Result<PathBuf> {
        fs::create_dir_all(&self.build)
            .with_context(|| format!("cannot make {}", self.build.display()))?;
        Ok(self.build.join(file))
    }
}

/// What a tool made, which nobody needs after this.
fn take(file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_project_is_told_what_one_has() {
        let folder = tempfile::tempdir().unwrap();
        let error = build(folder.path(), BuildOptions::default()).unwrap_err();
        let text = error.to_string();
        for mark in ["Cargo.toml", "pyproject.toml", "package.json", "policy.c"] {
            assert!(text.contains(mark), "{text}");
        }
    }
}
