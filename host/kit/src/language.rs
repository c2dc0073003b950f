//! What policies are written in.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language that this kit can make projects in and build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the SDK, by cargo.
    Rust,
    /// By pip and componentize-py.
    Python,
    /// By npm and componentize-js.
    JavaScript,
    /// By clang, with bindings made here.
    C,
}

// === impl Language ===

impl Language {
    /// All of them, the first one first.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::JavaScript, Self::C];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::C => "c",
        }
    }

    /// The file that tells a project of this language from the others.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript => "package.json",
            Self::C => "policy.c",
        }
    }

    /// What a folder's project is written in, if it is one.
    pub fn of(folder: &Path) -> Option<Self> {
        let marked = |language: &Self| folder.join(language.mark()).is_file();
        Self::ALL.into_iter().find(marked)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| format!("{name} is none of rust, python, js, c"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for language in Language::ALL {
            assert_eq!(language.to_string().parse(), Ok(language));
        }
        assert!("perl".parse::<Language>().is_err());
    }

    #[test]
    fn a_folder_is_known_by_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Language::of(folder.path()), None);
        std::fs::write(folder.path().join("policy.c"), "").unwrap();
        assert_eq!(Language::of(folder.path()), Some(Language::C));
    }
}
