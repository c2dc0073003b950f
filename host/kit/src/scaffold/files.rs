//! What new projects are made of, carried along in this program.

use std::path::PathBuf;

use include_dir::{Dir, include_dir};

use crate::Language;

/// Path and contents.
type Text = (&'static str, &'static str);

/// Files of one example. Listed, not swept up: a folder also holds what building it left there.
macro_rules! example {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$((
            $file,
            include_str!(concat!("../../../../plugins/examples/", $folder, "/", $file)),
        )),+]
    };
}

const RUST: &[Text] =
    example!("rust": ".gitignore", "Cargo.toml", "README.md", "src/lib.rs", "src/tests.rs");

const PYTHON: &[Text] = example!(
    "python":
    ".gitignore", "README.md", "app.py", "pyproject.toml", "requirements.txt", "scheduler.py",
    "test_scheduler.py",
);

const JAVASCRIPT: &[Text] = example!(
    "js":
    ".gitignore", "README.md", "app.js", "build.mjs", "package.json", "scheduler.js",
    "scheduler.test.js",
);

const C: &[Text] = example!(
    "c":
    ".gitignore", "Makefile", "README.md", "policy.c", "scheduler.c", "scheduler.h",
    "test_scheduler.c",
);

/// The SDK as a member of this repository's workspace.
pub(super) const SDK_MANIFEST: &str = include_str!("../../../../plugins/sdk/Cargo.toml");

const SDK_README: &str = include_str!("../../../../plugins/sdk/README.md");
static SDK_SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../plugins/sdk/src");

pub(super) fn of(language: Language) -> &'static [Text] {
    match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::C => C,
    }
}

/// The SDK's sources and what its documentation includes.
pub(super) fn sdk() -> impl Iterator<Item = (PathBuf, &'static [u8])> {
    let mut folders = vec![&SDK_SOURCES];
    let mut files = vec![(PathBuf::from("README.md"), SDK_README.as_bytes())];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        let own = folder.files();
        files.extend(own.map(|file| (PathBuf::from("src").join(file.path()), file.contents())));
    }
    files.into_iter()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Files that git keeps in a folder, by name.
    fn kept(folder: &Path) -> Vec<String> {
        let mut command = std::process::Command::new("git");
        command.args(["ls-files"]).current_dir(folder);
        let listed = crate::shell::answer(&mut command).unwrap_or_default();
        listed.lines().map(str::to_owned).collect()
    }

    #[test]
    fn no_file_of_an_example_is_forgotten() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/examples");
        for language in Language::ALL {
            for file in kept(&examples.join(language.name())) {
                let is_listed = of(language).iter().any(|(path, _)| *path == file);
                assert!(is_listed, "{language}: {file}");
            }
        }
    }

    #[test]
    fn the_sdks_sources_are_whole() {
        let names: Vec<PathBuf> = sdk().map(|(path, _)| path).collect();
        for file in ["README.md", "src/lib.rs", "src/window/index.rs"] {
            assert!(names.contains(&PathBuf::from(file)), "{file}");
        }
    }
}
