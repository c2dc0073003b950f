//! Where the fields of a configuration were written: in a line of its file, by a variable of the
//! environment, or by an option of the command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a field was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the file. A field that is not there has the line of its section, or none.
    File {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: Option<usize>,
    },
    /// By this variable or option.
    Override(String),
}

/// The origin of each field of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Written {
    file: PathBuf,
    /// By field, such as `pool[0].apps[1]`.
    lines: BTreeMap<String, usize>,
    /// By field: the variable or the option.
    overrides: BTreeMap<String, String>,
}

// === impl Origin ===

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line: None } => write!(f, "{}", file.display()),
            Self::File {
                file,
                line: Some(line),
            } => write!(f, "{}:{line}", file.display()),
            Self::Override(name) => f.write_str(name),
        }
    }
}

// === impl Written ===

impl Written {
    pub(super) fn new(file: &Path, lines: BTreeMap<String, usize>) -> Self {
        Self {
            file: file.to_path_buf(),
            lines,
            overrides: BTreeMap::new(),
        }
    }

    /// Notes that a variable or an option gives this field.
    pub fn overridden(&mut self, field: &str, by: &str) {
        self.overrides.insert(field.to_owned(), by.to_owned());
    }

    /// Where the field was written, or the closest section around it.
    pub fn origin(&self, field: &str) -> Origin {
        let mut around = field;
        loop {
            if let Some(by) = self.overrides.get(around) {
                return Origin::Override(by.clone());
            }
            if let Some(line) = self.lines.get(around) {
                return self.in_file(Some(*line));
            }
            if let Some(by) = self.overridden_inside(around) {
                return Origin::Override(by.to_owned());
            }
            match around.rfind(['.', '[']) {
                Some(end) => around = &around[..end],
                None => return self.in_file(None),
            }
        }
    }

    /// Whether the file or an override has the field.
    pub fn has(&self, field: &str) -> bool {
        self.lines.contains_key(field) || self.overrides.contains_key(field)
    }

    /// The line of this very field in the file.
    pub(super) fn line(&self, field: &str) -> Option<usize> {
        self.lines.get(field).copied()
    }

    /// Fields that are overridden, with the variable or the option.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        let overrides = self.overrides.iter();
        overrides.map(|(field, by)| (field.as_str(), by.as_str()))
    }

    /// An override of a section that only overrides have.
    fn overridden_inside(&self, section: &str) -> Option<&str> {
        let is_inside = |field: &str| {
            let rest = field.strip_prefix(section);
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let mut inside = self.overrides.iter();
        let found = inside.find(|(field, _)| is_inside(field));
        found.map(|(_, by)| by.as_str())
    }

    fn in_file(&self, line: Option<usize>) -> Origin {
        Origin::File {
            file: self.file.clone(),
            line,
        }
    }
}

/// The same fields on other lines are the same configuration.
impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_not_there_has_the_line_of_its_section() {
        let lines = [("server", 2), ("server.http", 3), ("pool[0]", 7)];
        let lines = lines.map(|(field, line)| (field.to_owned(), line));
        let mut written = Written::new(Path::new("a.toml"), BTreeMap::from(lines));
        written.overridden("server.admin", "--admin");
        written.overridden("profile.dir", "SWITCHYARD_PROFILE__DIR");
        let at = |field: &str| written.origin(field).to_string();
        assert_eq!(at("server.http"), "a.toml:3");
        assert_eq!(at("server.rows_max"), "a.toml:2");
        assert_eq!(at("pool[0].record.file"), "a.toml:7");
        assert_eq!(at("server.admin"), "--admin");
        assert_eq!(at("profile"), "SWITCHYARD_PROFILE__DIR");
        assert_eq!(at("app"), "a.toml");
    }
}
