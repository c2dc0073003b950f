//! Documentation comments of an item.

use syn::{Attribute, Expr, Lit, Meta};

/// The lines, without the blank that follows `///`.
pub(super) fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(text) => Some(text.value().trim().to_owned()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        });
    lines.collect::<Vec<_>>().join("\n")
}
