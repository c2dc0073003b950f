//! The files of the repository as text.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::files;

/// Code, by extension.
const CODE: [&str; 5] = ["rs", "wit", "py", "js", "c"];

/// Prose, by extension.
const PROSE: &str = "md";

/// All files that the rules read, in a fixed order.
pub(super) struct Sources {
    files: Vec<SourceFile>,
}

/// One file.
pub(super) struct SourceFile {
    /// Path relative to the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

// === impl Sources ===

impl Sources {
    /// Reads every file of code and prose below `root`, without build outputs and hidden folders.
    ///
    /// # Errors
    /// Names the file or folder that cannot be read.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path);
            Ok(SourceFile {
                path: path.to_string_lossy().replace('\\', "/"),
                text,
            })
        };
        let wanted = |extension: &str| extension == PROSE || CODE.contains(&extension);
        let files = files::below(root, wanted)?;
        let files = files.into_iter().map(read).collect::<Result<_>>()?;
        Ok(Self { files })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    pub(super) fn code(&self) -> impl Iterator<Item = &SourceFile> {
        self.all().filter(|file| !file.is("md"))
    }

    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = &SourceFile> {
        let folder = format!("{folder}/");
        self.all()
            .filter(move |file| file.path.starts_with(&folder))
    }
}

impl SourceFile {
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|own| own == extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_hidden_folders_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["src", "target", ".venv"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("a.rs"), "").unwrap();
        }
        fs::write(root.path().join("notes.md"), "").unwrap();
        fs::write(root.path().join("data.bin"), [0xff]).unwrap();
        let sources = Sources::read(root.path()).unwrap();
        let paths: Vec<_> = sources.all().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["notes.md", "src/a.rs"]);
        assert_eq!(sources.code().count(), 1);
    }
}
