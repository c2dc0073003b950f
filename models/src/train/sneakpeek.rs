//! Training the evidence: an embedding in which neighbours share their class.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Tensor, Var};
use candle_nn::loss::cross_entropy;

use super::cards::rounded;
use super::evaluate;
use super::fit::{Schedule, fit, tensors as tensors_of};
use super::run::{Run, Stream, stream_seed};
use crate::card::{SneakPeekCard, VoteCard};
use crate::confusion::Confusion;
use crate::data::{Sample, stratified};
use crate::error::ModelError;
use crate::evidence::{CLASSIFIER, HIDDEN, LABELS, POINTS, PROJECTION, SneakPeek};
use crate::features::Features;
use crate::layers::Linear;
use crate::params::{Init, Params, write_tensors};

const EVIDENCE: &str = "sneakpeek.safetensors";

/// Width of the layer before the embedding.
const HIDDEN_WIDTH: usize = 64;
/// Neighbours asked for, and Jeffreys' prior: SneakPeek's defaults.
const K: usize = 5;
const JEFFREYS: f64 = 0.5;

// === impl Run ===

impl Run<'_> {
    /// Trains the embedding jointly with a small classifier, embeds fresh samples and measures.
    pub(super) fn evidence(&self) -> Result<SneakPeekCard, ModelError> {
        let what = || ModelError::compute("training the evidence");
        let recipe = self.recipe.evidence();
        let classes = self.facts.classes.len();
        let samples = self.recipe.data().width();
        let width = recipe.features.width(samples);
        let mut params = self.fresh_params();
        let network = Network::new(&mut params, width, recipe.dimensions, classes)?;
        let loss = |inputs: &Tensor, labels: &Tensor| {
            cross_entropy(
                &network.classifier.forward(&network.embed(inputs)?)?,
                labels,
            )
        };
        let schedule = Schedule {
            steps: self.scale.evidence_steps,
            batch: self.scale.batch,
            peak_rate: 3e-3,
        };
        self.progress.begin(super::run::SNEAKPEEK, schedule.steps);
        let vars = params.into_vars();
        let data = self.training_data(&recipe.mix)?;
        let draw = |from, count| featured(&recipe.features, data.samples(from, count));
        fit(&vars, schedule, &draw, self.progress, &loss).map_err(what())?;
        self.progress.end();

        let seed = stream_seed(self.options.seed, Stream::Evidence);
        let points = stratified(self.recipe.data(), seed, self.scale.points_per_class);
        let file = self.options.out.join(EVIDENCE);
        write_evidence(&file, &vars, &network, &featured(&recipe.features, points))?;
        let sneakpeek = SneakPeek::open(&file, recipe.features.clone(), samples, classes)?;
        let prior = vec![JEFFREYS; classes];
        let neighbours = evaluate::evidence(&sneakpeek, Some(K), &prior, &self.validation);
        let vote = evaluate::evidence(&sneakpeek, None, &prior, &self.validation);
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
}

/// What is trained: the evidence file's layers.
struct Network {
    hidden: Linear,
    projection: Tensor,
    classifier: Linear,
}

// === impl Network ===

impl Network {
    fn new(
        params: &mut Params,
        width: usize,
        dimensions: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let spread = Init::Normal((1.0 / HIDDEN_WIDTH as f64).sqrt());
        Ok(Self {
            hidden: Linear::new(params, HIDDEN, width, HIDDEN_WIDTH)?,
            projection: params.get(PROJECTION, &[HIDDEN_WIDTH, dimensions], spread)?,
            classifier: Linear::new(params, CLASSIFIER, dimensions, classes)?,
        })
    }

    /// `[batch, features]` to `[batch, dimensions]`.
    fn embed(&self, inputs: &Tensor) -> candle_core::Result<Tensor> {
        self.hidden
            .forward(inputs)?
            .relu()?
            .matmul(&self.projection)
    }
}

/// Accuracy, recall and the matrix itself, as cards have them.
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

/// Writes the trained tensors and the points that they embed.
fn write_evidence(
    file: &Path,
    vars: &BTreeMap<String, Var>,
    network: &Network,
    points: &[Sample],
) -> Result<(), ModelError> {
    let mut tensors: BTreeMap<String, Tensor> = vars
        .iter()
        .map(|(name, var)| (name.clone(), var.as_tensor().detach()))
        .collect();
    let compute = || ModelError::compute("embedding");
    let (inputs, labels) = tensors_of(points).map_err(compute())?;
    let embedded = network.embed(&inputs).map_err(compute())?;
    let labels = labels.to_dtype(DType::F32).map_err(compute())?;
    tensors.insert(POINTS.to_owned(), embedded);
    tensors.insert(LABELS.to_owned(), labels);
    write_tensors(file, &tensors)
}
