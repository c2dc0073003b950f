//! The languages of policies.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language in which this kit makes and builds projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the SDK, by cargo.
    Rust,
    /// By pip and componentize-py.
    Python,
    /// By npm and componentize-js.
    JavaScript,
    /// By clang, with bindings that this kit makes.
    C,
}

// === impl Language ===

impl Language {
    /// All languages, Rust first.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::JavaScript, Self::C];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::C => "c",
        }
    }

    /// The file by which a project of this language is recognised.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript => "package.json",
            Self::C => "policy.c",
        }
    }

    /// The language of the project in a folder, if there is one.
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
        found.ok_or_else(|| format!("unknown language `{name}`; known: rust, python, js, c"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for language in Language::ALL {
            assert_eq!(language.to_string().parse(), Ok(language));
        }
        assert!("perl".parse::<Language>().is_err());
    }

    #[test]
    fn a_project_is_recognised_by_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Language::of(folder.path()), None);
        std::fs::write(folder.path().join("policy.c"), "").unwrap();
        assert_eq!(Language::of(folder.path()), Some(Language::C));
    }
}
