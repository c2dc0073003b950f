//! Accuracies, measured and compared with the cards.

use std::time::Instant;

use serde::Serialize;
use switchyard_models::card::{AppCard, ExitCard};
use switchyard_models::{ModelError, load_variant_at};
use switchyard_profile::{
    AccuracyCell, AccuracySource, MeasureError, Measurement, UnfinishedMeasurement,
};
use switchyard_training::Confusion;
use switchyard_training::train::validate;

use crate::commands::failure::Failure;
use switchyard_server::assembly::{PoolPlan, ServedVariant};
use switchyard_server::shutdown::Cancel;

/// Standard errors that a sample may be off by chance: one in 15,000 is farther off.
const STANDARD_ERRORS: f64 = 4.0;

/// Most difference by rounding, in cards and on other processors.
const ROUNDING: f64 = 0.002;

/// Name of the account of validation time.
pub(super) const ACCOUNT: &str = "accuracies";

/// The measured exits, and those that differ from their cards.
#[derive(Default)]
pub(super) struct Accuracies {
    pub(super) checked: Vec<Accuracy>,
    pub(super) misses: Vec<String>,
}

/// One exit, on part of its app's validation set.
#[derive(Debug, Serialize)]
pub(super) struct Accuracy {
    pub(super) app: String,
    pub(super) variant: String,
    pub(super) exit: String,
    pub(super) card: f64,
    pub(super) measured: f64,
    /// Largest allowed difference. None for narrower weights than the card's.
    pub(super) tolerance: Option<f64>,
    pub(super) samples: u64,
    /// Rows by true class.
    pub(super) confusion: Vec<Vec<u64>>,
}

/// Adds the missing accuracies of every served variant to `measurement`: measured on `per_class`
/// inputs of each class, or the card's if `per_class` is 0 or the app has no data generator.
pub(super) fn measure(
    plans: &[PoolPlan],
    per_class: usize,
    measurement: &mut Measurement,
    unfinished: &UnfinishedMeasurement,
    cancel: &Cancel,
) -> Result<(), Failure> {
    for served in plans.iter().flat_map(PoolPlan::served) {
        let (app_name, name) = (&served.app.card.name, served.name);
        let is_known = |cell: &AccuracyCell| (&*cell.app, &*cell.variant) == (app_name, name);
        if measurement.accuracies.iter().any(is_known) {
            continue;
        }
        if cancel.is_cancelled() {
            return Err(Failure::check(MeasureError::Cancelled));
        }
        let began = Instant::now();
        let cells = if per_class == 0 {
            of_card(served)
        } else {
            tracing::info!(app = app_name, variant = name, "validating");
            validated(served, per_class)?
        };
        measurement.accuracies.extend(cells);
        measurement.spend(ACCOUNT, began.elapsed());
        unfinished.keep(measurement).map_err(Failure::input)?;
    }
    Ok(())
}

fn validated(served: ServedVariant<'_>, per_class: usize) -> Result<Vec<AccuracyCell>, Failure> {
    let ServedVariant { app, variant, .. } = served;
    if variant.card.quality.is_some() {
        let app = app.card.name.as_str();
        tracing::info!(app, "accuracies are its cards', of `switchyard measure`");
        return Ok(of_card(served));
    }
    let device = &switchyard_executor::Device::Cpu;
    let loaded = load_variant_at(&variant.dir, served.precision, device).map_err(Failure::input)?;
    match validate(&app.card, &variant.card, loaded.model.as_ref(), per_class) {
        Ok(confusions) => {
            let exits = variant.card.exits.iter().zip(confusions);
            let cell = |(exit, confusion): (&ExitCard, Confusion)| {
                measured(&app.card, served.name, exit, &confusion)
            };
            Ok(exits.map(cell).collect())
        }
        // No generator makes the data, as for public weights.
        Err(ModelError::Training(reason)) => {
            tracing::info!(app = app.card.name, reason, "accuracies are its cards'");
            Ok(of_card(served))
        }
        Err(error) => Err(Failure::input(error)),
    }
}

