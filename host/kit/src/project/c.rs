//! C: bindings by this program, then clang with a C library for WebAssembly, then the encoder.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, wit_parser::Resolve};

use super::folder::{ProjectFolder, take};
use super::tools;
use crate::{component, contract, install};

const ADVICE: &str = "\
Install clang, its linker for WebAssembly and a C library, then run the command again:
  Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32
          (Debian 12: clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32)
  Fedora: dnf install clang lld wasi-libc-devel compiler-rt
  any:    unpack https://github.com/WebAssembly/wasi-sdk/releases and set WASI_SDK_PATH to it";

/// Folder of a project for bindings, which are made from the contract.
const BINDINGS: &str = "bindings";

/// Sources with this prefix are tests, and not part of the component.
const TEST: &str = "test";

/// The name in the Makefile, by default the folder's name: C has no manifest.
pub(super) fn name(project: &ProjectFolder) -> String {
    let makefile = project.read("Makefile").unwrap_or_default();
    let said = makefile
        .lines()
        .find_map(|line| line.strip_prefix("NAME := "));
    let folder = project.path.file_name().unwrap_or_default();
    said.map_or_else(
        || folder.to_string_lossy().into_owned(),
        |name| name.trim().to_owned(),
    )
}

pub(super) fn component(project: &ProjectFolder) -> Result<Vec<u8>> {
    let mut sources = sources(&project.path)?;
    let made = bind(&project.path, &project.contract()?)?;
    sources.extend(
        made.into_iter()
            .filter(|path| path.extension() != Some(OsStr::new("h"))),
    );
    let module = project.output("module.part")?;
    let mut clang = compiler()?;
    clang
        .current_dir(&project.path)
        .args([
            "-mexec-model=reactor",
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
        ])
        .arg("-Wl,--strip-debug")
        .arg("-I")
        .arg(".")
        .args(["-I", BINDINGS])
        .args(sources)
        .arg("-o")
        .arg(&module);
    tools::run(&mut clang, ADVICE).context(ADVICE)?;
    component::encode(&take(&module)?)
}

/// Writes a project's bindings, made from a contract. Returns their paths in the project.
pub(crate) fn bind(folder: &Path, contract: &Path) -> Result<Vec<PathBuf>> {
    let made = made_from(contract)?;
    for (path, contents) in &made {
        install::write(&folder.join(path), contents)?;
    }
    Ok(made.into_iter().map(|(path, _)| path).collect())
}

/// The bindings for C, with their paths in a project.
fn made_from(contract: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(contract)
        .with_context(|| format!("the contract in {}", contract.display()))?;
    let world = resolve.select_world(&[package], Some(contract::WORLD))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)?;
    let made = files.iter();
    Ok(made
        .map(|(name, contents)| (Path::new(BINDINGS).join(name), contents.to_vec()))
        .collect())
}

/// The sources of the project, without tests.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = PathBuf::from(entry?.file_name());
        let is_source = name.extension() == Some(OsStr::new("c"));
        if is_source && !name.to_string_lossy().starts_with(TEST) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// The clang of `WASI_SDK_PATH`, by default the newest one in `PATH`, with its target.
fn compiler() -> Result<Command> {
    if let Some(sdk) = env::var_os("WASI_SDK_PATH") {
        let mut clang = Command::new(Path::new(&sdk).join("bin/clang"));
        clang.arg("--target=wasm32-wasip1");
        return Ok(clang);
    }
    let Some(found) = tools::newest("clang") else {
        bail!("clang is not installed. {ADVICE}");
    };
    let mut clang = Command::new(found);
    clang.arg("--target=wasm32-wasi");
    Ok(clang)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_part_of_the_component() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["policy.c", "scheduler.c", "scheduler.h", "test_scheduler.c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = sources(folder.path()).unwrap();
        assert_eq!(found, [Path::new("policy.c"), Path::new("scheduler.c")]);
    }

    #[test]
    fn bindings_are_made_from_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let contract = contract::of_project(folder.path(), folder.path()).unwrap();
        let made = bind(folder.path(), &contract).unwrap();
        assert!(
            made.contains(&PathBuf::from("bindings/policy.h")),
            "{made:?}"
        );
        assert!(
            folder
                .path()
                .join("bindings/policy_component_type.o")
                .is_file()
        );
    }
}
