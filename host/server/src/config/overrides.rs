//! Variables of the environment that override fields: `SWITCHYARD_SERVER__HTTP` is `server.http`,
//! `SWITCHYARD_POOL__0__POLICY` is `pool[0].policy`.

use std::borrow::Cow;

use toml::de::DeValue;

use super::document::{Document, FieldPath, Step};

/// Begin of the names of variables.
const PREFIX: &str = "SWITCHYARD_";

/// Between the steps of a path. Names with no such separator are no overrides: orchestrators and
/// other commands have variables with the prefix too.
const SEPARATOR: &str = "__";

/// The overrides that a configuration is read with.
#[derive(Clone, Debug, Default)]
pub struct Overrides(Vec<FieldOverride>);

#[derive(Clone, Debug)]
struct FieldOverride {
    variable: String,
    path: FieldPath,
    text: String,
}

// === impl Overrides ===

impl Overrides {
    /// Those of this process.
    pub fn of_environment() -> Self {
        let text = |value: std::ffi::OsString| value.into_string().ok();
        Self::of(std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Those among some variables, in the order of their names.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let overrides = variables.into_iter().filter_map(|(variable, text)| {
            let rest = variable.strip_prefix(PREFIX)?;
            if !rest.contains(SEPARATOR) {
                return None;
            }
            let steps = rest.split(SEPARATOR).map(|step| match step.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Key(step.to_lowercase()),
            });
            let path = FieldPath(steps.collect());
            Some(FieldOverride {
                variable,
                path,
                text,
            })
        });
        let mut overrides: Vec<_> = overrides.collect();
        overrides.sort_by(|a, b| a.variable.cmp(&b.variable));
        Self(overrides)
    }

    /// Puts the values into the tree. Calls `put` with field and variable, or `refused` with field,
    /// variable and reason.
    pub(super) fn apply<'t>(
        &'t self,
        document: &mut Document<'t>,
        mut put: impl FnMut(String, &str),
        mut refused: impl FnMut(String, &str, String),
    ) {
        for FieldOverride {
            variable,
            path,
            text,
        } in &self.0
        {
            let field = path.to_string();
            let value = match DeValue::parse(text) {
                Ok(value) => value.into_inner(),
                // Not TOML, as an address without quotation marks.
                Err(_) => DeValue::String(Cow::Borrowed(text)),
            };
            if document.put(path, value) {
                put(field, variable);
            } else {
                let reason = "the file has no such list entry: a variable changes the fields of \
                              entries that the file has, counted from 0";
                refused(field, variable, reason.to_owned());
            }
        }
    }

    /// The text of the variable of this field.
    pub(super) fn text(&self, path: &FieldPath) -> Option<&str> {
        let mut overrides = self.0.iter();
        let found = overrides.find(|one| one.path == *path)?;
        Some(&found.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_a_separator_are_overrides() {
        let variables = [
            ("SWITCHYARD_TOKEN", "t"),
            ("SWITCHYARD_SERVER_SERVICE_HOST", "10.0.0.1"),
            ("SWITCHYARD_POOL__0__POLICY", "fcfs"),
            ("OTHER__X", "1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let overrides = Overrides::of(variables);
        let fields: Vec<_> = overrides.0.iter().map(|one| one.path.to_string()).collect();
        assert_eq!(fields, ["pool[0].policy"]);
    }
}
