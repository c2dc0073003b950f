//! SneakPeek evidence: what is known of a request's class before any network has seen it.
//!
//! A request's [`Features`] are embedded by a small learned network. Its k nearest training points
//! then vote with their labels ([`counts`](SneakPeek::counts)), or a linear classifier casts a
//! single vote ([`vote`](SneakPeek::vote)). Either way the counts are the multinomial observation
//! y of SneakPeek's Dirichlet posterior (eq. 9-11). The training points are balanced over the
//! classes, so the counts carry what the input says and the prior carries how frequent a class is.

mod classifier;
mod dense;
mod embedding;
mod neighbours;

use std::path::Path;

use self::classifier::Classifier;
use self::embedding::Embedding;
use self::neighbours::Neighbours;
use crate::error::ModelError;
use crate::features::Features;
use crate::params::{RawTensors, read_tensors};

pub(crate) use self::classifier::CLASSIFIER;
pub(crate) use self::embedding::{HIDDEN, PROJECTION};

/// The embedded training points `[points, dimensions]`.
pub(crate) const POINTS: &str = "points";
/// Their labels `[points]`, as f32 like every tensor of the zoo.
pub(crate) const LABELS: &str = "labels";

/// The evidence of one application.
#[derive(Clone, Debug)]
pub struct SneakPeek {
    features: Features,
    samples: usize,
    classes: usize,
    embedding: Embedding,
    neighbours: Neighbours,
    classifier: Option<Classifier>,
}

// === impl SneakPeek ===

impl SneakPeek {
    /// Reads an embedding file for `features` of inputs of `samples` numbers and labels below
    /// `classes`. The classifier is optional.
    ///
    /// # Errors
    /// The file cannot be read, or a tensor is missing, of the wrong shape, or holds a label that
    /// is no class.
    pub fn open(
        file: &Path,
        features: Features,
        samples: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let mut tensors = Tensors {
            file,
            tensors: read_tensors(file)?,
        };
        let embedding = Embedding::read(&mut tensors, features.width(samples))?;
        let dimensions = embedding.dimensions();
        Ok(Self {
            features,
            samples,
            classes,
            neighbours: Neighbours::read(&mut tensors, dimensions, classes)?,
            classifier: Classifier::read(&mut tensors, dimensions, classes)?,
            embedding,
        })
    }

    /// Numbers in one input.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Classes counted.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Training points searched.
    pub fn points(&self) -> usize {
        self.neighbours.points()
    }

    /// Whether there is a classifier to [`vote`](Self::vote).
    pub fn votes(&self) -> bool {
        self.classifier.is_some()
    }

    /// Writes into `out`, per class, how many of the `k` nearest training points carry it.
    ///
    /// Distance is Euclidean in the embedding; ties go to the earlier point. With fewer than `k`
    /// points all of them count. The search is exact up to
    /// `EXACT_POINTS_MAX` points (2^16) and approximate above (HNSW).
    /// `input` must hold [`samples`](Self::samples) numbers: values beyond that are ignored,
    /// missing ones count as 0. Inputs with a number that is not finite have no neighbours; all
    /// counts are 0.
    pub fn counts(&self, input: &[f32], k: usize, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.classes, 0);
        if k > 0 && input.iter().all(|value| value.is_finite()) {
            self.neighbours.count(self.embed(input), k, out);
        }
    }

    /// Writes into `out` the classifier's vote: 1 for its most likely class, 0 for the others. All
    /// 0 for an input with a number that is not finite, or without a classifier.
    pub fn vote(&self, input: &[f32], out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.classes, 0);
        if let Some(classifier) = &self.classifier
            && input.iter().all(|value| value.is_finite())
            && let Some(count) = out.get_mut(classifier.classify(&self.embed(input)))
        {
            *count = 1;
        }
    }

    /// The embedding of an input's features.
    pub(crate) fn embed(&self, input: &[f32]) -> Vec<f32> {
        self.embedding.apply(&self.features.of(input))
    }
}

/// The tensors of an evidence file that nobody has taken yet.
struct Tensors<'a> {
    file: &'a Path,
    tensors: RawTensors,
}

// === impl Tensors ===

