//! Measuring a trained variant again, on the inputs that its card's figures rest on.

use super::evaluate;
use super::recipes::{APPS, recipe};
use crate::card::{AppCard, VariantCard};
use crate::confusion::Confusion;
use crate::data::{Sample, stratified};
use crate::error::ModelError;
use crate::model::StagedModel;

/// One confusion matrix per exit, shallowest first, over the first `per_class` inputs of each
/// class of the validation set that the card names. All of them when there are no more.
///
/// # Errors
/// The card is of an app whose data this version does not make, or a computation fails.
pub fn validate(
    app: &AppCard,
    variant: &VariantCard,
    model: &dyn StagedModel,
    per_class: usize,
) -> Result<Vec<Confusion>, ModelError> {
    let recipe = recipe(&app.name).ok_or_else(|| {
        let (name, known) = (&app.name, APPS.join(", "));
        ModelError::Training(format!(
            "no data of app `{name}` can be made; of {known} it can"
        ))
    })?;
    let ranges = app.input_ranges(variant.inputs.as_deref()).ok_or_else(|| {
        let reason = format!("variant `{}` reads an input that is none", variant.name);
        ModelError::Training(reason)
    })?;
    let all_per_class = app.validation.samples as usize / app.classes.len().max(1);
    let samples = stratified(recipe.data(), app.validation.seed, all_per_class);
    let taken: Vec<Sample> = samples
        .chunks(all_per_class.max(1))
        .flat_map(|class| &class[..class.len().min(per_class)])
        .cloned()
        .collect();
    evaluate::per_exit(model, &taken, &ranges)
        .map_err(ModelError::compute(format!("validating {}", app.name)))
}
