//! One training run: a recipe's variants, its evidence, the cards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use candle_core::{Device, Tensor, Var};
use candle_nn::loss::cross_entropy;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::cards::{self, WEIGHTS};
use super::evaluate;
use super::fit::{Schedule, fit};
use super::recipe::{AppFacts, Recipe, Scale, VariantRecipe};
use super::recipes::{APPS, recipe};
use super::{Progress, TrainOptions, TrainReport, TrainedVariant};
use crate::card::{APP_CARD, AppCard, Provenance, SneakPeekCard, VARIANT_CARD, VariantCard};
use crate::confusion::Confusion;
use crate::data::{Generator, Mix, Sample, stratified};
use crate::error::ModelError;
use crate::params::{Params, read_tensors, write_tensors};

/// Name by which [`TrainOptions::variants`] asks for the evidence.
pub const SNEAKPEEK: &str = "sneakpeek";

/// Samples that [`VariantRecipe::prepare`] is given.
const PREPARE_SAMPLES: usize = 256;

/// Streams drawn from the run's seed; samples of one are never samples of another.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Training = 1,
    Validation = 2,
    Evidence = 3,
    Weights = 4,
    Prepare = 5,
}

/// Trains application `app` into `options.out`: weights, cards, evidence.
///
/// The same seed and options give the same files on the same kind of CPU; other kinds may round
/// differently.
///
/// # Errors
/// The application or a variant asked for is unknown, a file cannot be written, or a computation
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
    let run = Run::new(recipe, options, progress);
    cards::make_dir(&options.out)?;
    let mut variants = Vec::new();
    for variant in all.iter().filter(|variant| chosen.contains(&variant.name)) {
        variants.push(run.variant(variant)?);
    }
    let card_file = options.out.join(APP_CARD);
    let trained = chosen.contains(&SNEAKPEEK);
    let sneakpeek = if trained {
        Some(run.evidence()?)
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

/// Names of what `app` trains, `sneakpeek` last; empty when there is no such application.
pub fn parts(app: &str) -> Vec<&'static str> {
    let variants = recipe(app).map(Recipe::variants).unwrap_or_default();
    let names = variants.iter().map(|variant| variant.name);
    names.chain([SNEAKPEEK]).collect()
}

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

