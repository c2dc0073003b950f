//! Files and sizes of a wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use switchyard_kit::shell;

use crate::files::below;

const CONTENTS: &str = include_str!("contents.py");

/// Largest wheel.
const WHEEL_MB_MAX: f64 = 60.0;

/// Largest module with all that its simulations need: policies and profiles, neither program nor zoo.
const MODULE_MB_MAX: f64 = 25.0;

/// Largest wheel without the zoo. Module and program contain wasmtime each.
const WITHOUT_ZOO_MB_MAX: f64 = 45.0;

/// Compressed bytes by part, and names.
#[derive(Deserialize)]
struct Contents {
    module: u64,
    program: u64,
    policies: u64,
    zoo: u64,
    other: u64,
    wheel: u64,
    files: Vec<String>,
}

/// Prints the sizes.
///
/// # Errors
/// The wheel lacks a file of the project, or is too large.
pub(super) fn check(python: &Path, wheel: &Path, project: &Path) -> Result<()> {
    let mut command = Command::new(python);
    let text = shell::answer(command.args(["-c", CONTENTS]).arg(wheel));
    let text = text.with_context(|| format!("{}: is not a zip file", wheel.display()))?;
    let contents: Contents = serde_json::from_str(&text).context("contents.py")?;
    println!(
        "{} files, with all modules, policies, models and profiles",
        contents.check_files(project)?
    );
    contents.check_sizes()
}

// === impl Contents ===

impl Contents {
    /// Every file of the module and of `share` is in the wheel. Returns their number.
    fn check_files(&self, project: &Path) -> Result<usize> {
        let module = project.join("switchyard");
        let share = project.join("data/data/share");
        let mut files = below(&module, |extension| extension != "pyc")?;
        ensure!(!files.is_empty(), "{}: has no files", module.display());
        let shared = below(&share, |_| true)?;
        for kind in ["policies", "zoo", "profiles"] {
            let folder = share.join("switchyard").join(kind);
            let is_there = shared.iter().any(|file| file.starts_with(&folder));
            ensure!(is_there, "{}: has no files", folder.display());
        }
        files.extend(shared);
        let missing = |file: &&PathBuf| !self.has(project, file);
        let missing: Vec<_> = files.iter().filter(missing).collect();
        ensure!(missing.is_empty(), "the wheel lacks {missing:?}");
        Ok(files.len())
    }

    /// Files of `data` are in `NAME-VERSION.data`.
    fn has(&self, project: &Path, file: &Path) -> bool {
        let Ok(name) = file.strip_prefix(project) else {
            return false;
        };
        let own = match name.strip_prefix("data") {
            Ok(shared) => format!(".data/{}", shared.display()),
            Err(_) => return self.files.iter().any(|packed| Path::new(packed) == name),
        };
        self.files.iter().any(|packed| packed.ends_with(&own))
    }

    fn check_sizes(&self) -> Result<()> {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        println!(
            "compressed MB: module {:.1}, program {:.1}, policies {:.1}, zoo {:.1}, other {:.1}",
            mb(self.module),
            mb(self.program),
            mb(self.policies),
            mb(self.zoo),
            mb(self.other),
        );
        let without_zoo = self.wheel.saturating_sub(self.zoo);
        let module = without_zoo.saturating_sub(self.program);
        let limits = [
            ("wheel", self.wheel, WHEEL_MB_MAX),
            ("wheel without the zoo", without_zoo, WITHOUT_ZOO_MB_MAX),
            ("module with policies and profiles", module, MODULE_MB_MAX),
        ];
        for (part, bytes, mb_max) in limits {
            let mb = mb(bytes);
            println!("{part}: {mb:.1} MB, at most {mb_max}");
            ensure!(mb <= mb_max, "{part}: {mb:.1} MB, must be at most {mb_max}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(files: &[&str]) -> Contents {
        Contents {
            module: 0,
            program: 0,
            policies: 0,
            zoo: 0,
            other: 0,
            wheel: 0,
            files: files.iter().map(|&file| file.to_owned()).collect(),
        }
    }

    #[test]
    fn missing_files_and_large_wheels_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "switchyard/_component/app.py",
            "data/data/share/switchyard/policies/fcfs.wasm",
            "data/data/share/switchyard/zoo/a.json",
            "data/data/share/switchyard/profiles/reference.json",
        ];
        for file in files {
            let file = dir.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let packed = files.map(|file| file.replace("data/data", "switchyard-0.1.0.data/data"));
        let packed: Vec<&str> = packed.iter().map(String::as_str).collect();
        assert_eq!(contents(&packed).check_files(dir.path()).unwrap(), 4);
        let error = contents(&packed[1..]).check_files(dir.path()).unwrap_err();
        assert!(error.to_string().contains("_component/app.py"), "{error}");
        let large = Contents {
            wheel: 61_000_000,
            ..contents(&[])
        };
        let error = large.check_sizes().unwrap_err().to_string();
        assert_eq!(error, "wheel: 61.0 MB, must be at most 60");
        let zoo = Contents {
            wheel: 55_000_000,
            zoo: 9_000_000,
            program: 25_000_000,
            ..contents(&[])
        };
        let error = zoo.check_sizes().unwrap_err().to_string();
        let expected = "wheel without the zoo: 46.0 MB, must be at most 45";
        assert_eq!(error, expected);
        let module = Contents {
            program: 10_000_000,
            wheel: 45_000_000,
            zoo: 9_000_000,
            ..contents(&[])
        };
        let error = module.check_sizes().unwrap_err().to_string();
        let expected = "module with policies and profiles: 26.0 MB, must be at most 25";
        assert_eq!(error, expected);
    }
}
