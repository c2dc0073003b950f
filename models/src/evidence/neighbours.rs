//! The nearest of many points: an exact scan, or HNSW above [`EXACT_POINTS_MAX`] points.

use std::sync::Arc;

use instant_distance::{Builder, HnswMap, Point, Search};

use super::file::{EvidenceTensors, LABELS, POINTS};
use crate::error::ModelError;

/// Points up to which a search scans all of them. At this number a scan costs as much as HNSW
/// (`cargo bench -p switchyard-models --bench neighbours`); beyond it, a scan grows with the points
/// and HNSW hardly does. HNSW sometimes misses a neighbour, and takes nearly a minute to build the
/// graph when the file is opened.
const EXACT_POINTS_MAX: usize = 1 << 16;

/// Candidates kept in an approximate search; more find more of the true neighbours.
const EF_SEARCH: usize = 64;

/// Seed of the graph's layers, so that the same file always gives the same graph.
const SEED: u64 = 0x5eed;

/// Labelled points and their index.
#[derive(Clone, Debug)]
pub(super) enum Neighbours {
    Exact(ExactScan),
    Approximate(Arc<NeighbourGraph>),
}

/// Every point, one dimension at a time.
#[derive(Clone, Debug)]
pub(super) struct ExactScan {
    /// `[dimensions, points]`: see [`nearest`](Self::nearest).
    columns: Vec<f32>,
    labels: Vec<usize>,
}

/// A navigable small world over the points (Malkov and Yashunin, 2018).
pub(super) struct NeighbourGraph {
    map: HnswMap<EmbeddedPoint, usize>,
    points: usize,
}

#[derive(Clone)]
struct EmbeddedPoint(Box<[f32]>);

// === impl Neighbours ===

impl Neighbours {
    /// The points of an evidence file.
    pub(super) fn read(
        tensors: &mut EvidenceTensors<'_>,
        dimensions: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let file = tensors.file;
        let (shape, points) = tensors.take(POINTS)?;
        let (labels_shape, labels) = tensors.take(LABELS)?;
        if shape.len() != 2 || shape[1] != dimensions || shape[0] == 0 {
            let reason = format!("shape {shape:?}, must be [_, {dimensions}]");
            return Err(ModelError::tensor(file, POINTS, reason));
        }
        if labels_shape != shape[..1] {
            let reason = format!("shape {labels_shape:?}, must be [{}]", shape[0]);
            return Err(ModelError::tensor(file, LABELS, reason));
        }
        let is_class = |label: &f32| label.fract() == 0.0 && (0.0..classes as f32).contains(label);
        if let Some(label) = labels.iter().find(|label| !is_class(label)) {
            let reason = format!("{label} is not one of {classes} classes");
            return Err(ModelError::tensor(file, LABELS, reason));
        }
        let labels = labels.iter().map(|&label| label as usize).collect();
        Ok(if shape[0] <= EXACT_POINTS_MAX {
            Self::Exact(ExactScan::new(&points, dimensions, labels))
        } else {
            Self::Approximate(Arc::new(NeighbourGraph::new(&points, dimensions, labels)?))
        })
    }

    pub(super) fn points(&self) -> usize {
        match self {
            Self::Exact(scan) => scan.labels.len(),
            Self::Approximate(graph) => graph.points,
        }
    }

    /// Adds 1 to the count of each label among the `k` points nearest to `query`.
    pub(super) fn count(&self, query: Vec<f32>, k: usize, counts: &mut [u32]) {
        let mut add = |label: usize| counts[label] += 1;
        match self {
            Self::Exact(scan) => {
                let nearest = scan.nearest(&query, k);
                nearest.into_iter().map(|at| scan.labels[at]).for_each(add);
            }
            Self::Approximate(graph) => graph.each(query, k, &mut add),
        }
    }
}

// === impl ExactScan ===

impl ExactScan {
    fn new(points: &[f32], dimensions: usize, labels: Vec<usize>) -> Self {
        let columns = (0..dimensions)
            .flat_map(|column| points.iter().skip(column).step_by(dimensions).copied())
            .collect();
        Self { columns, labels }
    }

