//! Measuring a trained variant again, on the inputs that its card's figures rest on.

use super::evaluate;
use crate::card::AppCard;
use crate::confusion::Confusion;
use crate::error::ModelError;
use crate::heart::{Beat, stratified};
use crate::model::StagedModel;

/// One confusion matrix per exit, shallowest first, over the first `per_class` inputs of each
/// class of the validation set that the card names. All of them when there are no more.
///
/// # Errors
/// The card is of an app whose data this version does not make, or a computation fails.
pub fn validate(
    app: &AppCard,
    model: &dyn StagedModel,
    per_class: usize,
) -> Result<Vec<Confusion>, ModelError> {
    if app.name != "heart" {
        let reason = format!(
            "no data of app `{}` can be made; only heart's can",
            app.name
        );
        return Err(ModelError::Training(reason));
    }
    let all_per_class = app.validation.samples as usize / app.classes.len().max(1);
    let beats = stratified(app.validation.seed, all_per_class);
    let taken: Vec<Beat> = beats
        .chunks(all_per_class.max(1))
        .flat_map(|class| &class[..class.len().min(per_class)])
        .cloned()
        .collect();
    evaluate::per_exit(model, &taken)
        .map_err(ModelError::compute(format!("validating {}", app.name)))
}