/// One run: its recipe, its options and its validation set.
pub(super) struct Run<'a> {
    pub(super) recipe: &'a dyn Recipe,
    pub(super) facts: AppFacts,
    pub(super) options: &'a TrainOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) scale: Scale,
    pub(super) validation: Vec<Sample>,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn new(recipe: &'a dyn Recipe, options: &'a TrainOptions, progress: &'a dyn Progress) -> Self {
        let scale = recipe.scale();
        let scale = if options.quick { scale.quick() } else { scale };
        let seed = stream_seed(options.seed, Stream::Validation);
        Self {
            recipe,
            facts: recipe.facts(),
            options,
            progress,
            scale,
            validation: stratified(recipe.data(), seed, scale.validation_per_class),
        }
    }

    /// Training samples with these class weights.
    pub(super) fn training_data(&self, weights: &[f64]) -> Result<Generator<'a>, ModelError> {
        let seed = stream_seed(self.options.seed, Stream::Training);
        Ok(Generator::new(
            self.recipe.data(),
            seed,
            Mix::try_new(weights)?,
        ))
    }

    pub(super) fn fresh_params(&self) -> Params {
        let seed = stream_seed(self.options.seed, Stream::Weights);
        Params::fresh(Pcg64::seed_from_u64(seed))
    }

    /// Trains, measures and writes one variant.
    fn variant(&self, recipe: &VariantRecipe) -> Result<TrainedVariant, ModelError> {
        let name = recipe.name;
        let mut params = self.fresh_params();
        let model = recipe.architecture.build(&mut params)?;
        let parameters = params.count();
        let vars = params.into_vars();
        let parent = self.recipe.starts_from(name);
        if let Some(parent) = parent {
            adopt(&vars, &self.options.out.join(parent).join(WEIGHTS))?;
        }
        let schedule = Schedule {
            steps: ((self.scale.steps as f64 * recipe.steps_factor) as u64).max(1),
            batch: self.scale.batch,
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
        self.progress.begin(name, schedule.steps);
        let ranges = self.ranges(recipe)?;
        let data = self.training_data(&recipe.mix)?;
        if let Some(prepare) = recipe.prepare {
            let seed = stream_seed(self.options.seed, Stream::Prepare);
            let mix = Mix::try_new(&recipe.mix)?;
            let samples = Generator::new(self.recipe.data(), seed, mix).samples(0, PREPARE_SAMPLES);
            prepare(&vars, &read(samples, &ranges))?;
        }
        let first = self.first_sample(name, parent);
        let draw = |from, count| read(data.samples(first + from, count), &ranges);
        let losses = fit(&vars, schedule, &draw, self.progress, &loss)
            .map_err(ModelError::compute(format!("training {name}")))?;
        let confusions = evaluate::per_exit(model.as_ref(), &self.validation, &ranges)
            .map_err(ModelError::compute(format!("evaluating {name}")))?;
        self.progress.end();

        let dir = self.options.out.join(name);
        cards::make_dir(&dir)?;
        let weights = vars
            .iter()
            .map(|(name, var)| (name.clone(), var.as_tensor().clone()))
            .collect();
        write_tensors(&dir.join(WEIGHTS), &weights)?;
        let inputs = recipe.inputs.as_ref();
        let card = VariantCard {
            name: name.to_owned(),
            summary: recipe.summary.to_owned(),
            weights: WEIGHTS.to_owned(),
            parameters,
            max_batch: recipe.max_batch,
            stages: model.stages(),
            inputs: inputs.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
            exits: cards::exits(model.exits(), &confusions),
            provenance: self.provenance(schedule, &recipe.mix, parent),
            architecture: recipe.architecture.clone(),
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

    /// Index of a variant's first training sample: one that starts from another has samples of its
    /// own, as it would learn little from what it has seen.
    fn first_sample(&self, name: &str, parent: Option<&str>) -> u64 {
        let variants = self.recipe.variants();
        let position = variants.iter().position(|variant| variant.name == name);
        parent
            .and(position)
            .map_or(0, |position| (position as u64) << 32)
    }

    /// Where in a sample the inputs lie that a variant reads.
    fn ranges(&self, recipe: &VariantRecipe) -> Result<Vec<Range<usize>>, ModelError> {
        let names = recipe.inputs.as_deref();
        let card = self.app_card(None);
        card.input_ranges(names).ok_or_else(|| {
            let reason = format!("variant `{}` reads an input that is none", recipe.name);
            ModelError::Training(reason)
        })
    }

    fn provenance(&self, schedule: Schedule, mix: &[f64], parent: Option<&str>) -> Provenance {
        let name = self.facts.name;
        let quick = if self.options.quick { " --quick" } else { "" };
        Provenance {
            command: format!(
                "switchyard train {name} --seed {}{quick}",
                self.options.seed
            ),
            seed: self.options.seed,
            steps: schedule.steps,
            batch: schedule.batch,
            data: match parent {
                Some(parent) => format!(
                    "switchyard_models::{name}, class weights {mix:?}, starting from {parent}"
                ),
                None => format!("switchyard_models::{name}, class weights {mix:?}"),
            },
        }
    }

    fn app_card(&self, sneakpeek: Option<SneakPeekCard>) -> AppCard {
        let seed = stream_seed(self.options.seed, Stream::Validation);
        cards::app(&self.facts, self.validation.len(), seed, sneakpeek)
    }
}

/// Sets every variable for which the weights file has a tensor of its name and shape.
fn adopt(vars: &BTreeMap<String, Var>, file: &Path) -> Result<(), ModelError> {
    let mut tensors = read_tensors(file)?;
    for (name, var) in vars {
        if let Some((shape, values)) = tensors.remove(name)
            && shape == var.dims()
        {
            let values = values.map_err(|reason| ModelError::tensor(file, name, reason))?;
            Tensor::from_vec(values, shape, &Device::Cpu)
                .and_then(|tensor| var.set(&tensor))
                .map_err(ModelError::compute(format!("adopting {name}")))?;
        }
    }
    Ok(())
}

/// Leaves of each sample what lies in `ranges`.
pub(super) fn read(samples: Vec<Sample>, ranges: &[Range<usize>]) -> Vec<Sample> {
    if let [all] = ranges
        && samples
            .first()
            .is_none_or(|first| *all == (0..first.values.len()))
    {
        return samples;
    }
    let select = |sample: Sample| Sample {
        label: sample.label,
        values: ranges
            .iter()
            .flat_map(|range| &sample.values[range.clone()])
            .copied()
            .collect(),
    };
    samples.into_iter().map(select).collect()
}

/// A seed per stream; streams of one run and of neighbouring seeds do not meet.
pub(super) fn stream_seed(seed: u64, stream: Stream) -> u64 {
    // Fits i64, the only integer TOML has.
    (seed.wrapping_mul(8) ^ stream as u64) & (i64::MAX as u64)
}
