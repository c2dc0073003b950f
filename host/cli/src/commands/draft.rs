//! Files of results: written under another name and renamed, so that an interrupted command leaves
//! the old file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tempfile::TempPath;

use super::signals;

/// Drafts that a signal removes.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is written next to the file that it will replace. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Draft {
    path: TempPath,
    target: PathBuf,
}

/// Writes a file whole or not at all.
///
/// # Errors
/// The system's reason; the file is the old one, unless it is a device or a pipe.
pub(crate) fn write_file(file: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let draft = Draft::begin(file)?;
    fs::write(draft.path(), bytes)?;
    draft.finish()
}

// === impl Draft ===

impl Draft {
    /// Begins a draft of `target`, which stays as it is until [`finish`](Self::finish).
    ///
    /// # Errors
    /// No file can be made next to it, nor in the system's folder for temporary files.
    pub(super) fn begin(target: &Path) -> io::Result<Self> {
        // A rename would replace a link instead of the file that it names.
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut options = tempfile::Builder::new();
        options.prefix(".switchyard-").suffix(".partial");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As of any new file: the umask applies.
            options.permissions(fs::Permissions::from_mode(0o666));
        }
        // First: a signal that comes next finds the draft removed.
        remove_by_signal();
        let path = {
            // Held, so that a signal finds every draft that exists in the list.
            let mut pending = drafts();
            // A file may be writable in a folder that is not.
            let made = options
                .tempfile_in(folder)
                .or_else(|_| options.tempfile())?;
            pending.push(made.path().to_owned());
            made.into_temp_path()
        };
        let draft = Self { path, target };
        if let Ok(old) = draft.target.metadata()
            && old.is_file()
        {
            fs::set_permissions(draft.path(), old.permissions())?;
        }
        Ok(draft)
    }

    /// The file to write.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the target by the draft.
    ///
    /// # Errors
    /// The target cannot be written.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { path, target } = self;
        let draft = path.to_path_buf();
        let is_special = target.metadata().is_ok_and(|there| !there.is_file());
        let finished = if is_special {
            copy(&path, &target)
        } else {
            // A rename fails between file systems, and onto a file that is mounted by itself.
            path.persist(&target)
                .or_else(|refused| copy(&refused.path, &target))
        };
        drafts().retain(|pending| *pending != draft);
        finished
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create(to)?).map(drop)
}

fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the drafts if SIGINT or SIGTERM ends the process.
fn remove_by_signal() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let watched = signals::for_each(|signal| {
            // Held to the end, so that none begins meanwhile.
            let pending = drafts();
            for draft in pending.iter() {
                // A draft that stays is harmless, and there is no time for a second attempt.
                let _ = fs::remove_file(draft);
            }
            signals::exit(signal);
        });
        if let Err(error) = watched {
            tracing::warn!(%error, "an interruption may leave a .partial file");
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_old_file_stays_until_the_result_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.json");
        fs::write(&file, "old").unwrap();
        let draft = Draft::begin(&file).unwrap();
        fs::write(draft.path(), "half").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        drop(draft);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.json"]);
        write_file(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_the_mode_stays() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, "new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;

        let device = Path::new("/dev/null");
        write_file(device, "x").unwrap();
        assert!(device.metadata().unwrap().file_type().is_char_device());
    }
}
