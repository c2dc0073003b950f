//! A table of a policy's settings from the struct that holds them, with the defaults of its
//! `Default`.
//!
//! The documentation of a field is one sentence with its meaning, further sentences for readers of
//! the code, `Range: RANGE.` unless any value will do, and `None: EFFECT.` where leaving an
//! `Option` out has an effect that the meaning does not give.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::punctuated::Punctuated;
use syn::{
    Expr, Field, FieldValue, File, GenericArgument, ImplItem, Item, Lit, Member, PathArguments,
    Stmt, Token, Type,
};

use super::docs::docs;

/// The table of a struct in a file of Rust.
///
/// # Errors
/// The file cannot be read, or a default is no literal, enum case or empty collection.
pub(super) fn table(file: &Path, name: &str) -> Result<String> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    rows(&text, name).with_context(|| format!("{}: {name}", file.display()))
}

fn rows(source: &str, name: &str) -> Result<String> {
    let parsed = syn::parse_file(source)?;
    let found = parsed.items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some(item),
        _ => None,
    });
    let defaults = defaults(&parsed, name);
    let mut text =
        "| setting | type | default | range | meaning |\n|---|---|---|---|---|\n".to_owned();
    for field in &found.context("there is no such struct")?.fields {
        let setting = field.ident.as_ref().context("a field has no name")?;
        let default = match defaults.get(&setting.to_string()) {
            Some(value) => literal(value, &field.ty).with_context(|| format!("`{setting}`"))?,
            None => empty(&field.ty),
        };
        let (meaning, range) = documented(field).with_context(|| format!("`{setting}`"))?;
        let ty = type_name(&field.ty);
        writeln!(
            text,
            "| `{setting}` | {ty} | {default} | {range} | {meaning} |"
        )?;
    }
    Ok(text)
}

/// Meaning and range.
fn documented(field: &Field) -> Result<(String, String)> {
    let docs = docs(&field.attrs);
    let text = docs.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut meaning = None;
    let mut range = "any".to_owned();
    let mut absent = String::new();
    for sentence in sentences(&text) {
        if let Some(values) = sentence.strip_prefix("Range: ") {
            range = values.trim_end_matches('.').to_owned();
        } else if let Some(effect) = sentence.strip_prefix("None: ") {
            absent = format!(" By default {effect}");
        } else if meaning.is_none() {
            meaning = Some(sentence);
        }
    }
    let meaning = meaning.context("the documentation has no meaning")?;
    Ok((format!("{meaning}{absent}"), range))
}

/// A sentence ends with a full stop before a capital letter.
fn sentences(text: &str) -> Vec<&str> {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let ends = ends.filter(|end| text[*end..].trim_start().starts_with(char::is_uppercase));
    let (mut begin, mut found) = (0, Vec::new());
    for end in ends.chain([text.len()]) {
        found.push(text[begin..end].trim());
        begin = end;
    }
    found
}

/// The fields of `Self { .. }` in `impl Default for NAME`; empty if `Default` is derived.
fn defaults<'a>(file: &'a File, name: &str) -> BTreeMap<String, &'a Expr> {
    let implementation = file.items.iter().find_map(|item| match item {
        Item::Impl(item) => {
            let (_, of, _) = item.trait_.as_ref()?;
            let is_default = of.is_ident("Default");
            let is_ours = matches!(&*item.self_ty, Type::Path(ty) if ty.path.is_ident(name));
            (is_default && is_ours).then_some(item)
        }
        _ => None,
    });
    let body = implementation.and_then(|item| match item.items.first() {
        Some(ImplItem::Fn(function)) => function.block.stmts.last(),
        _ => None,
    });
    let Some(Stmt::Expr(Expr::Struct(values), None)) = body else {
        return BTreeMap::new();
    };
    let named = |value: &'a FieldValue| match &value.member {
        Member::Named(field) => Some((field.to_string(), &value.expr)),
        Member::Unnamed(_) => None,
    };
    values.fields.iter().filter_map(named).collect()
}

fn literal(value: &Expr, ty: &Type) -> Result<String> {
    Ok(match value {
        Expr::Path(path) if path.path.is_ident("None") => "none".to_owned(),
        Expr::Call(_) => empty(ty),
        other => format!("`{}`", bare(other)?),
    })
}

