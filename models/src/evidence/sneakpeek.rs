//! The evidence of an application, for one request at a time.

use std::path::Path;

use super::classifier::Classifier;
use super::embedding::Embedding;
use super::file::EvidenceTensors;
use super::neighbours::Neighbours;
use crate::error::ModelError;
use crate::features::Features;

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
    /// Reads an embedding file for `features` of inputs of `samples` values and labels below
    /// `classes`. The classifier is optional.
    ///
    /// # Errors
    /// The file cannot be read, or a tensor is missing, has the wrong shape, or holds a label that
    /// is no class.
    pub fn open(
        file: &Path,
        features: Features,
        samples: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let mut tensors = EvidenceTensors::open(file)?;
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

    /// Values in one input.
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
    /// points all of them count. The search is exact up to 2^16 points and
    /// approximate above (HNSW). `input` must hold [`samples`](Self::samples) values: further
    /// values are ignored, missing ones count as 0. For an input with a value that is not finite,
    /// all counts are 0.
    pub fn counts(&self, input: &[f32], k: usize, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.classes, 0);
        if k > 0 && input.iter().all(|value| value.is_finite()) {
            self.neighbours.count(self.embed(input), k, out);
        }
    }

    /// Writes the classifier's vote into `out`: 1 for its most likely class, 0 for the others. All
    /// 0 without a classifier, or for an input with a value that is not finite.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use candle_core::{Device, Tensor};
    use kdtree::KdTree;
    use kdtree::distance::squared_euclidean;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::super::file::{LABELS, POINTS, PROJECTION};
    use super::*;
    use crate::weights::tensors::write_tensors;

    const SAMPLES: usize = 20;
    const DIMENSIONS: usize = 12;
    const CLASSES: usize = 7;

    /// Writes a file of random points and opens it; also returns the points and labels.
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
