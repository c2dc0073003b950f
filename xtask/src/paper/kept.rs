//! Results of simulations, kept below `target/paper/runs`: a set of figures that was interrupted goes on where
//! it ended.
//!
//! A result is used again only if nothing that it follows from has changed: its command line, the program,
//! the task runner, the components of the policies that the line names, the preparations and needed files of
//! its figure, and every data file of the figures.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files;

/// Results of one program.
#[derive(Debug)]
pub(super) struct Kept {
    folder: PathBuf,
    /// Components by the names of their policies.
    policies: Vec<(String, u64)>,
    /// Of both programs and of the data files.
    base: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptFile<T> {
    /// A hash of everything that the result follows from.
    key: String,
    result: T,
}

// === impl Kept ===

impl Kept {
    /// Those in `folder`.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(super) fn open(
        folder: PathBuf,
        program: &Path,
        policies: &Path,
        data: &Path,
    ) -> Result<Self> {
        let mut base = DefaultHasher::new();
        changed(program)?.hash(&mut base);
        // It reads the program's output.
        changed(&env::current_exe()?)?.hash(&mut base);
        for file in files::below(data, |extension| {
            matches!(extension, "toml" | "json" | "csv")
        })? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let is_figure =
                name.ends_with(".toml") && (name.starts_with("fig") || name.starts_with("live"));
            if !is_figure {
                (&file, contents(&file)?).hash(&mut base);
            }
        }
        let component = |file: PathBuf| {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            Ok((name.into_owned(), contents(&file)?))
        };
        let components = files::below(policies, |extension| extension == "wasm")?;
        Ok(Self {
            folder,
            policies: components
                .into_iter()
                .map(component)
                .collect::<Result<_>>()?,
            base: base.finish(),
        })
    }

    /// The result of the `at`-th command of a figure, kept or made now. `rest` says the rest that it follows
    /// from.
    ///
    /// # Errors
    /// It cannot be made or kept.
    pub(super) fn result<T: Serialize + DeserializeOwned>(
        &self,
        (figure, at): (&str, usize),
        line: &str,
        rest: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let key = self.key(line, rest);
        let file = self.folder.join(figure).join(format!("{at}.json"));
        if let Some(kept) = read(&file).filter(|kept: &KeptFile<T>| kept.key == key) {
            eprintln!("{figure}: kept in {}: {line}", file.display());
            return Ok(kept.result);
        }
        let result = make()?;
        let made = KeptFile { key, result };
        write(&file, &made).with_context(|| file.display().to_string())?;
        Ok(made.result)
    }

    fn key(&self, line: &str, rest: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (self.base, line, rest).hash(&mut hasher);
        let named = self
            .policies
            .iter()
            .filter(|(name, _)| line.contains(name.as_str()));
        named.for_each(|policy| policy.hash(&mut hasher));
        format!("{:016x}", hasher.finish())
    }
}

/// None if there is none, or one of another form.
fn read<T: DeserializeOwned>(file: &Path) -> Option<KeptFile<T>> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Replaces a file as a whole.
fn write<T: Serialize>(file: &Path, made: &KeptFile<T>) -> Result<()> {
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    let part = file.with_extension("part");
    fs::write(&part, serde_json::to_vec(made)?)?;
    Ok(fs::rename(&part, file)?)
}

/// A program is large: its size and the time of its last change stand for it.
fn changed(file: &Path) -> Result<(u64, SystemTime)> {
    let read = || -> Result<_> {
        let metadata = fs::metadata(file)?;
        Ok((metadata.len(), metadata.modified()?))
    };
    read().with_context(|| file.display().to_string())
}

/// A hash of a file.
pub(super) fn contents(file: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    bytes.hash(&mut hasher);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A program, two components, a profile and a figure.
    fn bed() -> tempfile::TempDir {
        let bed = tempfile::tempdir().unwrap();
        for file in [
            "program",
            "p/edf.wasm",
            "p/sjf.wasm",
            "d/profile.json",
            "d/fig01.toml",
        ] {
            let file = bed.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "1").unwrap();
        }
        bed
    }

    /// Runs a figure with `edf`; whether it was made.
    fn is_made(bed: &Path, rest: &str) -> bool {
        let kept = Kept::open(
            bed.join("runs"),
            &bed.join("program"),
            &bed.join("p"),
            &bed.join("d"),
        );
        let made = Cell::new(false);
        let make = || {
            made.set(true);
            Ok(vec![Some(0.1), None])
        };
        let result = kept
            .unwrap()
            .result(("a/fig01", 0), "simulate --policy edf", rest, make);
        assert_eq!(result.unwrap(), [Some(0.1), None]);
        made.get()
    }

    #[test]
    fn results_are_kept_until_something_they_follow_from_changes() {
        let bed = bed();
        let bed = bed.path();
        assert!(is_made(bed, ""));
        assert!(!is_made(bed, ""));
        for other in ["p/sjf.wasm", "d/fig01.toml"] {
            fs::write(bed.join(other), "2").unwrap();
            assert!(!is_made(bed, ""), "{other}");
        }
        for own in ["p/edf.wasm", "d/profile.json", "program"] {
            fs::write(bed.join(own), "22").unwrap();
            assert!(is_made(bed, ""), "{own}");
            assert!(!is_made(bed, ""), "{own}");
        }
        assert!(is_made(bed, "prepare"));
    }
}
