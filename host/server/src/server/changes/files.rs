//! The files that a configuration rests on: its own, and the cards of its apps.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use switchyard_models::card::{APP_CARD, VARIANT_CARD};
use switchyard_policy::files::{FileGroups, FileStamps, WatchedFolder};

use crate::config::Config;

/// The files, as one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigFiles {
    file: PathBuf,
    /// The folders of the apps.
    apps: BTreeSet<PathBuf>,
}

/// The files as a start found them.
pub(crate) struct FilesAtStart {
    files: ConfigFiles,
    /// `None`: the system did not say.
    looks: Option<FileStamps>,
}

// === impl FilesAtStart ===

impl FilesAtStart {
    /// Looks at the files of this configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let files = ConfigFiles::of(&config.source, config);
        Self {
            looks: files.looks().ok(),
            files,
        }
    }

    /// Whether a file has changed since then.
    pub(super) fn have_changed(&self) -> bool {
        self.files.looks().ok() != self.looks
    }
}

// === impl ConfigFiles ===

impl ConfigFiles {
    pub(super) fn of(file: &Path, config: &Config) -> Self {
        let apps = config.apps.iter();
        Self {
            file: file.to_owned(),
            apps: apps.map(|app| app.zoo.join(&app.name)).collect(),
        }
    }

    /// How they look now.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) fn looks(&self) -> io::Result<FileStamps> {
        let mut stamps = FileStamps::default();
        stamps.add_file(&self.file)?;
        for app in &self.apps {
            if !stamps.add_file(&app.join(APP_CARD))? {
                continue;
            }
            for entry in std::fs::read_dir(app)? {
                stamps.add_file(&entry?.path().join(VARIANT_CARD))?;
            }
        }
        Ok(stamps)
    }
}

impl FileGroups for ConfigFiles {
    type Key = ();

    fn folders(&self) -> Vec<WatchedFolder> {
        let folder = match self.file.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let zoos: BTreeSet<&Path> = self.apps.iter().filter_map(|app| app.parent()).collect();
        let apps = self.apps.iter().map(PathBuf::as_path);
        let folders = zoos.into_iter().chain(apps).filter(|path| path.is_dir());
        let watched = |path: &Path| WatchedFolder {
            path: path.to_owned(),
            with_subfolders: false,
        };
        std::iter::once(folder)
            .chain(folders)
            .map(watched)
            .collect()
    }

    fn keys(&self) -> io::Result<BTreeSet<()>> {
        Ok(BTreeSet::from([()]))
    }

    fn stamps(&self, (): &()) -> io::Result<FileStamps> {
        self.looks()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn a_new_variant_changes_the_looks_and_a_file_next_to_the_cards_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let app = folder.path().join("heart");
        fs::create_dir_all(app.join("cnn")).unwrap();
        fs::write(app.join(APP_CARD), "").unwrap();
        fs::write(app.join("cnn").join(VARIANT_CARD), "").unwrap();
        let files = ConfigFiles {
            file: folder.path().join("switchyard.toml"),
            apps: BTreeSet::from([app.clone()]),
        };
        let before = files.looks().unwrap();
        fs::write(app.join("README.md"), "").unwrap();
        assert_eq!(files.looks().unwrap(), before);
        fs::create_dir(app.join("lstm")).unwrap();
        fs::write(app.join("lstm").join(VARIANT_CARD), "").unwrap();
        let after = files.looks().unwrap();
        assert_ne!(after, before);
        fs::write(&files.file, "[server]").unwrap();
        assert_ne!(files.looks().unwrap(), after);
    }
}
