//! The files of variants, as groups for the file watcher.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use switchyard_core::ids::VariantId;
use switchyard_policy::files::{
    FileGroups, FileStamps, FileWatcher, WatchError, WatchOptions, WatchedFolder,
};

/// Weights must look the same for this long before they are read: they take longer to write than
/// policies. A read of half-written weights is refused, and repeated once they are whole.
const SETTLE: Duration = Duration::from_millis(150);

/// The folder of each variant, without its subfolders.
struct WeightFolders(BTreeMap<VariantId, PathBuf>);

/// Watches the weights of a pool. Files that exist already are not reported. `report` is called on
/// the watcher's own thread, for one variant at a time.
///
/// # Errors
/// A folder does not exist or cannot be read, or the system gives no thread.
pub(super) fn watch(
    pool: &str,
    folders: BTreeMap<VariantId, PathBuf>,
    report: impl Fn(VariantId) + Send + 'static,
) -> Result<FileWatcher, WatchError> {
    let options = WatchOptions {
        settle: SETTLE,
        ..WatchOptions::default()
    };
    // Removed weights are a change as well: the renewal reports the missing file.
    let report = move |variant, _change| report(variant);
    FileWatcher::start(
        &format!("{pool}-weights"),
        WeightFolders(folders),
        &options,
        report,
    )
}

// === impl WeightFolders ===

impl FileGroups for WeightFolders {
    type Key = VariantId;

    fn folders(&self) -> Vec<WatchedFolder> {
        let folders = self.0.values().map(|path| WatchedFolder {
            path: path.clone(),
            with_subfolders: false,
        });
        folders.collect()
    }

    fn keys(&self) -> io::Result<BTreeSet<VariantId>> {
        Ok(self.0.keys().copied().collect())
    }

    fn stamps(&self, variant: &VariantId) -> io::Result<FileStamps> {
        let mut stamps = FileStamps::default();
        if let Some(folder) = self.0.get(variant) {
            stamps.add_folder(folder, false)?;
        }
        Ok(stamps)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_variant_whose_weights_change_is_reported() {
        let zoo = tempfile::tempdir().unwrap();
        let folders = [3, 5].map(|id| (VariantId(id), zoo.path().join(id.to_string())));
        for (_, folder) in &folders {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("weights.safetensors"), "old").unwrap();
        }
        let (send, reports) = mpsc::channel();
        let report = move |variant| send.send(variant).unwrap();
        let _watcher = watch("main", folders.into_iter().collect(), report).unwrap();
        fs::write(zoo.path().join("5/weights.safetensors"), "newer").unwrap();
        let report = reports.recv_timeout(Duration::from_secs(20));
        assert_eq!(report, Ok(VariantId(5)));
    }

    /// As volumes are mounted: the zoo is reached through a link above it.
    #[cfg(unix)]
    #[test]
    fn weights_behind_a_link_that_leads_elsewhere_are_reported() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        for version in ["one", "two"] {
            let folder = root.path().join(version).join("zoo/3");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("weights.safetensors"), version).unwrap();
        }
        let current = root.path().join("current");
        symlink("one", &current).unwrap();
        let (send, reports) = mpsc::channel();
        let report = move |variant| send.send(variant).unwrap();
        let folders = [(VariantId(3), current.join("zoo/3"))];
        let _watcher = watch("main", folders.into(), report).unwrap();
        // The second time no look is under way any more: the poll has to see it.
        for version in ["two", "one"] {
            symlink(version, root.path().join("next")).unwrap();
            fs::rename(root.path().join("next"), &current).unwrap();
            let report = reports.recv_timeout(Duration::from_secs(20));
            assert_eq!(report, Ok(VariantId(3)));
        }
    }
}
