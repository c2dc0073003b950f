//! A configuration with all of its mistakes: fields at fault are left out or replaced one by one, so
//! that the fields after them are read too.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeArray, DeTable, DeValue};

use super::document::{Document, FieldPath, Step, column_of, line_of};
use super::error::{self, suggestion};
use super::written::{Origin, Written};
use super::{Config, ConfigError, Overrides, check};

/// Most fields that are replaced. No file has more mistakes that are worth reading.
const REPLACED_MAX: usize = 100;

/// Most errors of the syntax that are kept: one mistake can lead to thousands.
const SYNTAX_MAX: usize = 50;

/// Most characters of a line that a message shows.
const LINE_MAX: usize = 160;

/// A configuration that was read, and its mistakes.
#[derive(Debug)]
pub struct Draft {
    config: Option<Config>,
    mistakes: Vec<ConfigError>,
    /// Fields that are not as the file has them.
    replaced: BTreeSet<String>,
    /// Lines whose syntax is wrong.
    broken: BTreeSet<usize>,
}

/// Reads a tree again and again.
struct Drafting<'t> {
    document: Document<'t>,
    overrides: &'t Overrides,
    written: Written,
    mistakes: Vec<ConfigError>,
    replaced: BTreeSet<String>,
    /// Fields that are missing because their name is mistyped.
    mistyped: BTreeSet<String>,
    /// Replacements that were tried for each field.
    tried: Vec<(FieldPath, usize)>,
}

// === impl Draft ===

impl Draft {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(file: &Path, overrides: &Overrides) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
            file: file.to_path_buf(),
            source: Arc::new(source),
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(Self::parse(&text, file, folder, overrides))
    }

    /// Reads the text of `file`; relative paths start at `folder`.
    pub fn parse(text: &str, file: &Path, folder: &Path, overrides: &Overrides) -> Self {
        let (document, errors) = Document::parse(text);
        let mut broken = BTreeSet::new();
        let mut mistakes = Vec::new();
        for error in errors.into_iter().take(SYNTAX_MAX) {
            let at = error.span().map_or(text.len(), |span| span.start);
            let (line, column) = (line_of(text, at), column_of(text, at));
            broken.insert(line);
            mistakes.push(ConfigError::Syntax {
                file: file.to_path_buf(),
                line,
                column,
                reason: error.message().to_owned(),
                text: begin_of(text.lines().nth(line - 1).unwrap_or_default()),
            });
        }
        let drafting = Drafting {
            written: Written::new(file, document.lines()),
            document,
            overrides,
            mistakes,
            replaced: BTreeSet::new(),
            mistyped: BTreeSet::new(),
            tried: Vec::new(),
        };
        drafting.draft(file, folder, broken)
    }

    /// The configuration; `None` if too much of it is at fault. Fields at fault have other values.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// The same, to be changed before the checks.
    pub fn config_mut(&mut self) -> Option<&mut Config> {
        self.config.as_mut()
    }

    /// Whether the field, or a part of it, is not as the file has it.
    pub fn is_replaced(&self, field: &str) -> bool {
        let is_part = |part: &str, whole: &str| {
            let rest = part.strip_prefix(whole);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut replaced = self.replaced.iter();
        replaced.any(|other| is_part(other, field) || is_part(field, other))
    }

    /// Every mistake that can be seen without other files, by line.
    pub fn mistakes(&self) -> Vec<ConfigError> {
        let mut mistakes = Vec::new();
        if let Some(config) = &self.config {
            let has_app_names = !self.replaced.iter().any(|field| {
                field == "app" || (field.starts_with("app[") && field.ends_with("].name"))
            });
            let follows = |field: &str| {
                self.is_replaced(field) || (!has_app_names && field.contains(".pin["))
            };
            mistakes = check::check(config);
            mistakes.retain(|mistake| mistake.field_name().is_none_or(|field| !follows(field)));
        }
        // With lines missing, only fields that were read can be judged.
        let is_sure = |mistake: &ConfigError| match (mistake.field_name(), &self.config) {
            _ if self.broken.is_empty() => true,
            (Some(field), Some(config)) => {
                let line = config.written.line(field);
                line.is_some_and(|line| !self.broken.contains(&line))
            }
            _ => false,
        };
        mistakes.retain(is_sure);
        mistakes.splice(0..0, self.mistakes.iter().cloned());
        mistakes.sort_by_key(|mistake| mistake.line().unwrap_or(usize::MAX));
        mistakes
    }

    /// The configuration without mistakes.
    ///
    /// # Errors
    /// Every mistake.
    pub fn finish(self) -> Result<Config, ConfigError> {
        ConfigError::all(self.mistakes())?;
        // Without a mistake nothing was left out.
        self.config.ok_or(ConfigError::Several(Vec::new()))
    }
}

