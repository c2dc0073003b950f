//! C: bindings made here, clang with a C library for WebAssembly, then the encoder.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, wit_parser::Resolve};

use super::{Project, take, tools};
use crate::{component, contract, install};

const ADVICE: &str = "\
Install clang, its linker for WebAssembly and a C library, then run the command again:
  Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32
          (Debian 12: clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32)
  Fedora: dnf install clang lld wasi-libc-devel compiler-rt
  any:    unpack https://github.com/WebAssembly/wasi-sdk/releases and set WASI_SDK_PATH to it";

/// Folder of a project with what is made from the contract.
const BINDINGS: &str = "bindings";

/// Sources whose names begin like this are not part of the component.
const TEST: &str = "test";

/// The folder's name: C has no manifest.
pub(super) fn name(project: &Project) -> String {
    let name = project.folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub(super) fn component(project: &Project) -> Result<Vec<u8>> {
    let mut sources = sources(&project.folder)?;
    let made = bind(&project.folder, &project.contract()?)?;
    sources.extend(
        made.into_iter()
            .filter(|path| path.extension() != Some(OsStr::new("h"))),
    );
    let module = project.made("module.part")?;
    let mut clang = compiler()?;
    clang
        .current_dir(&project.folder)
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

/// Makes a project's bindings from the contract in its folder. Returns their paths in it.
pub(crate) fn bind(folder: &Path, contract: &Path) -> Result<Vec<PathBuf>> {
    let made = made_from(contract)?;
    for (path, contents) in &made {
        install::write(&folder.join(path), contents)?;
    }
    Ok(made.into_iter().map(|(path, _)| path).collect())
}

/// What `wit-bindgen` makes from a contract for C, as paths in a project.
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

/// The project's own sources, without tests.
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

/// The SDK's clang, else the newest one that can be called, told what it compiles for.
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
