//! Variants of a profile as a preparation needs them: an accuracy, and a latency per batch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ramsis_prepare::Model;
use serde::Deserialize;
use switchyard_executor::versions;
use switchyard_models::zoo::ZooApp;
use switchyard_profile::import::{ImportOptions, import};
use switchyard_profile::{LatencyCell, Percentile, ProfileFile};

use crate::commands::failure::Failure;

/// A selection from a profile. An app or kind that is not given must be the only one.
pub(super) struct Wanted<'a> {
    pub(super) app: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    /// If empty: the selection that the file names, otherwise all.
    pub(super) variants: &'a [String],
    pub(super) percentile: Percentile,
    /// For layouts without one.
    pub(super) slo_us: u64,
    /// Its cards give the accuracies that the profile lacks, as they do in a server.
    pub(super) zoo: Option<&'a Path>,
}

/// The variants of one app on one kind of worker.
pub(super) struct Profiled {
    pub(super) app: String,
    pub(super) kind: String,
    pub(super) models: Vec<Model>,
}

/// The field that identifies a profile, and the selection of the RAMSIS summary.
#[derive(Deserialize)]
struct Layout {
    schema: Option<serde_json::Value>,
    #[serde(default)]
    pareto: Vec<String>,
}

/// Reads a profile, or any layout that `profile import` takes.
pub(super) fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Profiled, Failure> {
    let layout = if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        serde_json::from_str(&text).ok()
    } else {
        None
    };
    let file = match layout {
        Some(Layout {
            schema: Some(_), ..
        }) => ProfileFile::load(path).map_err(Failure::input)?,
        other => {
            let selection = other.map_or_else(Vec::new, |layout| layout.pareto);
            let options = ImportOptions {
                app: wanted.app.unwrap_or("image").to_owned(),
                kind: wanted.kind.unwrap_or("imported").to_owned(),
                slo_us: wanted.slo_us,
                accuracy: None,
                variants: match wanted.variants {
                    [] => selection,
                    named => named.to_vec(),
                },
                command: String::new(),
                versions: versions(),
            };
            import(path, &options).map_err(Failure::input)?.0
        }
    };
    of_file(&file, path, wanted)
}

fn of_file(file: &ProfileFile, path: &Path, wanted: &Wanted<'_>) -> Result<Profiled, Failure> {
    let fault = |reason: String| Failure::input(format!("{}: {reason}", path.display()));
    let only = |option: &str, given: Option<&str>, found: BTreeSet<&str>| match given {
        Some(name) if found.contains(name) => Ok(name.to_owned()),
        Some(name) => Err(fault(format!(
            "`{option}`: {name} is not one of {}",
            listed(&found)
        ))),
        None => match Vec::from_iter(&found)[..] {
            [only] => Ok((*only).to_owned()),
            _ => Err(fault(format!(
                "has {} of them, {}: choose one with `{option}`",
                found.len(),
                listed(&found)
            ))),
        },
    };
    let models = || file.models.iter();
    let app = only(
        "--app",
        wanted.app,
        models().map(|model| model.app.as_str()).collect(),
    )?;
    let of_app = || models().filter(|model| model.app == app);
    let kind = only(
        "--kind",
        wanted.kind,
        of_app().map(|model| model.kind.as_str()).collect(),
    )?;
    let known: BTreeSet<&str> = of_app()
        .filter(|model| model.kind == kind)
        .map(|model| model.variant.as_str())
        .collect();
    if let Some(unknown) = wanted
        .variants
        .iter()
        .find(|name| !known.contains(name.as_str()))
    {
        return Err(fault(format!(
            "`--variants`: {unknown} is not one of {}",
            listed(&known)
        )));
    }
    let chosen = known.into_iter().filter(|name| {
        wanted.variants.is_empty() || wanted.variants.iter().any(|variant| variant == name)
    });
    let models = chosen
        .map(|variant| model(file, &kind, &app, variant, wanted).map_err(&fault))
        .collect::<Result<_, _>>()?;
    Ok(Profiled { app, kind, models })
}

/// A variant's last exit: its accuracy, and the latencies of all stages up to it.
fn model(
    file: &ProfileFile,
    kind: &str,
    app: &str,
    variant: &str,
    wanted: &Wanted<'_>,
) -> Result<Model, String> {
    let runs = || {
        let cells = file.latencies.iter();
        cells.filter(|cell| {
            cell.is_of(kind, app, variant) && cell.from_stage == 0 && cell.exit.is_some()
        })
    };
    let last = runs().map(|cell| cell.to_stage).max();
    let whole = || runs().filter(|cell| Some(cell.to_stage) == last);
    let exit = whole().find_map(|cell| cell.exit.as_deref());
    let measured = file
        .accuracies
        .iter()
        .find(|cell| cell.app == app && cell.variant == variant && Some(&*cell.exit) == exit);
    let accuracy = match (measured, wanted.zoo) {
        (Some(cell), _) => Some(cell.accuracy),
        (None, Some(zoo)) => card_accuracy(&zoo.join(app), variant, exit)?,
        (None, None) => None,
    };
    let accuracy = accuracy.ok_or_else(|| {
        format!("`accuracies`: no entry for {app}/{variant}; `--zoo` takes it from the card")
    })?;
    let of = |cell: &LatencyCell| match wanted.percentile {
        Percentile::P50 => cell.p50_us,
        Percentile::P95 => cell.p95_us,
        Percentile::P99 => cell.p99_us,
    };
    let latency_us: BTreeMap<u32, u64> = whole().map(|cell| (cell.batch, of(cell))).collect();
    Model::measured(variant, accuracy, &latency_us).map_err(|error| format!("`latencies`: {error}"))
}

/// The accuracy of an exit on the variant's card; none if the card has no such variant or exit.
fn card_accuracy(app: &Path, variant: &str, exit: Option<&str>) -> Result<Option<f64>, String> {
    let app = ZooApp::open(app).map_err(|error| error.to_string())?;
    let card = app.variant_at(variant).map(|(found, _)| &found.card);
    let exits = card.map_or(&[][..], |card| &card.exits);
    let found = exits.iter().find(|known| Some(&*known.name) == exit);
    Ok(found.map(|known| known.accuracy))
}

fn listed(names: &BTreeSet<&str>) -> String {
    Vec::from_iter(names.iter().copied()).join(", ")
}
