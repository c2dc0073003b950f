//! The page of models: handwritten text, and a generated part between two marks.

use std::path::Path;

use super::sheet::{AppSheet, SHOWN, SLICING_COLUMNS, Sheet};
use crate::commands::page;

/// The command that writes the part between the marks.
const COMMAND: &str = "switchyard models --markdown";

/// Head of a new page.
const TITLE: &str = "# Models\n\n\
    Measured accuracy, latency and memory of every variant. Policies choose among these rows.\n";

/// Writes the tables into the page and leaves the rest of it as it is.
pub(super) fn write(page: &Path, sheet: &Sheet) -> Result<(), String> {
    page::write(page, TITLE, &page::begin(COMMAND), &section(sheet))
}

fn section(sheet: &Sheet) -> String {
    let Sheet { made, machine, .. } = sheet;
    let versions: Vec<String> = made
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let mut text = format!(
        "Measured {} on {} ({} cores, {}, {}) by `{}`",
        made.date, machine.cpu, machine.cores, machine.arch, machine.os, made.command
    );
    if !versions.is_empty() {
        text += &format!(", {}", versions.join(", "));
    }
    text += ".\n";
    for note in &made.notes {
        text += &format!("\nNote: {note}.\n");
    }
    text += &legend();
    for app in &sheet.apps {
        text += &table(sheet, app);
    }
    text
}

fn legend() -> String {
    let batches = SHOWN.map(|batch| batch.to_string()).join(", ");
    format!(
        "
- `accuracy`: on the app's validation set. `on the mix`: on the class mix that the app's card
  expects from its clients. `recall`: the lowest and the highest of any class. `*`: from the card or
  an imported table, not measured here.
- `p50 ms`: median latency of a batch of {batches} through all stages up to the exit.
- `MiB`: weights + memory of the largest batch without its inputs, as the allocator counts.
"
    )
}

fn table(sheet: &Sheet, app: &AppSheet) -> String {
    let mut kinds: Vec<&str> = app.variants.iter().map(|variant| &*variant.kind).collect();
    kinds.dedup();
    let mut text = format!("\n## {}\n", app.app);
    for kind in kinds {
        let mut header = sheet.header();
        header.truncate(header.len() - SLICING_COLUMNS);
        let is_text = |name: &String| ["variant", "engine", "exit"].contains(&name.as_str());
        let rule = header
            .iter()
            .map(|name| if is_text(name) { "---" } else { "---:" });
        let rule: Vec<&str> = rule.collect();
        text += &format!("\nOn a worker of kind `{kind}`:\n\n");
        text += &format!("| {} |\n|{}|\n", header.join(" | "), rule.join("|"));
        for variant in app.variants.iter().filter(|variant| variant.kind == kind) {
            for cells in variant.rows() {
                let cells = sheet.shown(cells);
                text += &format!("| {} |\n", cells[..header.len()].join(" | "));
            }
        }
    }
    text
}