impl Tensors<'_> {
    /// Shape and numbers of a tensor.
    fn take(&mut self, name: &str) -> Result<(Vec<usize>, Vec<f32>), ModelError> {
        let (shape, values) = self
            .tensors
            .remove(name)
            .ok_or_else(|| ModelError::tensor(self.file, name, "missing"))?;
        let values = values.map_err(|reason| ModelError::tensor(self.file, name, reason))?;
        Ok((shape, values))
    }

    /// The numbers of a tensor of this shape.
    fn shaped(&mut self, name: &str, wanted: &[usize]) -> Result<Vec<f32>, ModelError> {
        let (shape, values) = self.take(name)?;
        if shape != wanted {
            let reason = format!("shape {shape:?}, must be {wanted:?}");
            return Err(ModelError::tensor(self.file, name, reason));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use candle_core::{Device, Tensor};
    use kdtree::KdTree;
    use kdtree::distance::squared_euclidean;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::params::write_tensors;

    const SAMPLES: usize = 20;
    const DIMENSIONS: usize = 12;
    const CLASSES: usize = 7;

    /// Writes a file of random points and opens it; returns the points beside it.
    fn random(points: usize) -> (SneakPeek, Vec<Vec<f32>>, Vec<usize>) {
        let mut rng = Pcg64::seed_from_u64(5);
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.random()).collect() };
        let projection = draw(SAMPLES * DIMENSIONS);
        let values = draw(points * DIMENSIONS);
        let labels: Vec<usize> = draw(points)
            .iter()
            .map(|share| (share * CLASSES as f32) as usize)
            .collect();
        let floats: Vec<f32> = labels.iter().map(|&label| label as f32).collect();
        let tensor = |values: &[f32], shape: &[usize]| {
            Tensor::from_slice(values, shape, &Device::Cpu).unwrap()
        };
        let tensors = BTreeMap::from([
            (
                PROJECTION.to_owned(),
                tensor(&projection, &[SAMPLES, DIMENSIONS]),
            ),
            (POINTS.to_owned(), tensor(&values, &[points, DIMENSIONS])),
            (LABELS.to_owned(), tensor(&floats, &[points])),
        ]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("evidence.safetensors");
        write_tensors(&file, &tensors).unwrap();
        let rows = values.chunks(DIMENSIONS).map(<[f32]>::to_vec).collect();
        (
            SneakPeek::open(&file, Features::Raw, SAMPLES, CLASSES).unwrap(),
            rows,
            labels,
        )
    }

    #[test]
    fn counts_equal_those_of_a_kd_tree() {
        let (sneakpeek, points, labels) = random(500);
        let mut tree = KdTree::new(DIMENSIONS);
        for (point, label) in points.into_iter().zip(labels) {
            tree.add(point, label).unwrap();
        }
        let mut rng = Pcg64::seed_from_u64(6);
        let mut counts = Vec::new();
        for k in [1, 5, 17] {
            for _ in 0..50 {
                let input: Vec<f32> = (0..SAMPLES).map(|_| rng.random_range(0.0..0.3)).collect();
                sneakpeek.counts(&input, k, &mut counts);
                let query = sneakpeek.embed(&input);
                let mut want = vec![0; CLASSES];
                for (_, &label) in tree.nearest(&query, k, &squared_euclidean).unwrap() {
                    want[label] += 1;
                }
                assert_eq!(counts, want, "k {k}");
            }
        }
    }

    #[test]
    fn more_neighbours_than_points_count_every_point() {
        let (sneakpeek, _, labels) = random(9);
        let mut counts = vec![99];
        sneakpeek.counts(&[0.1; SAMPLES], 1000, &mut counts);
        let want: Vec<u32> = (0..CLASSES)
            .map(|class| labels.iter().filter(|&&label| label == class).count() as u32)
            .collect();
        assert_eq!(counts, want);
    }

    #[test]
    fn an_input_that_is_not_finite_has_no_neighbours() {
        let (sneakpeek, ..) = random(9);
        let mut counts = Vec::new();
        let mut input = [0.1; SAMPLES];
        input[3] = f32::NAN;
        sneakpeek.counts(&input, 5, &mut counts);
        assert_eq!(counts, [0; CLASSES]);
    }
}