/// A line, or its begin.
fn begin_of(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

// === impl Drafting ===

impl Drafting<'_> {
    fn draft(mut self, file: &Path, folder: &Path, broken: BTreeSet<usize>) -> Draft {
        self.apply_overrides();
        let mut config = None;
        for _ in 0..REPLACED_MAX {
            match self.document.read::<Config>() {
                Ok(read) => {
                    config = Some(read);
                    break;
                }
                Err(error) => {
                    let path = FieldPath::of(error.path());
                    if !self.replace(&path, error.inner().message(), !broken.is_empty()) {
                        break;
                    }
                }
            }
        }
        let mistyped = self.mistyped;
        self.mistakes.retain(|mistake| match mistake {
            ConfigError::Missing { section, name, .. } => {
                !mistyped.contains(&format!("{section}.{name}"))
            }
            _ => true,
        });
        let config = config.map(|mut config| {
            config.source = file.to_path_buf();
            config.written = self.written;
            config.resolve(folder);
            config
        });
        Draft {
            config,
            mistakes: self.mistakes,
            replaced: self.replaced,
            broken,
        }
    }

    fn apply_overrides(&mut self) {
        let (written, mistakes) = (&mut self.written, &mut self.mistakes);
        self.overrides.apply(
            &mut self.document,
            |field, variable| written.overridden(&field, variable),
            |field, variable, reason| {
                mistakes.push(ConfigError::Field {
                    origin: Origin::Override(variable.to_owned()),
                    field,
                    reason,
                });
            },
        );
    }

    /// Notes the mistake, and changes the tree so that serde gets past it. False: it cannot.
    fn replace(&mut self, path: &FieldPath, message: &str, is_broken: bool) -> bool {
        if let Some(name) = message.strip_prefix("missing field `") {
            let name = name.trim_end_matches('`');
            let missing = path.with(name);
            if self.replaced.insert(missing.to_string()) && !is_broken {
                let section = path.to_string();
                self.mistakes.push(ConfigError::Missing {
                    origin: self.written.origin(&section),
                    section,
                    name: name.to_owned(),
                });
            }
            return self
                .document
                .put(&missing, DeValue::String(Cow::Borrowed("")));
        }
        let field = path.to_string();
        if message.starts_with("unknown field `") {
            let mut parent = path.clone();
            parent.0.pop();
            if let Some(name) = suggestion(message) {
                self.mistyped.insert(parent.with(&name).to_string());
            }
            self.note(path, message);
            return self.document.remove(path);
        }
        // A text that could be another type, such as the name `5`.
        if let Some(text) = self.overrides.text(path)
            && !matches!(
                self.document.get(path).map(toml::Spanned::get_ref),
                Some(DeValue::String(_))
            )
            && message.starts_with("invalid type")
        {
            return self
                .document
                .put(path, DeValue::String(Cow::Borrowed(text)));
        }
        if self.replaced.insert(field) {
            self.note(path, message);
        }
        self.try_another(path)
    }

    fn note(&mut self, path: &FieldPath, message: &str) {
        let field = path.to_string();
        let value = match self.overrides.text(path) {
            Some(text) => Some(text.to_owned()),
            None => self.document.shown(path),
        };
        let field = if field.is_empty() {
            "top level".to_owned()
        } else {
            field
        };
        self.mistakes.push(ConfigError::Field {
            origin: self.written.origin(&field),
            reason: error::reason(path.0.last(), message, value.as_deref()),
            field,
        });
    }

    /// Leaves the field out, or puts a value of another type there.
    fn try_another(&mut self, path: &FieldPath) -> bool {
        let count = match self.tried.iter_mut().find(|(tried, _)| tried == path) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.tried.push((path.clone(), 0));
                0
            }
        };
        let is_entry = matches!(path.0.last(), Some(Step::Index(_)));
        let value = match (count, is_entry) {
            (0, false) => return self.document.remove(path),
            (0, true) => DeValue::String(Cow::Borrowed("")),
            (1, _) => DeValue::Array(DeArray::default()),
            (2, _) => DeValue::Table(DeTable::new()),
            (3, _) => match DeValue::parse("0") {
                Ok(zero) => zero.into_inner(),
                Err(_) => return false,
            },
            _ => return false,
        };
        self.document.put(path, value)
    }
}