fn measured(app: &AppCard, variant: &str, exit: &ExitCard, confusion: &Confusion) -> AccuracyCell {
    let rows = confusion.rows();
    let recall = confusion.recall();
    // The sample has the same number of inputs per class; the set has its own shares.
    let frequencies = &app.validation.frequencies;
    let all_seen = rows.iter().all(|row| row.iter().any(|&count| count > 0));
    let on_set = AccuracyCell::on_mix(&recall, frequencies).filter(|_| all_seen);
    AccuracyCell {
        app: app.name.clone(),
        variant: variant.to_owned(),
        exit: exit.name.clone(),
        source: AccuracySource::Measured,
        samples: rows.iter().flatten().sum(),
        accuracy: on_set.unwrap_or_else(|| confusion.accuracy()),
        workload_accuracy: AccuracyCell::on_mix(&recall, &app.workload_mix),
        recall,
        confusion: rows.to_vec(),
    }
}

fn of_card(served: ServedVariant<'_>) -> Vec<AccuracyCell> {
    let ServedVariant { app, variant, .. } = served;
    let exits = variant.card.exits.iter();
    exits
        .map(|exit| AccuracyCell {
            app: app.card.name.clone(),
            variant: served.name.to_owned(),
            exit: exit.name.clone(),
            source: AccuracySource::Card,
            samples: match &variant.card.quality {
                Some(quality) => quality.rows,
                None => exit.confusion.iter().flatten().sum(),
            },
            accuracy: exit.accuracy,
            workload_accuracy: AccuracyCell::on_mix(&exit.recall, &app.card.workload_mix),
            recall: exit.recall.clone(),
            confusion: exit.confusion.clone(),
        })
        .collect()
}

// === impl Accuracies ===

impl Accuracies {
    /// Compares the measured accuracies with the cards.
    pub(super) fn check(plans: &[PoolPlan], cells: &[AccuracyCell]) -> Self {
        let mut all = Self::default();
        for served in plans.iter().flat_map(PoolPlan::served) {
            let ServedVariant { app, variant, .. } = served;
            for exit in &variant.card.exits {
                let is_it = |cell: &&AccuracyCell| {
                    (&*cell.app, &*cell.variant, &*cell.exit)
                        == (&*app.card.name, served.name, &*exit.name)
                        && cell.source == AccuracySource::Measured
                };
                if let Some(cell) = cells.iter().find(is_it) {
                    let set = app.card.validation.samples;
                    let is_card = !served.precision.is_reduced();
                    let tolerance = is_card.then(|| tolerance(exit.accuracy, cell.samples, set));
                    let accuracy = Accuracy::new(cell, exit, tolerance);
                    all.misses.extend(accuracy.miss());
                    all.checked.push(accuracy);
                }
            }
        }
        all
    }
}

// === impl Accuracy ===

impl Accuracy {
    fn new(cell: &AccuracyCell, exit: &ExitCard, tolerance: Option<f64>) -> Self {
        Self {
            app: cell.app.clone(),
            variant: cell.variant.clone(),
            exit: exit.name.clone(),
            card: exit.accuracy,
            measured: cell.accuracy,
            tolerance,
            samples: cell.samples,
            confusion: cell.confusion.clone(),
        }
    }

    fn miss(&self) -> Option<String> {
        let Self {
            app,
            variant,
            exit,
            card,
            measured,
            tolerance,
            samples,
            ..
        } = self;
        let tolerance = (*tolerance)?;
        ((measured - card).abs() > tolerance).then(|| {
            format!(
                "{app}/{variant}, exit {exit}: accuracy {measured:.4} over {samples} inputs, the \
                 card says {card:.4}, which is more than {tolerance:.4} away; `switchyard train \
                 {app}` makes weights and card anew"
            )
        })
    }
}

/// How far the accuracy over `samples` of a set of `set` inputs may be from the whole set's.
fn tolerance(accuracy: f64, samples: u64, set: u64) -> f64 {
    let (n, all) = (samples.max(1) as f64, set.max(1) as f64);
    let variance = accuracy * (1.0 - accuracy) / n;
    // Drawn without replacement: a sample of the whole set has no error.
    let left = (1.0 - n / all).max(0.0);
    STANDARD_ERRORS * (variance * left).sqrt() + ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_the_whole_set_has_no_error() {
        assert!((tolerance(0.8, 7_000, 7_000) - ROUNDING).abs() < 1e-12);
        let part = tolerance(0.8, 700, 7_000);
        assert!((0.05..0.07).contains(&part), "{part}");
    }
}
