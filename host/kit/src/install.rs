//! Writes files by a rename, so that a server that watches the folder never sees half a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result};

/// Writes `bytes` to a temporary file and renames it to `path`. Does nothing when the file has
/// these bytes already. Returns whether the file changed.
///
/// # Errors
/// When the folder cannot be made or written; with the path.
pub fn write(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let temporary = temporary(path);
    fs::write(&temporary, bytes)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// Folder of a project with the artifacts that its policy reads (`read-artifact`).
const WEIGHTS: &str = "weights";

/// Copies a component's settings and artifacts next to it: the project's `NAME.toml`, and the files
/// of its folder `weights` into the folder with the component's name. Both are optional. Call this
/// before the component is written, because the server loads the policy then.
///
/// # Errors
/// When a file cannot be read or written; with its path.
pub fn belongings(project: &Path, name: &str, component: &Path) -> Result<()> {
    let source = project.join(format!("{name}.toml"));
    match fs::read(&source) {
        Ok(settings) => write(&component.with_extension("toml"), &settings).map(drop)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", source.display()));
        }
    }
    folder(&project.join(WEIGHTS), &component.with_extension(""))
}

/// Copies a component with its settings and artifacts from one folder of policies to another. The
/// component comes last, because a server that watches the folder loads it then.
///
/// # Errors
/// When a file cannot be read or written; with its path.
pub fn policy(from: &Path, name: &str, to: &Path) -> Result<()> {
    folder(&from.join(name), &to.join(name))?;
    let settings = from.join(format!("{name}.toml"));
    match fs::read(&settings) {
        Ok(bytes) => write(&to.join(format!("{name}.toml")), &bytes).map(drop)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", settings.display()));
        }
    }
    let component = from.join(format!("{name}.wasm"));
    let bytes =
        fs::read(&component).with_context(|| format!("cannot read {}", component.display()))?;
    write(&to.join(format!("{name}.wasm")), &bytes).map(drop)
}

/// Copies a folder; one that does not exist has no files. Other files in `to` stay: the operator may
/// have put them there.
///
/// # Errors
/// When a file cannot be read or written; with its path.
pub fn folder(from: &Path, to: &Path) -> Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", from.display())),
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            folder(&source, &target)?;
            continue;
        }
        let bytes =
            fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
        write(&target, &bytes)?;
    }
    Ok(())
}

/// A path in the same folder that a watcher ignores: hidden, and without `.wasm` at the end.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policies/fcfs.wasm");
        assert!(write(&path, b"one").unwrap());
        let first = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(!write(&path, b"one").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first);
        assert!(write(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn no_temporary_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("fcfs.wasm"), b"one").unwrap();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["fcfs.wasm"]);
    }

    #[test]
    fn the_temporary_file_is_no_policy() {
        let name = temporary(Path::new("/a/fcfs.wasm"));
        assert!(
            name.extension()
                .is_some_and(|extension| extension != "wasm")
        );
        assert!(name.file_name().unwrap().to_string_lossy().starts_with('.'));
    }

    #[test]
    fn weights_are_copied_next_to_the_component() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("weights"), folder.path().join("to/name"));
        super::folder(&from, &to).unwrap();
        assert!(!to.exists(), "a policy without weights has no folder");
        fs::create_dir_all(from.join("image")).unwrap();
        fs::write(from.join("a.safetensors"), b"one").unwrap();
        fs::write(from.join("image/b.safetensors"), b"two").unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join("own.safetensors"), b"three").unwrap();
        super::folder(&from, &to).unwrap();
        for (file, bytes) in [
            ("a.safetensors", b"one".as_slice()),
            ("image/b.safetensors", b"two"),
            ("own.safetensors", b"three"),
        ] {
            assert_eq!(fs::read(to.join(file)).unwrap(), bytes, "{file}");
        }
    }

    #[test]
    fn settings_get_the_name_of_the_component() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out/other.wasm");
        belongings(folder.path(), "mine", &out).unwrap();
        assert!(!out.with_extension("toml").exists());
        fs::write(folder.path().join("mine.toml"), "a = 1").unwrap();
        belongings(folder.path(), "mine", &out).unwrap();
        assert_eq!(fs::read(out.with_extension("toml")).unwrap(), b"a = 1");
    }
}