    /// Indices of the `k` points nearest to `query`, nearest first.
    ///
    /// One dimension at a time, so that it runs over whole vector registers. With 2,002 points in
    /// 12 dimensions it takes 2 us, the `kdtree` crate 11: with that many dimensions a tree has
    /// little to prune.
    fn nearest(&self, query: &[f32], k: usize) -> Vec<usize> {
        let points = self.labels.len();
        let mut distances = vec![0.0; points];
        for (column, &at) in self.columns.chunks_exact(points).zip(query) {
            for (distance, value) in distances.iter_mut().zip(column) {
                *distance += (value - at) * (value - at);
            }
        }
        let mut best: Vec<(f32, usize)> = Vec::with_capacity(k.min(points) + 1);
        let mut worst = f32::INFINITY;
        for (index, &distance) in distances.iter().enumerate() {
            if best.len() == k && distance >= worst {
                continue;
            }
            let at = best.partition_point(|&(nearer, _)| nearer <= distance);
            best.insert(at, (distance, index));
            best.truncate(k);
            worst = best.last().map_or(f32::INFINITY, |&(last, _)| last);
        }
        best.into_iter().map(|(_, index)| index).collect()
    }
}

// === impl NeighbourGraph ===

impl NeighbourGraph {
    fn new(points: &[f32], dimensions: usize, labels: Vec<usize>) -> Result<Self, ModelError> {
        let points: Vec<EmbeddedPoint> = points
            .chunks_exact(dimensions)
            .map(|point| EmbeddedPoint(point.into()))
            .collect();
        // On one thread: concurrent insertions make another graph each time.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool
            .map_err(|error| ModelError::Training(format!("no thread to index points: {error}")))?;
        let count = points.len();
        let builder = Builder::default().seed(SEED).ef_search(EF_SEARCH);
        Ok(Self {
            map: pool.install(|| builder.build(points, labels)),
            points: count,
        })
    }

    fn each(&self, query: Vec<f32>, k: usize, each: &mut dyn FnMut(usize)) {
        let mut search = Search::default();
        let found = self.map.search(&EmbeddedPoint(query.into()), &mut search);
        found.take(k).for_each(|item| each(*item.value));
    }
}

impl std::fmt::Debug for NeighbourGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeighbourGraph")
            .field("points", &self.points)
            .finish_non_exhaustive()
    }
}

// === impl EmbeddedPoint ===

impl Point for EmbeddedPoint {
    fn distance(&self, other: &Self) -> f32 {
        let both = self.0.iter().zip(&other.0);
        both.map(|(a, b)| (a - b) * (a - b)).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    /// The approximate search finds nearly all points that the exact one finds, and is repeatable.
    #[test]
    fn the_graph_finds_nearly_all_points_of_the_scan() {
        const DIMENSIONS: usize = 12;
        const POINTS: usize = 3000;
        let mut rng = Pcg64::seed_from_u64(5);
        let points: Vec<f32> = (0..POINTS * DIMENSIONS).map(|_| rng.random()).collect();
        // Every point is a class of its own, so that counts name the points found.
        let labels: Vec<usize> = (0..POINTS).collect();
        let scan = Neighbours::Exact(ExactScan::new(&points, DIMENSIONS, labels.clone()));
        let graph = || {
            Neighbours::Approximate(Arc::new(
                NeighbourGraph::new(&points, DIMENSIONS, labels.clone()).unwrap(),
            ))
        };
        let (first, second) = (graph(), graph());
        let (mut found, mut wanted) = (0, 0);
        for _ in 0..100 {
            let query: Vec<f32> = (0..DIMENSIONS).map(|_| rng.random()).collect();
            let count = |neighbours: &Neighbours| {
                let mut counts = vec![0; POINTS];
                neighbours.count(query.clone(), 5, &mut counts);
                counts
            };
            let (exact, near) = (count(&scan), count(&first));
            assert_eq!(near.iter().sum::<u32>(), 5);
            assert_eq!(near, count(&second));
            wanted += 5;
            found += exact
                .iter()
                .zip(&near)
                .filter(|(a, b)| **a == 1 && **b == 1)
                .count();
        }
        assert!(found * 100 >= wanted * 95, "{found} of {wanted}");
    }
}
