//! The folder of a new model: its cards and files, tried before they are moved into the zoo.

use std::fs;
use std::path::Path;

use serde::Serialize;
use switchyard_core::ids::VariantId;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{Device, LoadedModel, ModelSource, trial};
use switchyard_models::card::{APP_CARD, MeasuredMemory, VARIANT_CARD};
use switchyard_models::onnx::{copy_graph, engine_of};
use switchyard_models::zoo::Description;
use switchyard_models::{Architecture, VariantCard, Zoo};

use crate::commands::failure::Failure;
use crate::commands::print;
use crate::commands::resident;

pub(super) fn written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// Writes the cards and the files below `draft`; those of an existing app are copied.
pub(super) fn write(
    described: &Description,
    draft: &Path,
    zoo: &Path,
    is_new: bool,
) -> Result<(), Failure> {
    let app = draft.join(&described.app.name);
    let variant = app.join(&described.variant.name);
    fs::create_dir_all(&variant).map_err(|error| written(&variant, &error))?;
    match is_new {
        true => write_card(&app.join(APP_CARD), &described.app)?,
        false => copy_files(&zoo.join(&described.app.name), &app)?,
    }
    write_card(&variant.join(VARIANT_CARD), &described.variant)?;
    for (from, to) in &described.files {
        let to = variant.join(to);
        match described.variant.architecture {
            Architecture::Onnx(_) => copy_graph(from, &to).map_err(Failure::input)?,
            _ => copy(from, &to)?,
        }
    }
    Ok(())
}

pub(super) fn write_card(file: &Path, card: &impl Serialize) -> Result<(), Failure> {
    let text = toml::to_string(card).map_err(Failure::check)?;
    fs::write(file, text).map_err(|error| written(file, &error))
}

/// Copies the files of a folder, not its folders: the card of an app and the files that it names.
fn copy_files(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from).map_err(|error| written(from, &error))? {
        let entry = entry.map_err(|error| written(from, &error))?;
        if entry.path().is_file() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| written(folder, &error))?;
    }
    let copied = fs::copy(from, to).map_err(|error| written(from, &error));
    copied.map(drop)
}

/// Reads the cards as a server does, measures the memory of a graph, and runs one input and, where the
/// card allows it, two. A graph that cannot run two gets batches of one.
pub(super) fn try_out(
    card: &mut VariantCard,
    draft: &Path,
    app: &str,
) -> Result<LoadedModel, Failure> {
    let zoo = Zoo::open(draft).map_err(Failure::input)?;
    let manifest = Manifest::all(&zoo).map_err(Failure::input)?;
    // The only variant of the draft.
    let (loaded, kept) = resident::kept_by(|| {
        let loaded = manifest.source.load(VariantId(0), &Device::Cpu);
        let loaded = loaded.map_err(Failure::input)?;
        trial::run(&loaded, &Device::Cpu).map_err(Failure::input)?;
        Ok::<_, Failure>(loaded)
    });
    let loaded = loaded?;
    if let Architecture::Onnx(_) = card.architecture {
        // With the facts that the file has.
        let read = VariantCard::read(&draft.join(app).join(&card.name).join(VARIANT_CARD));
        if let Architecture::Onnx(spec) = &read.map_err(Failure::input)?.architecture {
            card.memory = kept.map(|bytes| MeasuredMemory {
                engine: engine_of(spec).to_owned(),
                bytes,
            });
        }
    }
    if card.max_batch > 1
        && let Err(error) = trial::run_rows(&loaded, 2)
    {
        print::note(format!(
            "batches of 1, because two requests do not run together: {error}"
        ));
        card.max_batch = 1;
    }
    write_card(&draft.join(app).join(&card.name).join(VARIANT_CARD), card)?;
    Ok(loaded)
}
