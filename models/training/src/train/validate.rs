//! Measuring a trained variant again, on the inputs of its card's figures.

use switchyard_models::ModelError;
use switchyard_models::StagedModel;
use switchyard_models::card::{AppCard, VariantCard};

use super::evaluate;
use super::recipes::{APPS, recipe};
use crate::confusion::Confusion;
use crate::data::{Sample, stratified};

/// One confusion matrix per exit, shallowest first, over the first `per_class` inputs of each class
/// of the validation set that the card names, or over all inputs if it has no more.
///
/// # Errors
/// The card names an app that has no generator in this version, or a computation fails.
pub fn validate(
    app: &AppCard,
    variant: &VariantCard,
    model: &dyn StagedModel,
    per_class: usize,
) -> Result<Vec<Confusion>, ModelError> {
    let recipe = recipe(&app.name).ok_or_else(|| {
        let (name, known) = (&app.name, APPS.join(", "));
        ModelError::Training(format!(
            "app `{name}` has no data generator; apps with one: {known}"
        ))
    })?;
    let ranges = app.input_ranges(variant.inputs.as_deref()).ok_or_else(|| {
        let reason = format!(
            "variant `{}` reads inputs that the application does not declare in this order",
            variant.name
        );
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
