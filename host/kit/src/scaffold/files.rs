//! The files of new projects, carried along in this program.

use std::path::PathBuf;

use include_dir::{Dir, include_dir};

use crate::Language;

/// Path and contents.
type Text = (&'static str, &'static str);

/// Files of one example. They are listed by name, because the folder also holds build outputs.
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

/// A crate of this repository that a Rust project carries along.
pub(super) struct VendoredCrate {
    pub(super) name: &'static str,
    /// As a member of this repository's workspace.
    pub(super) manifest: &'static str,
    /// Files next to the manifest.
    files: &'static [Text],
    sources: Dir<'static>,
}

/// The SDK, and the core, by whose rules the SDK checks plans in tests.
pub(super) static VENDORED: [VendoredCrate; 2] = [
    VendoredCrate {
        name: "switchyard-sdk",
        manifest: include_str!("../../../../plugins/sdk/Cargo.toml"),
        files: &[(
            "README.md",
            include_str!("../../../../plugins/sdk/README.md"),
        )],
        sources: include_dir!("$CARGO_MANIFEST_DIR/../../plugins/sdk/src"),
    },
    VendoredCrate {
        name: "switchyard-core",
        manifest: include_str!("../../../core/Cargo.toml"),
        files: &[],
        sources: include_dir!("$CARGO_MANIFEST_DIR/../core/src"),
    },
];

pub(super) fn of(language: Language) -> &'static [Text] {
    match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::C => C,
    }
}

// === impl VendoredCrate ===

impl VendoredCrate {
    /// The sources and the files that their documentation includes, without the manifest.
    pub(super) fn files(&'static self) -> Vec<(PathBuf, &'static [u8])> {
        let included = self.files.iter();
        let mut files: Vec<_> = included
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes()))
            .collect();
        let mut folders = vec![&self.sources];
        while let Some(folder) = folders.pop() {
            folders.extend(folder.dirs());
            let own = folder.files();
            files.extend(own.map(|file| (PathBuf::from("src").join(file.path()), file.contents())));
        }
        files
    }
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
    fn the_sources_of_vendored_crates_are_whole() {
        let [sdk, core] = &VENDORED;
        for (vendored, file) in [
            (sdk, "README.md"),
            (sdk, "src/lib.rs"),
            (sdk, "src/window/index.rs"),
            (core, "src/plan/rules.rs"),
        ] {
            let files = vendored.files();
            let has = files.iter().any(|(path, _)| path == Path::new(file));
            assert!(has, "{}: {file}", vendored.name);
        }
    }
}
