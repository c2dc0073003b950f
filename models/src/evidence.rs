//! SneakPeek evidence: label counts of a request's nearest neighbours.
//!
//! A request is projected by a learned linear embedding; its k nearest training points vote with
//! their labels. The counts are the multinomial observation y of SneakPeek's Dirichlet posterior
//! (eq. 9-11). The training points are balanced over the classes, so the counts carry what the
//! input says and the prior carries how frequent a class is.

use std::path::Path;

use crate::error::ModelError;
use crate::params::read_tensors;

/// The embedding matrix `[samples, dimensions]`.
pub(crate) const PROJECTION: &str = "projection";
/// The embedded training points `[points, dimensions]`.
pub(crate) const POINTS: &str = "points";
/// Their labels `[points]`, as f32 like every tensor of the zoo.
pub(crate) const LABELS: &str = "labels";

/// Nearest-neighbour evidence over embedded training points.
#[derive(Clone, Debug)]
pub struct SneakPeek {
    samples: usize,
    dimensions: usize,
    classes: usize,
    /// `[samples, dimensions]`, row-major.
    projection: Vec<f32>,
    /// `[points, dimensions]`, row-major.
    points: Vec<f32>,
    labels: Vec<usize>,
}

// === impl SneakPeek ===

impl SneakPeek {
    /// Reads an embedding file for inputs of `samples` numbers and labels below `classes`.
    ///
    /// # Errors
    /// The file cannot be read, or a tensor is missing, of the wrong shape, or holds a label that
    /// is no class.
    pub fn open(file: &Path, samples: usize, classes: usize) -> Result<Self, ModelError> {
        let mut tensors = read_tensors(file)?;
        let mut take = |name: &str| {
            tensors
                .remove(name)
                .ok_or_else(|| ModelError::tensor(file, name, "missing"))
        };
        let (projection_shape, projection) = take(PROJECTION)?;
        let (points_shape, points) = take(POINTS)?;
        let (labels_shape, labels) = take(LABELS)?;
        let dimensions = match projection_shape[..] {
            [rows, columns] if rows == samples && columns > 0 => columns,
            _ => {
                let reason = format!("shape {projection_shape:?}, must be [{samples}, _]");
                return Err(ModelError::tensor(file, PROJECTION, reason));
            }
        };
        if points_shape.len() != 2 || points_shape[1] != dimensions || points_shape[0] == 0 {
            let reason = format!("shape {points_shape:?}, must be [_, {dimensions}]");
            return Err(ModelError::tensor(file, POINTS, reason));
        }
        if labels_shape != points_shape[..1] {
            let reason = format!("shape {labels_shape:?}, must be [{}]", points_shape[0]);
            return Err(ModelError::tensor(file, LABELS, reason));
        }
        let is_class = |label: &f32| label.fract() == 0.0 && (0.0..classes as f32).contains(label);
        if let Some(label) = labels.iter().find(|label| !is_class(label)) {
            let reason = format!("{label} is not one of {classes} classes");
            return Err(ModelError::tensor(file, LABELS, reason));
        }
        Ok(Self {
            samples,
            dimensions,
            classes,
            projection,
            points,
            labels: labels.iter().map(|&label| label as usize).collect(),
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
        self.labels.len()
    }

    /// Writes into `out`, per class, how many of the `k` nearest training points carry it.
    ///
    /// Distance is Euclidean in the embedding; ties go to the earlier point. With fewer than `k`
    /// points all of them count. `input` must hold [`samples`](Self::samples) numbers: values
    /// beyond that are ignored, missing ones count as 0. Inputs with a number that is not finite
    /// have no neighbours; all counts are 0.
    pub fn counts(&self, input: &[f32], k: usize, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.classes, 0);
        if k == 0 || !input.iter().all(|value| value.is_finite()) {
            return;
        }
        for point in self.nearest(&self.embed(input), k) {
            out[self.labels[point]] += 1;
        }
    }

    /// The linear embedding of an input.
    fn embed(&self, input: &[f32]) -> Vec<f32> {
        let mut embedded = vec![0.0; self.dimensions];
        for (value, row) in input.iter().zip(self.projection.chunks_exact(self.dimensions)) {
            for (sum, weight) in embedded.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
        embedded
    }

    /// Indices of the `k` points nearest to `query`, nearest first.
    fn nearest(&self, query: &[f32], k: usize) -> Vec<usize> {
        let mut best: Vec<(f32, usize)> = Vec::with_capacity(k.min(self.points()) + 1);
        for (index, point) in self.points.chunks_exact(self.dimensions).enumerate() {
            let distance: f32 = point.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum();
            if best.len() == k && best.last().is_some_and(|&(worst, _)| distance >= worst) {
                continue;
            }
            let at = best.partition_point(|&(nearer, _)| nearer <= distance);
            best.insert(at, (distance, index));
            best.truncate(k);
        }
        best.into_iter().map(|(_, index)| index).collect()
    }
}
