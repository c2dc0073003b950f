//! A table of settings from the documentation of the struct that holds them.
//!
//! The documentation of each field is its meaning, then one last line for the table:
//! `TYPE, UNIT, RANGE; default DEFAULT; example EXAMPLE`. The example may be missing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::{Field, Item, Meta};

use super::docs::docs;

/// One setting.
#[derive(Debug, PartialEq)]
struct Setting {
    name: String,
    meaning: String,
    /// Type, unit and range.
    ty: String,
    default: String,
    example: Option<String>,
}

/// The table of a struct in a file of Rust.
///
/// # Errors
/// The file cannot be read, or a field is not documented as the module says.
pub(super) fn table(file: &Path, name: &str) -> Result<String> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("{}", file.display()))?;
    let found = parsed.items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some(item),
        _ => None,
    });
    let found = found.with_context(|| format!("{}: no struct `{name}`", file.display()))?;
    let fields = found.fields.iter().filter(|field| !is_skipped(field));
    let settings = fields
        .map(|field| Setting::of(field).with_context(|| format!("{}: {name}", file.display())))
        .collect::<Result<Vec<_>>>()?;
    Ok(render(&settings))
}

fn render(settings: &[Setting]) -> String {
    let mut text = "| field | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for setting in settings {
        let Setting {
            name, ty, meaning, ..
        } = setting;
        let default = setting.shown_default();
        writeln!(text, "| `{name}` | {ty} | {default} | {meaning} |")
            .expect("a String takes every write");
    }
    text
}

// === impl Setting ===

impl Setting {
    fn of(field: &Field) -> Result<Self> {
        let name = renamed(field).or_else(|| field.ident.as_ref().map(ToString::to_string));
        let name = name.context("a field has no name")?;
        let docs = docs(&field.attrs);
        let (meaning, last) = docs
            .trim()
            .rsplit_once('\n')
            .with_context(|| format!("`{name}`: no last line `TYPE; default DEFAULT`"))?;
        let mut parts = last.trim().trim_end_matches('.').split("; ");
        let ty = parts.next().unwrap_or_default();
        let (mut default, mut example) = (None, None);
        for part in parts {
            match part.split_once(' ') {
                Some(("default", value)) => default = Some(value.to_owned()),
                Some(("example", value)) => example = Some(value.to_owned()),
                _ if part == "required" => default = Some("required".to_owned()),
                _ => bail!("`{name}`: `{part}` is no default, example or `required`"),
            }
        }
        Ok(Self {
            default: default.with_context(|| format!("`{name}`: no `; default DEFAULT`"))?,
            ty: lower_first(ty),
            meaning: meaning.split_whitespace().collect::<Vec<_>>().join(" "),
            example,
            name,
        })
    }

    /// With the example, unless the default is one itself.
    fn shown_default(&self) -> String {
        match &self.example {
            Some(example) if !self.default.starts_with('`') => {
                format!("{}; example {example}", self.default)
            }
            _ => self.default.clone(),
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The name in `#[serde(rename = "name")]`.
fn renamed(field: &Field) -> Option<String> {
    serde(field).find_map(|list| {
        let (_, rest) = list.split_once("rename = \"")?;
        Some(rest.split('"').next()?.to_owned())
    })
}

fn is_skipped(field: &Field) -> bool {
    serde(field).any(|list| list == "skip")
}

fn serde(field: &Field) -> impl Iterator<Item = String> {
    field
        .attrs
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident("serde") => Some(list.tokens.to_string()),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Result<Setting> {
        let item: syn::ItemStruct = syn::parse_str(text).unwrap();
        Setting::of(item.fields.iter().next().unwrap())
    }

    #[test]
    fn a_field_is_a_row() {
        let found = setting(
            "struct S {
                /// Longest time that one call may take.
                /// Past it the call is cut.
                ///
                /// Integer, ms, 1 to 60000; default `5`; example `10`.
                #[serde(rename = \"budget_ms\")]
                budget: u64,
            }",
        );
        let text = render(&[found.unwrap()]);
        assert!(text.ends_with(
            "| `budget_ms` | integer, ms, 1 to 60000 | `5` | Longest time that one call may take. Past \
             it the call is cut. |\n"
        ), "{text}");
    }

    #[test]
    fn a_default_in_words_has_its_example() {
        let found = setting(
            "struct S {
                /// Its name.
                ///
                /// String; required; example `\"heart\"`.
                name: String,
            }",
        );
        let text = render(&[found.unwrap()]);
        assert!(
            text.ends_with("| required; example `\"heart\"` | Its name. |\n"),
            "{text}"
        );
    }

    #[test]
    fn a_field_without_its_last_line_is_refused() {
        let error = setting("struct S {\n/// Only a meaning.\nbudget: u64 }").unwrap_err();
        assert!(
            error.to_string().starts_with("`budget`: no last line"),
            "{error}"
        );
        let error = setting("struct S {\n/// A meaning.\n/// Integer.\nbudget: u64 }").unwrap_err();
        assert!(
            error.to_string().contains("no `; default DEFAULT`"),
            "{error}"
        );
    }
}
