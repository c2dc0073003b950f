//! The measured quality on cards.

use std::path::Path;

use switchyard_models::card::{
    APP_CARD, AppCard, QualityCard, VARIANT_CARD, ValidationCard, VariantCard,
};
use switchyard_models::zoo::{ZooApp, ZooVariant};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::measured::{ExitQuality, Measured};
use crate::commands::write_file;

/// Puts a measurement on the card of a new variant; `data` is the file.
pub(crate) fn on_card(card: &mut VariantCard, measured: &Measured, data: &str) {
    for (exit, quality) in card.exits.iter_mut().zip(&measured.exits) {
        exit.accuracy = quality.accuracy;
        exit.recall.clone_from(&quality.recall);
        exit.confusion.clone_from(&quality.confusion);
    }
    card.quality_unknown = false;
    card.quality = Some(QualityCard {
        metric: measured.metric,
        rows: measured.rows,
        data: data.to_owned(),
    });
    "the quality is measured, as [quality] says".clone_into(&mut card.provenance.data);
}

/// Puts the rows on the card of a new app.
pub(crate) fn on_app_card(card: &mut AppCard, measured: &Measured) {
    card.validation = ValidationCard {
        samples: measured.rows,
        frequencies: measured.frequencies.clone(),
        seed: 0,
    };
}

/// Changes the cards of a variant in a zoo, and leaves the rest of their text as it is. The app's card
/// gets the rows with `on_app`.
///
/// # Errors
/// A card cannot be changed or written; both are as before then, or the variant's is the new one.
pub(crate) fn on_files(
    app: &ZooApp,
    variant: &ZooVariant,
    measured: &Measured,
    data: &str,
    on_app: bool,
) -> Result<(), String> {
    let card = variant.dir.join(VARIANT_CARD);
    change(
        &card,
        |document| on_document(document, measured, data),
        |file| VariantCard::read(file).map(drop),
    )?;
    if !on_app {
        return Ok(());
    }
    let card = app.dir.join(APP_CARD);
    change(
        &card,
        |document| {
            let table = document
                .entry("validation")
                .or_insert(Item::Table(Table::new()));
            let table = table
                .as_table_like_mut()
                .ok_or("`validation` is no table")?;
            table.insert("samples", value(signed(measured.rows)));
            table.insert(
                "frequencies",
                value(Array::from_iter(measured.frequencies.clone())),
            );
            table.insert("seed", value(0));
            Ok(())
        },
        |file| AppCard::read(file).map(drop),
    )
}

/// Reads a card, changes it, and replaces the file once the new one is read without an error.
fn change(
    file: &Path,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
    check: impl FnOnce(&Path) -> Result<(), switchyard_models::ModelError>,
) -> Result<(), String> {
    let at = |error: String| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| at(error.to_string()))?;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| at(error.to_string()))?;
    edit(&mut document).map_err(at)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    // Next to the card: the check reads the files that the card names.
    let mut new = tempfile::Builder::new()
        .prefix(".card-")
        .tempfile_in(folder)
        .map_err(|error| at(error.to_string()))?;
    let text = document.to_string();
    std::io::Write::write_all(&mut new, text.as_bytes()).map_err(|error| at(error.to_string()))?;
    check(new.path()).map_err(|error| at(error.to_string()))?;
    write_file(file, text).map_err(|error| at(error.to_string()))
}

fn on_document(document: &mut DocumentMut, measured: &Measured, data: &str) -> Result<(), String> {
    let exits = document.get_mut("exits").ok_or("has no `exits`")?;
    let tables: Vec<&mut dyn TableLike> = match exits {
        Item::ArrayOfTables(tables) => tables
            .iter_mut()
            .map(|it| it as &mut dyn TableLike)
            .collect(),
        Item::Value(toml_edit::Value::Array(tables)) => tables
            .iter_mut()
            .filter_map(toml_edit::Value::as_inline_table_mut)
            .map(|it| it as &mut dyn TableLike)
            .collect(),
        _ => return Err("`exits` is no array of tables".to_owned()),
    };
    if tables.len() != measured.exits.len() {
        let (found, wanted) = (tables.len(), measured.exits.len());
        return Err(format!("has {found} exits, {wanted} were measured"));
    }
    for (table, exit) in tables.into_iter().zip(&measured.exits) {
        on_exit(table, exit);
    }
    document.remove("quality_unknown");
    let mut quality = Table::new();
    quality.insert("metric", value(measured.metric.name()));
    quality.insert("rows", value(signed(measured.rows)));
    quality.insert("data", value(data));
    document.insert("quality", Item::Table(quality));
    Ok(())
}

fn on_exit(table: &mut dyn TableLike, exit: &ExitQuality) {
    table.insert("accuracy", value(exit.accuracy));
    for key in ["recall", "confusion"] {
        table.remove(key);
    }
    if !exit.recall.is_empty() {
        table.insert("recall", value(Array::from_iter(exit.recall.clone())));
    }
    if !exit.confusion.is_empty() {
        let rows = exit.confusion.iter();
        let rows = rows.map(|row| Array::from_iter(row.iter().map(|&count| signed(count))));
        table.insert("confusion", value(Array::from_iter(rows)));
    }
}

/// TOML's integers are signed.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_card_that_is_a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (card, link) = (folder.path().join("card.toml"), folder.path().join("link"));
        std::fs::write(&card, "name = \"v1\"\n").unwrap();
        std::os::unix::fs::symlink(&card, &link).unwrap();
        let edit = |document: &mut DocumentMut| {
            document.insert("rows", value(3));
            Ok(())
        };
        change(&link, edit, |_| Ok(())).unwrap();
        assert!(link.is_symlink());
        let text = std::fs::read_to_string(&card).unwrap();
        assert_eq!(text, "name = \"v1\"\nrows = 3\n");
    }
}
