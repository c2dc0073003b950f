//! Measuring what was trained, on the validation set.

use candle_core::{D, Result};
use rayon::prelude::*;

use super::fit::tensors;
use crate::confusion::Confusion;
use crate::evidence::SneakPeek;
use crate::heart::Beat;
use crate::model::StagedModel;

/// Inputs per batch of an evaluation.
const BATCH: usize = 100;

/// One confusion matrix per exit, shallowest first.
pub(super) fn per_exit(model: &dyn StagedModel, beats: &[Beat]) -> Result<Vec<Confusion>> {
    let predictions: Vec<Vec<Vec<u32>>> = beats
        .par_chunks(BATCH)
        .map(|batch| predict(model, batch))
        .collect::<Result<_>>()?;
    let mut confusions = vec![Confusion::new(model.classes()); model.exits().len()];
    for (batch, exits) in beats.chunks(BATCH).zip(predictions) {
        for (confusion, labels) in confusions.iter_mut().zip(exits) {
            for (beat, label) in batch.iter().zip(labels) {
                confusion.record(beat.label, label as usize);
            }
        }
    }
    Ok(confusions)
}

/// Most likely classes per exit.
fn predict(model: &dyn StagedModel, batch: &[Beat]) -> Result<Vec<Vec<u32>>> {
    let (mut x, _) = tensors(batch)?;
    let mut labels = Vec::with_capacity(model.exits().len());
    for stage in 0..model.stages() {
        x = model.run_stage(stage, &x)?;
        if let Some(exit) = model.exits().iter().position(|&after| after == stage + 1) {
            labels.push(model.logits(exit, &x)?.argmax(D::Minus1)?.to_vec1()?);
        }
    }
    Ok(labels)
}

/// Confusion of the posterior's most likely class: arg max of `prior + counts`, ties to the
/// lower label.
pub(super) fn evidence(
    sneakpeek: &SneakPeek,
    k: usize,
    prior: &[f64],
    beats: &[Beat],
) -> Confusion {
    let labels: Vec<usize> = beats
        .par_iter()
        .map_init(Vec::new, |counts, beat| {
            sneakpeek.counts(&beat.samples, k, counts);
            let weight = |label: usize| prior[label] + f64::from(counts[label]);
            (0..counts.len())
                .rev()
                .max_by(|&a, &b| weight(a).total_cmp(&weight(b)))
                .unwrap_or_default()
        })
        .collect();
    let mut confusion = Confusion::new(sneakpeek.classes());
    for (beat, label) in beats.iter().zip(labels) {
        confusion.record(beat.label, label);
    }
    confusion
}
