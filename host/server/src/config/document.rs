//! The tree of a configuration's file: paths to its fields, their lines and their values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

/// Longest value that a message shows, in characters.
const SHOWN_MAX: usize = 80;

/// One step from a table or list to a value inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// The steps to a field. Shown as `pool[0].apps[1]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldPath(pub(super) Vec<Step>);

/// A tree that borrows from the text of its file and from overrides.
pub(super) struct Document<'t> {
    text: &'t str,
    root: DeTable<'t>,
}

// === impl FieldPath ===

impl FieldPath {
    /// The path of an error of serde.
    pub(super) fn of(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment;
        let steps = path.iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        Self(steps.collect())
    }

    /// The field of this name inside.
    pub(super) fn with(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if i == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

// === impl Document ===

impl<'t> Document<'t> {
    /// The tree, and every error of the syntax. Without errors it is whole.
    pub(super) fn parse(text: &'t str) -> (Self, Vec<Error>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let root = root.into_inner();
        (Self { text, root }, errors)
    }

    /// The line of each field, counted from 1.
    pub(super) fn lines(&self) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        self.add_lines(&FieldPath::default(), &self.root, &mut lines);
        lines
    }

    fn add_lines(&self, at: &FieldPath, table: &DeTable<'t>, lines: &mut BTreeMap<String, usize>) {
        for (key, value) in table {
            let at = at.with(key.get_ref());
            lines.insert(at.to_string(), line_of(self.text, key.span().start));
            self.add_lines_of(&at, value, lines);
        }
    }

    fn add_lines_of(
        &self,
        at: &FieldPath,
        value: &Spanned<DeValue<'t>>,
        lines: &mut BTreeMap<String, usize>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_lines(at, table, lines),
            DeValue::Array(array) => {
                for (i, element) in array.iter().enumerate() {
                    let mut at = at.clone();
                    at.0.push(Step::Index(i));
                    let line = line_of(self.text, element.span().start);
                    lines.insert(at.to_string(), line);
                    self.add_lines_of(&at, element, lines);
                }
            }
            _ => {}
        }
    }

    /// Reads the tree as a type.
    ///
    /// # Errors
    /// The first field at fault.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, serde_path_to_error::Error<Error>> {
        let root = Spanned::new(0..self.text.len(), self.root.clone());
        serde_path_to_error::deserialize(Deserializer::from(root))
    }

    /// The value of a field as it stands in the file, if it fits into a message.
    pub(super) fn shown(&self, path: &FieldPath) -> Option<String> {
        let value = self.get(path)?;
        let text = self.text.get(value.span())?;
        let is_short = !text.is_empty() && text.chars().count() <= SHOWN_MAX;
        let is_scalar = !matches!(value.get_ref(), DeValue::Table(_));
        (is_short && is_scalar && !text.contains('\n')).then(|| text.to_owned())
    }

    pub(super) fn get(&self, path: &FieldPath) -> Option<&Spanned<DeValue<'t>>> {
        let (first, rest) = path.0.split_first()?;
        let Step::Key(key) = first else { return None };
        let mut value = self.root.get(key.as_str())?;
        for step in rest {
            value = match (step, value.get_ref()) {
                (Step::Key(key), DeValue::Table(table)) => table.get(key.as_str())?,
                (Step::Index(index), DeValue::Array(array)) => array.get(*index)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Puts a value there; tables on the way are made. Tells whether there is a place for it.
    pub(super) fn put(&mut self, path: &FieldPath, value: DeValue<'t>) -> bool {
        let Some((last, way)) = path.0.split_last() else {
            return false;
        };
        let mut here = Container::Table(&mut self.root);
        for step in way {
            here = match here.inside(step) {
                Some(inside) => inside,
                None => return false,
            };
        }
        let value = Spanned::new(0..0, value);
        match (here, last) {
            (Container::Table(table), Step::Key(key)) => {
                table.insert(Spanned::new(0..0, Cow::Owned(key.clone())), value);
                true
            }
            (Container::Array(array), Step::Index(index)) => match array.get_mut(*index) {
                Some(element) => {
                    *element = value;
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Takes a field out of its table. Tells whether it was in one.
    pub(super) fn remove(&mut self, path: &FieldPath) -> bool {
        let Some((Step::Key(key), way)) = path.0.split_last() else {
            return false;
        };
        let mut here = Container::Table(&mut self.root);
        for step in way {
            here = match here.inside(step) {
                Some(inside) => inside,
                None => return false,
            };
        }
        match here {
            Container::Table(table) => table.remove(key.as_str()).is_some(),
            Container::Array(_) => false,
        }
    }
}

/// A value that has others inside.
enum Container<'a, 't> {
    Table(&'a mut DeTable<'t>),
    Array(&'a mut DeArray<'t>),
}

impl<'a, 't> Container<'a, 't> {
    fn inside(self, step: &Step) -> Option<Self> {
        let value = match (self, step) {
            (Self::Table(table), Step::Key(key)) => {
                if !table.contains_key(key.as_str()) {
                    let empty = Spanned::new(0..0, DeValue::Table(DeTable::new()));
                    table.insert(Spanned::new(0..0, Cow::Owned(key.clone())), empty);
                }
                table.get_mut(key.as_str())?
            }
            (Self::Array(array), Step::Index(index)) => array.get_mut(*index)?,
            _ => return None,
        };
        match value.get_mut() {
            DeValue::Table(table) => Some(Self::Table(table)),
            DeValue::Array(array) => Some(Self::Array(array)),
            _ => None,
        }
    }
}

/// The line of a byte, counted from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// The column of a byte in its line, in characters, counted from 1.
pub(super) fn column_of(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    1 + line.chars().count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn path(steps: &[&str]) -> FieldPath {
        let steps = steps.iter().map(|step| match step.parse() {
            Ok(index) => Step::Index(index),
            Err(_) => Step::Key((*step).to_owned()),
        });
        FieldPath(steps.collect())
    }

    #[test]
    fn every_field_has_its_line() {
        let text =
            "[server]\nhttp = \"a\"\n\n[[pool]]\napps = [\n  \"x\",\n]\n[pool.record]\nfile = 3\n";
        let (document, errors) = Document::parse(text);
        assert!(errors.is_empty());
        let lines = document.lines();
        let line = |field: &str| lines[field];
        assert_eq!(line("server.http"), 2);
        assert_eq!(line("pool[0].apps[0]"), 6);
        assert_eq!(line("pool[0].record.file"), 9);
        let shown = document.shown(&path(&["pool", "0", "record", "file"]));
        assert_eq!(shown.as_deref(), Some("3"));
    }

    #[test]
    fn fields_are_put_and_removed() {
        let (mut document, _) = Document::parse("[[pool]]\nname = \"a\"\n");
        assert!(document.put(&path(&["server", "threads"]), DeValue::Boolean(true)));
        assert!(document.put(&path(&["pool", "0", "name"]), DeValue::Boolean(true)));
        assert!(!document.put(&path(&["pool", "1", "name"]), DeValue::Boolean(true)));
        assert!(document.remove(&path(&["pool", "0", "name"])));
        assert!(!document.remove(&path(&["pool", "0", "name"])));
        assert!(document.get(&path(&["server", "threads"])).is_some());
    }
}
