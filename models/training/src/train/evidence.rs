//! Training the evidence: an embedding in which neighbours share their class.

use candle_core::Tensor;
use candle_nn::loss::cross_entropy;
use switchyard_models::card::{SneakPeekCard, VoteCard};
use switchyard_models::evidence::EvidenceNetwork;
use switchyard_models::features::Features;
use switchyard_models::{ModelError, SneakPeek};

use super::cards::rounded;
use super::evaluate;
use super::fit::{Schedule, fit, tensors};
use super::run::{RandomStream, TrainingRun};
use crate::confusion::Confusion;
use crate::data::{Sample, stratified};

/// Name of the evidence in [`TrainOptions::variants`](super::TrainOptions::variants).
pub const SNEAKPEEK: &str = "sneakpeek";

/// File name of the trained evidence.
const EVIDENCE: &str = "sneakpeek.safetensors";

/// Neighbours asked for, and Jeffreys' prior: SneakPeek's defaults.
const K: usize = 5;
const JEFFREYS: f64 = 0.5;

/// Trains the embedding jointly with a small classifier, embeds fresh samples and measures.
pub(super) fn train(run: &TrainingRun<'_>) -> Result<SneakPeekCard, ModelError> {
    let computation = || ModelError::compute("training the evidence");
    let recipe = run.recipe.evidence();
    let classes = run.facts.classes.len();
    let samples = run.recipe.data().width();
    let width = recipe.features.width(samples);
    let rng = run.weights_rng();
    let network = EvidenceNetwork::fresh(rng, width, recipe.dimensions, classes)?;
    let loss = |inputs: &Tensor, labels: &Tensor| cross_entropy(&network.scores(inputs)?, labels);
    let schedule = Schedule {
        steps: run.scale.evidence_steps,
        batch: run.scale.batch,
        peak_rate: 3e-3,
    };
    run.progress.begin(SNEAKPEEK, schedule.steps);
    let data = run.training_data(&recipe.mix)?;
    let draw = |from, count| featured(&recipe.features, data.samples(from, count));
    fit(network.vars(), schedule, &draw, run.progress, &loss).map_err(computation())?;
    run.progress.end();

    let seed = run.seed(RandomStream::Evidence);
    let points = stratified(run.recipe.data(), seed, run.scale.points_per_class);
    let file = run.options.out.join(EVIDENCE);
    let (inputs, labels) = tensors(&featured(&recipe.features, points)).map_err(computation())?;
    network.write(&file, &inputs, &labels)?;
    let sneakpeek = SneakPeek::open(&file, recipe.features.clone(), samples, classes)?;
    let prior = vec![JEFFREYS; classes];
    let neighbours = evaluate::evidence(&sneakpeek, Some(K), &prior, &run.validation);
    let vote = evaluate::evidence(&sneakpeek, None, &prior, &run.validation);
    let (accuracy, recall, confusion) = figures(&neighbours);
    let voted = figures(&vote);
    Ok(SneakPeekCard {
        file: EVIDENCE.to_owned(),
        features: recipe.features,
        k: K,
        prior,
        accuracy,
        recall,
        confusion,
        vote: Some(VoteCard {
            accuracy: voted.0,
            recall: voted.1,
            confusion: voted.2,
        }),
    })
}

/// Accuracy, recall and matrix, in the form of cards.
fn figures(confusion: &Confusion) -> (f64, Vec<f64>, Vec<Vec<u64>>) {
    let recall = confusion.recall().into_iter().map(rounded).collect();
    (
        rounded(confusion.accuracy()),
        recall,
        confusion.rows().to_vec(),
    )
}

/// The samples as their features.
fn featured(features: &Features, samples: Vec<Sample>) -> Vec<Sample> {
    let feature = |sample: Sample| Sample {
        label: sample.label,
        values: features.of(&sample.values).into_owned(),
    };
    samples.into_iter().map(feature).collect()
}
