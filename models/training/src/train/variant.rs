//! Training of one variant.

use std::ops::Range;

use candle_core::{Device, Tensor};
use candle_nn::loss::cross_entropy;
use switchyard_models::card::{Provenance, VARIANT_CARD, VariantCard};
use switchyard_models::networks::architecture::Trainable;
use switchyard_models::{ModelError, adopt_tensors, write_tensors};

use super::cards::{self, WEIGHTS};
use super::evaluate;
use super::fit::{Schedule, fit};
use super::inputs::select;
use super::options::TrainedVariant;
use super::recipe::VariantRecipe;
use super::run::{RandomStream, TrainingRun};
use super::useful::useful;
use crate::confusion::Confusion;
use crate::data::{Generator, Mix};

/// Number of samples for [`VariantRecipe::prepare`].
const PREPARE_SAMPLES: usize = 256;

/// Trains, measures and writes one variant.
pub(super) fn train(
    run: &TrainingRun<'_>,
    recipe: &VariantRecipe,
) -> Result<TrainedVariant, ModelError> {
    let name = recipe.name;
    let Trainable {
        model,
        vars,
        parameters,
    } = recipe.architecture.fresh(run.weights_rng())?;
    let parent = run.recipe.starts_from(name);
    if let Some(parent) = parent {
        adopt_tensors(&vars, &run.options.out.join(parent).join(WEIGHTS))?;
    }
    let schedule = Schedule {
        steps: ((run.scale.steps as f64 * recipe.steps_factor) as u64).max(1),
        batch: run.scale.batch,
        peak_rate: recipe.peak_rate,
    };
    // Deep supervision: the sum of the losses of all exits.
    let loss = |inputs: &Tensor, labels: &Tensor| {
        let mut x = inputs.clone();
        let mut sum = Tensor::zeros((), candle_core::DType::F32, &Device::Cpu)?;
        for stage in 0..model.stages() {
            x = model.run_stage(stage, &x)?;
            let exits = model.exits().iter().enumerate();
            for (exit, _) in exits.filter(|(_, after)| **after == stage + 1) {
                sum = (sum + cross_entropy(&model.logits(exit, &x)?, labels)?)?;
            }
        }
        Ok(sum)
    };
    run.progress.begin(name, schedule.steps);
    let ranges = ranges(run, recipe)?;
    let data = run.training_data(&recipe.mix)?;
    if let Some(prepare) = recipe.prepare {
        let seed = run.seed(RandomStream::Prepare);
        let mix = Mix::try_new(&recipe.mix)?;
        let samples = Generator::new(run.recipe.data(), seed, mix).samples(0, PREPARE_SAMPLES);
        prepare(&vars, &select(samples, &ranges))?;
    }
    let first = first_sample(run, name, parent);
    let draw = |from, count| select(data.samples(first + from, count), &ranges);
    let losses = fit(&vars, schedule, &draw, run.progress, &loss)
        .map_err(ModelError::compute(format!("training {name}")))?;
    let confusions = evaluate::per_exit(model.as_ref(), &run.validation, &ranges)
        .map_err(ModelError::compute(format!("evaluating {name}")))?;
    run.progress.end();

    let dir = run.options.out.join(name);
    cards::make_dir(&dir)?;
    let weights = vars
        .iter()
        .map(|(name, var)| (name.clone(), var.as_tensor().clone()))
        .collect();
    write_tensors(&dir.join(WEIGHTS), &weights)?;
    let inputs = recipe.inputs.as_ref();
    let exits = cards::exits(model.exits(), &confusions);
    let (architecture, exits) = useful(&recipe.architecture, exits);
    let parameters = match architecture == recipe.architecture {
        true => parameters,
        false => architecture.fresh(run.weights_rng())?.parameters,
    };
    let card = VariantCard {
        name: name.to_owned(),
        summary: recipe.summary.to_owned(),
        weights: WEIGHTS.to_owned(),
        parameters,
        max_batch: recipe.max_batch,
        stages: architecture.exits().last().copied().unwrap_or_default(),
        inputs: inputs.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        exits,
        quality_unknown: false,
        memory: None,
        quality: None,
        provenance: provenance(run, schedule, &recipe.mix, parent),
        architecture,
    };
    cards::write(&dir.join(VARIANT_CARD), &card)?;
    Ok(TrainedVariant {
        name: name.to_owned(),
        parameters,
        exit_accuracies: confusions.iter().map(Confusion::accuracy).collect(),
        first_loss: losses.first,
        last_loss: losses.last,
    })
}

/// Index of a variant's first training sample: a variant that starts from another one gets
/// other samples, because it would learn little from samples that its parent has seen.
fn first_sample(run: &TrainingRun<'_>, name: &str, parent: Option<&str>) -> u64 {
    let variants = run.recipe.variants();
    let position = variants.iter().position(|variant| variant.name == name);
    parent
        .and(position)
        .map_or(0, |position| (position as u64) << 32)
}

/// Ranges of the inputs in a sample that a variant reads.
fn ranges(run: &TrainingRun<'_>, recipe: &VariantRecipe) -> Result<Vec<Range<usize>>, ModelError> {
    let names = recipe.inputs.as_deref();
    let card = run.app_card(None);
    card.input_ranges(names).ok_or_else(|| {
        let reason = format!(
            "variant `{}` reads inputs that the application does not declare in this order",
            recipe.name
        );
        ModelError::Training(reason)
    })
}

/// The record of how the weights were made.
fn provenance(
    run: &TrainingRun<'_>,
    schedule: Schedule,
    mix: &[f64],
    parent: Option<&str>,
) -> Provenance {
    let name = run.facts.name;
    let quick = if run.options.quick { " --quick" } else { "" };
    Provenance {
        command: format!("switchyard train {name} --seed {}{quick}", run.options.seed),
        seed: run.options.seed,
        steps: schedule.steps,
        batch: schedule.batch,
        // The generators' former path: with another one, a repeated run would write another card.
        data: match parent {
            Some(parent) => {
                format!("switchyard_models::{name}, class weights {mix:?}, starting from {parent}")
            }
            None => format!("switchyard_models::{name}, class weights {mix:?}"),
        },
    }
}
