//! The page of models: prose that people write, and a part between two marks that this writes.

use std::path::Path;

use super::sheet::{AppSheet, SHOWN, Sheet};
use crate::commands::page;

/// Who writes the part between the marks.
const COMMAND: &str = "switchyard models --markdown";

/// What a page begins with that is not there yet.
const TITLE: &str = "# Models\n\n\
    What every variant can do and what it takes, measured. Policies choose among these rows.\n";

/// Writes the tables into the page; what people wrote around them stays.
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
        text += &table(app);
    }
    text
}

fn legend() -> String {
    let batches = SHOWN.map(|batch| batch.to_string()).join(", ");
    format!(
        "
- `accuracy` is on the app's validation set, `on the mix` on the class mix that its clients are
  said to send; `recall` is the least and the most of any class. `*`: as the card or an imported
  table says, not measured here.
- `p50 ms` is the median of a batch of {batches} through all stages up to the exit.
- `MiB` is weights + what the largest batch takes beside them, inputs left out, as the allocator
  counted it.
- `sliced, 1`: all stages one by one, activations parked between them, over all in one go, for a
  batch of 1; `us a cut` is the difference by cuts. Below 1 is noise.
"
    )
}

fn table(app: &AppSheet) -> String {
    let mut kinds: Vec<&str> = app.variants.iter().map(|variant| &*variant.kind).collect();
    kinds.dedup();
    let mut text = format!("\n## {}\n", app.app);
    for kind in kinds {
        let header = Sheet::header();
        let rule: Vec<&str> = (0..header.len())
            .map(|column| {
                if column == 0 || column == 3 {
                    "---"
                } else {
                    "---:"
                }
            })
            .collect();
        text += &format!("\nOn a worker of kind `{kind}`:\n\n");
        text += &format!("| {} |\n| {} |\n", header.join(" | "), rule.join(" | "));
        for variant in app.variants.iter().filter(|variant| variant.kind == kind) {
            for cells in variant.rows() {
                text += &format!("| {} |\n", cells.join(" | "));
            }
        }
    }
    text
}
