//! Measuring a trained network on the validation set.

use std::ops::Range;

use candle_core::{D, Result};
use rayon::prelude::*;
use switchyard_models::SneakPeek;
use switchyard_models::StagedModel;

use super::fit::tensors;
use super::inputs::select;
use crate::confusion::Confusion;
use crate::data::Sample;

/// Inputs per batch of an evaluation.
const BATCH: usize = 50;

/// One confusion matrix per exit, shallowest first; the model reads `ranges` of each sample.
pub(super) fn per_exit(
    model: &dyn StagedModel,
    samples: &[Sample],
    ranges: &[Range<usize>],
) -> Result<Vec<Confusion>> {
    let predictions: Vec<Vec<Vec<u32>>> = samples
        .par_chunks(BATCH)
        .map(|batch| predict(model, &select(batch.to_vec(), ranges)))
        .collect::<Result<_>>()?;
    let mut confusions = vec![Confusion::new(model.classes()); model.exits().len()];
    for (batch, exits) in samples.chunks(BATCH).zip(predictions) {
        for (confusion, labels) in confusions.iter_mut().zip(exits) {
            for (sample, label) in batch.iter().zip(labels) {
                confusion.record(sample.label, label as usize);
            }
        }
    }
    Ok(confusions)
}

/// Most likely classes per exit.
fn predict(model: &dyn StagedModel, batch: &[Sample]) -> Result<Vec<Vec<u32>>> {
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

/// Confusion of the posterior's most likely class, with `k` neighbours counted or, for `None`, the
/// classifier's vote: arg max of `prior + counts`, ties to the lower label.
pub(super) fn evidence(
    sneakpeek: &SneakPeek,
    k: Option<usize>,
    prior: &[f64],
    samples: &[Sample],
) -> Confusion {
    let labels: Vec<usize> = samples
        .par_iter()
        .map_init(Vec::new, |counts, sample| {
            match k {
                Some(k) => sneakpeek.counts(&sample.values, k, counts),
                None => sneakpeek.vote(&sample.values, counts),
            }
            let weight = |label: usize| prior[label] + f64::from(counts[label]);
            (0..counts.len())
                .rev()
                .max_by(|&a, &b| weight(a).total_cmp(&weight(b)))
                .unwrap_or_default()
        })
        .collect();
    let mut confusion = Confusion::new(sneakpeek.classes());
    for (sample, label) in samples.iter().zip(labels) {
        confusion.record(sample.label, label);
    }
    confusion
}
