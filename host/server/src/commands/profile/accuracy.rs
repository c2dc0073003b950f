//! Accuracies, measured again and held to what the cards say.

use serde::Serialize;
use switchyard_models::card::ExitCard;
use switchyard_models::train::{recipe, validate};
use switchyard_models::zoo::{ZooApp, ZooVariant};
use switchyard_models::{Confusion, load_variant};

use crate::assembly::PoolPlan;
use crate::commands::Failure;

/// Standard errors that a sample may be off by chance: one in 15,000 is further.
const STANDARD_ERRORS: f64 = 4.0;

/// What rounding, in cards and on other processors, may do.
const ROUNDING: f64 = 0.002;

/// Every exit that was measured, and those that are not what their cards say.
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
    /// How far the two may be apart.
    pub(super) tolerance: f64,
    pub(super) samples: u64,
    /// Rows by true class.
    pub(super) confusion: Vec<Vec<u64>>,
}

// === impl Accuracies ===

impl Accuracies {
    /// Measures every variant that is served on `per_class` inputs of each class.
    pub(super) fn measure(plans: &[PoolPlan], per_class: usize) -> Result<Self, Failure> {
        let mut all = Self::default();
        if per_class == 0 {
            return Ok(all);
        }
        for app in plans.iter().flat_map(PoolPlan::apps) {
            if recipe(&app.card.name).is_none() {
                tracing::info!(
                    app = app.card.name,
                    "its validation set cannot be made here"
                );
                continue;
            }
            for variant in &app.variants {
                tracing::info!(
                    app = app.card.name,
                    variant = variant.card.name,
                    "validating"
                );
                all.add(app, variant, per_class)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, app: &ZooApp, variant: &ZooVariant, per_class: usize) -> Result<(), Failure> {
        let device = &switchyard_executor::Device::Cpu;
        let loaded = load_variant(&variant.dir, device).map_err(Failure::input)?;
        let confusions = validate(&app.card, &variant.card, loaded.model.as_ref(), per_class)
            .map_err(Failure::input)?;
        let set = app.card.validation.samples;
        for (exit, confusion) in variant.card.exits.iter().zip(confusions) {
            let accuracy = Accuracy::new(&app.card.name, &variant.card.name, exit, &confusion, set);
            self.misses.extend(accuracy.miss());
            self.checked.push(accuracy);
        }
        Ok(())
    }
}

// === impl Accuracy ===

impl Accuracy {
    fn new(app: &str, variant: &str, exit: &ExitCard, confusion: &Confusion, set: u64) -> Self {
        let samples = confusion.rows().iter().flatten().sum();
        Self {
            app: app.to_owned(),
            variant: variant.to_owned(),
            exit: exit.name.clone(),
            card: exit.accuracy,
            measured: confusion.accuracy(),
            tolerance: tolerance(exit.accuracy, samples, set),
            samples,
            confusion: confusion.rows().to_vec(),
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
        ((measured - card).abs() > *tolerance).then(|| {
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
    // Drawn without putting back: nothing is left to chance when all are taken.
    let left = (1.0 - n / all).max(0.0);
    STANDARD_ERRORS * (variance * left).sqrt() + ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_set_leaves_nothing_to_chance() {
        assert!((tolerance(0.8, 7_000, 7_000) - ROUNDING).abs() < 1e-12);
        let part = tolerance(0.8, 700, 7_000);
        assert!((0.05..0.07).contains(&part), "{part}");
    }
}
