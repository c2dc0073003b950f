//! `switchyard measure`: the quality of models in a zoo.

use std::path::PathBuf;

use clap::Args;
use switchyard_core::ids::VariantId;
use switchyard_executor::manifest::{AppChoice, Manifest};
use switchyard_executor::{Device, ModelSource};
use switchyard_models::Zoo;
use switchyard_models::card::APP_CARD;
use switchyard_models::zoo::{ZooApp, ZooVariant};

use super::failure::Failure;
use super::print;
use crate::quality::{self as measuring, LABEL};
use switchyard_simulate::nearest::nearest;

/// Measure the quality of an app's variants on labelled rows, and write it on their cards
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard measure flowers --data flowers/test
  switchyard measure churn/v2 --data churn.csv --label left
  switchyard measure search --data pairs.jsonl

classify: accuracy, recall and confusion. regress: R2. score: Spearman's rank correlation with the
labels. embed: the same of the cosine similarities of pairs (TEXT1, TEXT2). Below 0 counts as 0.
Labels are names of classes, or positions. A row of .jsonl is {\"input\": ..., \"label\": ...}; a .csv
has a column per value, an .npz an array per input; columns that no input has are left out.")]
pub(super) struct MeasureArgs {
    /// The app, or one variant of it
    #[arg(value_name = "APP[/VARIANT]")]
    name: String,
    /// Labelled rows: .csv, .jsonl, .npz, or a folder of images with a folder per class
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Name of the labels in FILE
    #[arg(long, value_name = "NAME", default_value = LABEL)]
    label: String,
    /// Folder of models
    #[arg(long, value_name = "DIR", default_value = "models/zoo")]
    zoo: PathBuf,
}

/// Measures, prints and writes the cards.
pub(super) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let (app_name, wanted) = match args.name.split_once('/') {
        Some((app, variant)) => (app, Some(variant)),
        None => (args.name.as_str(), None),
    };
    let app = open_app(args, app_name)?;
    let variants = chosen(&app, wanted)?;
    let table = measuring::open(&args.data, &args.label, &app.card).map_err(Failure::input)?;
    if let Some(note) = table.note() {
        print::note(note);
    }
    let data = args.data.display().to_string();
    // The rows on the app's card are those of all variants, or of the first that is measured. Rows that a
    // seed makes stay: `switchyard profile` and evidence are measured on them.
    let is_all = variants.len() == app.variants.len();
    let is_made = app.card.validation.seed != 0;
    let on_app = !is_made && (is_all || app.card.validation.samples == 0);
    for variant in variants {
        let name = &variant.card.name;
        let zoo = Zoo {
            dir: args.zoo.clone(),
            apps: vec![app.clone()],
        };
        let mut choice = AppChoice::new(app_name);
        choice.variants = Some(vec![name.clone()]);
        let manifest = Manifest::choose(&zoo, &[choice]).map_err(Failure::input)?;
        let loaded = manifest.source.load(VariantId(0), &Device::Cpu);
        let loaded = loaded.map_err(Failure::input)?;
        let measured = measuring::measure(&loaded, &app.card, variant.card.max_batch, &table)
            .map_err(Failure::input)?;
        measuring::on_files(&app, variant, &measured, &data, on_app).map_err(Failure::input)?;
        print::line(format!("{app_name}/{name}: {}", measured.shown(&data)))?;
    }
    if !on_app {
        let card = app.dir.join(APP_CARD);
        let reason = match is_made {
            true => "it names the seed of rows that are made".to_owned(),
            false => {
                format!("`switchyard measure {app_name}` measures all variants on the same rows")
            }
        };
        print::note(format!("{}: [validation] stays: {reason}", card.display()));
    }
    Ok(())
}

fn open_app(args: &MeasureArgs, name: &str) -> Result<ZooApp, Failure> {
    let dir = args.zoo.join(name);
    if !name.is_empty() && dir.join(APP_CARD).is_file() {
        return ZooApp::open(&dir).map_err(Failure::input);
    }
    let zoo = Zoo::open(&args.zoo).map_err(Failure::input)?;
    let known: Vec<&str> = zoo.apps.iter().map(|app| app.card.name.as_str()).collect();
    Err(unknown(
        &args.zoo.display().to_string(),
        "app",
        name,
        &known,
    ))
}

/// The variants to measure.
fn chosen<'a>(app: &'a ZooApp, wanted: Option<&str>) -> Result<Vec<&'a ZooVariant>, Failure> {
    let Some(wanted) = wanted else {
        return match app.variants.is_empty() {
            true => Err(Failure::input(format!(
                "{}: has no variants",
                app.dir.display()
            ))),
            false => Ok(app.variants.iter().collect()),
        };
    };
    let known: Vec<&str> = app
        .variants
        .iter()
        .map(|of| of.card.name.as_str())
        .collect();
    match app.variant(wanted) {
        Some(found) => Ok(vec![found]),
        None => Err(unknown(
            &app.dir.display().to_string(),
            "variant",
            wanted,
            &known,
        )),
    }
}

fn unknown(folder: &str, kind: &str, wanted: &str, known: &[&str]) -> Failure {
    let advice = match nearest(wanted, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    let known = known.join(", ");
    Failure::input(format!(
        "{folder}: has no {kind} `{wanted}`: {advice}it has {known}"
    ))
}
