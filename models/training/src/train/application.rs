//! Training of an application: the chosen variants, the evidence, the card.

use switchyard_models::ModelError;
use switchyard_models::card::{APP_CARD, AppCard};

use super::cards;
use super::evidence::{self, SNEAKPEEK};
use super::options::{TrainOptions, TrainReport};
use super::progress::Progress;
use super::recipe::{Recipe, VariantRecipe};
use super::recipes::{APPS, recipe};
use super::run::TrainingRun;
use super::variant;

/// Trains application `app` into `options.out`: weights, cards, evidence.
///
/// The same seed and options give the same files on the same kind of CPU; other kinds may round
/// differently.
///
/// # Errors
/// The application or a requested variant is unknown, a file cannot be written, or a computation
/// fails.
pub fn train(
    app: &str,
    options: &TrainOptions,
    progress: &dyn Progress,
) -> Result<TrainReport, ModelError> {
    let recipe = recipe(app).ok_or_else(|| {
        let known = APPS.join(", ");
        ModelError::Training(format!("no application `{app}`; there are {known}"))
    })?;
    let all = recipe.variants();
    let chosen = chosen_parts(&all, options)?;
    let run = TrainingRun::new(recipe, options, progress);
    cards::make_dir(&options.out)?;
    let mut variants = Vec::new();
    for one in all.iter().filter(|one| chosen.contains(&one.name)) {
        variants.push(variant::train(&run, one)?);
    }
    let card_file = options.out.join(APP_CARD);
    let trained = chosen.contains(&SNEAKPEEK);
    let sneakpeek = if trained {
        Some(evidence::train(&run)?)
    } else if card_file.is_file() {
        AppCard::read(&card_file)?.sneakpeek
    } else {
        None
    };
    cards::write(&card_file, &run.app_card(sneakpeek.clone()))?;
    Ok(TrainReport {
        variants,
        sneakpeek_accuracy: sneakpeek.filter(|_| trained).map(|card| card.accuracy),
    })
}

/// Names of the parts that `app` trains, `sneakpeek` last; empty for an unknown application.
pub fn parts(app: &str) -> Vec<&'static str> {
    let variants = recipe(app).map(Recipe::variants).unwrap_or_default();
    let names = variants.iter().map(|variant| variant.name);
    names.chain([SNEAKPEEK]).collect()
}

/// The parts that `options` asks for, in the order of training.
fn chosen_parts(
    variants: &[VariantRecipe],
    options: &TrainOptions,
) -> Result<Vec<&'static str>, ModelError> {
    let all: Vec<&'static str> = variants
        .iter()
        .map(|variant| variant.name)
        .chain([SNEAKPEEK])
        .collect();
    let Some(wanted) = &options.variants else {
        return Ok(all);
    };
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(&name.as_str())) {
        let known = all.join(", ");
        let reason = format!("no variant `{unknown}`; there are {known}");
        return Err(ModelError::Training(reason));
    }
    Ok(all
        .into_iter()
        .filter(|name| wanted.iter().any(|want| want == name))
        .collect())
}
