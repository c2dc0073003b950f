//! A new policy: an example of `plugins/examples` under its own name, with the contract and the
//! crates that it needs outside this repository.

mod files;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::files::VendoredCrate;
use crate::{Language, contract, install, manifest, project};

/// The name in the examples, replaced by the project's own.
const EXAMPLE: &str = "earliest-deadline";

/// Longest name, in bytes: names are labels of metrics.
const NAME_BYTES: usize = 64;

/// Names of crates that a Rust project depends on.
const TAKEN: [&str; 7] = [
    "switchyard-sdk",
    "switchyard-core",
    "serde",
    "test",
    "core",
    "std",
    "alloc",
];

/// Folder of the vendored crates in a Rust project.
const VENDOR: &str = "vendor";

/// One file of a new project.
struct ProjectFile {
    path: PathBuf,
    contents: Vec<u8>,
}

/// Makes the project in `folder`, which must not be there yet or be empty. Returns its files,
/// relative to the folder.
///
/// # Errors
/// When the name is no name for a policy, the folder holds something, or cannot be written.
pub fn create(folder: &Path, name: &str, language: Language) -> Result<Vec<PathBuf>> {
    check_name(name)?;
    let holds_something = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if holds_something {
        bail!(
            "{} is not empty; choose another name, or another place with --dir",
            folder.display()
        );
    }
    let mut files = own_files(name, language)?;
    files.extend(contract::files().map(|(path, contents)| ProjectFile {
        path: Path::new(contract::FOLDER).join(path),
        contents: contents.to_vec(),
    }));
    for ProjectFile { path, contents } in &files {
        install::write(&folder.join(path), contents)?;
    }
    let mut made: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
    if language == Language::C {
        // For editors and tests, which look for the header before anything is built.
        made.extend(project::bind(folder, &folder.join(contract::FOLDER))?);
    }
    Ok(made)
}

/// Lower-case letters, digits and single hyphens, as cargo, npm, pip and metrics all take it.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |part: &str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let fits = name.len() <= NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(is_plain);
    if !fits {
        bail!(
            "`{name}` is no name for a policy: at most {NAME_BYTES} lower-case letters, digits and \
             single hyphens, a letter first"
        );
    }
    if TAKEN.contains(&name) {
        bail!("`{name}` is the name of a crate that policies are built with; choose another");
    }
    Ok(())
}

/// The example's files under the project's name.
fn own_files(name: &str, language: Language) -> Result<Vec<ProjectFile>> {
    let mut files = Vec::new();
    for (path, text) in files::of(language) {
        let mut text = (*text).to_owned();
        if *path == "Cargo.toml" {
            text = rust_manifest(&text).context("plugins/examples/rust/Cargo.toml")?;
        }
        files.push(ProjectFile {
            path: path.into(),
            contents: renamed(&text, name).into_bytes(),
        });
    }
    if language == Language::Rust {
        for vendored in &files::VENDORED {
            add_crate(vendored, &mut files)?;
        }
    }
    Ok(files)
}

fn renamed(text: &str, name: &str) -> String {
    let snake = |name: &str| name.replace('-', "_");
    text.replace(EXAMPLE, name)
        .replace(&snake(EXAMPLE), &snake(name))
}

/// The example's manifest as one that stands alone, on the vendored SDK.
fn rust_manifest(member: &str) -> Result<String> {
    let manifest = manifest::standalone(member, VENDOR)?;
    let profile = manifest::wasm_profile()?;
    // A workspace of its own, so that one around it does not claim it. The vendored crates are no
    // members, so that `cargo test` tests the policy alone.
    let workspace = format!("\n[workspace]\nexclude = [\"{VENDOR}\"]\n");
    Ok(format!("{manifest}{workspace}\n{profile}"))
}

/// A crate's sources, with a manifest that stands alone.
fn add_crate(vendored: &'static VendoredCrate, files: &mut Vec<ProjectFile>) -> Result<()> {
    let at = Path::new(VENDOR).join(vendored.name);
    // The vendored crates lie next to one another.
    let manifest = manifest::standalone(vendored.manifest, "..").context(vendored.name)?;
    files.push(ProjectFile {
        path: at.join("Cargo.toml"),
        contents: manifest.to_string().into_bytes(),
    });
    files.extend(
        vendored
            .files()
            .into_iter()
            .map(|(path, contents)| ProjectFile {
                path: at.join(path),
                contents: contents.to_vec(),
            }),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(language: Language) -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("my-policy");
        create(&folder, "my-policy", language).unwrap();
        (parent, folder)
    }

    #[test]
    fn names_that_a_tool_would_refuse_are_refused_here() {
        for name in [
            "", "My", "a b", "a--b", "-a", "a-", "1a", "../a", "a_b", "serde",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["a", "edf-2", "my-policy"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_project_is_known_by_its_mark_and_has_contract_and_instructions() {
        for language in Language::ALL {
            let (_parent, folder) = made(language);
            assert_eq!(Language::of(&folder), Some(language));
            for file in ["README.md", ".gitignore", "wit/0.2/world.wit"] {
                assert!(folder.join(file).is_file(), "{language}: {file}");
            }
        }
    }

    #[test]
    fn the_examples_name_is_gone() {
        for language in Language::ALL {
            for file in own_files("my-policy", language).unwrap() {
                let text = String::from_utf8(file.contents).unwrap();
                let is_left = text.contains(EXAMPLE) || text.contains("earliest_deadline");
                assert!(!is_left, "{language}: {}", file.path.display());
            }
        }
    }

    #[test]
    fn a_rust_project_stands_alone() {
        let (_parent, folder) = made(Language::Rust);
        for krate in ["", "vendor/switchyard-sdk", "vendor/switchyard-core"] {
            let text = fs::read_to_string(folder.join(krate).join("Cargo.toml")).unwrap();
            let manifest: toml::Table = text.parse().unwrap();
            assert!(!text.contains("workspace = true"), "{krate}: {text}");
            // A component is built from these, and the core is none of them.
            let dependencies = manifest["dependencies"].as_table().unwrap();
            assert!(!dependencies.contains_key("switchyard-core"), "{krate}");
            assert!(folder.join(krate).join("src/lib.rs").is_file(), "{krate}");
        }
    }

    #[test]
    fn nothing_is_written_over() {
        let (_parent, folder) = made(Language::C);
        let error = create(&folder, "my-policy", Language::C).unwrap_err();
        assert!(error.to_string().contains("not empty"), "{error}");
    }
}