/// As TOML writes it.
fn bare(value: &Expr) -> Result<String> {
    Ok(match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => format!("\"{}\"", text.value()),
            Lit::Bool(flag) => flag.value.to_string(),
            Lit::Int(number) => number.base10_digits().to_owned(),
            Lit::Float(number) => number.base10_digits().to_owned(),
            _ => bail!("the default is no text, number or boolean"),
        },
        Expr::MethodCall(call) if call.method == "to_owned" => bare(&call.receiver)?,
        Expr::Path(case) => {
            let case = case.path.segments.last().context("an empty path")?;
            format!("\"{}\"", kebab(&case.ident.to_string()))
        }
        Expr::Macro(list) if list.mac.path.is_ident("vec") => {
            let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
            let values = list.mac.parse_body_with(parse)?;
            let values: Result<Vec<_>> = values.iter().map(bare).collect();
            format!("[{}]", values?.join(", "))
        }
        _ => bail!("the default is no literal, enum case or `vec!`"),
    })
}

fn kebab(case: &str) -> String {
    let mut text = String::new();
    for letter in case.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The last name of a type and its arguments.
fn parts(ty: &Type) -> (String, Vec<&Type>) {
    let Type::Path(path) = ty else {
        return (String::new(), Vec::new());
    };
    let Some(last) = path.path.segments.last() else {
        return (String::new(), Vec::new());
    };
    let arguments = match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            let types = list.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.collect()
        }
        _ => Vec::new(),
    };
    (last.ident.to_string(), arguments)
}

fn type_name(ty: &Type) -> String {
    if let Type::Array(array) = ty {
        return format!("list of {}", type_name(&array.elem));
    }
    let (name, arguments) = parts(ty);
    match (name.as_str(), &arguments[..]) {
        ("bool", _) => "boolean".to_owned(),
        ("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64", _) => "integer".to_owned(),
        ("f32" | "f64", _) => "number".to_owned(),
        ("Option", [inner]) => type_name(inner),
        ("Vec", [inner]) => format!("list of {}", type_name(inner)),
        ("BTreeMap", [_, value]) => format!("map of {}", type_name(value)),
        // An enum is written as its case.
        _ => "string".to_owned(),
    }
}

/// The default of a type, as TOML writes it.
fn empty(ty: &Type) -> String {
    match parts(ty).0.as_str() {
        "Option" => "none",
        "Vec" => "`[]`",
        "BTreeMap" => "`{}`",
        "bool" => "`false`",
        "f32" | "f64" => "`0.0`",
        "String" => "`\"\"`",
        _ => "`0`",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
        struct S {
            /// The rule. More for readers of the code.
            /// Range: `first-come`, `last`.
            rule: Rule,
            /// Longest wait (eq. 2).
            /// Range: above 0 ms.
            wait_ms: f64,
            /// Peeks.
            /// None: on for `last`.
            peeks: Option<bool>,
            /// Rates.
            rates: Vec<f64>,
            /// By name.
            sizes: BTreeMap<String, [u32; 2]>,
        }
        impl Default for S {
            fn default() -> Self {
                Self {
                    rule: Rule::FirstCome,
                    wait_ms: 1_000.0,
                    peeks: None,
                    rates: vec![180.0, 10.0],
                    sizes: BTreeMap::new(),
                }
            }
        }"#;

    #[test]
    fn a_struct_is_a_table() {
        let table = rows(SOURCE, "S").unwrap();
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `rule` | string | `\"first-come\"` | `first-come`, `last` | The rule. |",
                "| `wait_ms` | number | `1000.0` | above 0 ms | Longest wait (eq. 2). |",
                "| `peeks` | boolean | none | any | Peeks. By default on for `last`. |",
                "| `rates` | list of number | `[180.0, 10.0]` | any | Rates. |",
                "| `sizes` | map of list of integer | `{}` | any | By name. |",
            ]
        );
    }

    #[test]
    fn a_default_that_is_computed_is_refused() {
        let source = SOURCE.replace("1_000.0", "2.0 * 500.0");
        let error = format!("{:#}", rows(&source, "S").unwrap_err());
        assert_eq!(
            error,
            "`wait_ms`: the default is no literal, enum case or `vec!`"
        );
    }
}
