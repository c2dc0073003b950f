//! Networks with a backward pass: tanh layers, then a linear one, on batches of sparse rows.
//!
//! Nine tenths of an observation are 0 (one-hot counts, ages of missing requests): the first layer
//! skips them.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use ppo_router_net::math::tanh;
use switchyard_sim::random::Stream;

/// Rows of one pass through a network: their activations stay in the cache.
pub(crate) const CHUNK: usize = 500;

/// Rows that are mostly 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseRows {
    ends: Vec<usize>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

/// A network. Parameters are stored layer by layer: weights input by input, then biases.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    widths: Vec<usize>,
    /// All parameters.
    pub parameters: Vec<f32>,
}

/// Buffers of a pass over a batch.
#[derive(Clone, Debug, Default)]
pub struct PassBuffers {
    /// Outputs of each layer.
    layers: Vec<Vec<f32>>,
    slopes: Vec<f32>,
    slopes_below: Vec<f32>,
}

// === impl SparseRows ===

impl SparseRows {
    /// Adds a row.
    pub fn push(&mut self, row: &[f32]) {
        for (column, &value) in (0..).zip(row) {
            if value != 0.0 {
                self.columns.push(column);
                self.values.push(value);
            }
        }
        self.ends.push(self.columns.len());
    }

    /// Adds a row of `other`, extended beyond its `width` by `more`.
    pub fn push_longer(
        &mut self,
        other: &Self,
        r: usize,
        width: usize,
        more: impl Iterator<Item = f32>,
    ) {
        let (columns, values) = other.row(r);
        self.columns.extend_from_slice(columns);
        self.values.extend_from_slice(values);
        for (column, value) in (width as u16..).zip(more) {
            self.columns.push(column);
            self.values.push(value);
        }
        self.ends.push(self.columns.len());
    }

    /// Adds all rows of `other`.
    pub fn extend(&mut self, other: &Self) {
        let before = self.columns.len();
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.columns.extend_from_slice(&other.columns);
        self.values.extend_from_slice(&other.values);
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.columns.clear();
        self.values.clear();
    }

    #[inline]
    fn row(&self, r: usize) -> (&[u16], &[f32]) {
        let from = r.checked_sub(1).map_or(0, |before| self.ends[before]);
        let cells = from..self.ends[r];
        (&self.columns[cells.clone()], &self.values[cells])
    }
}

// === impl Mlp ===

impl Mlp {
    /// Random normal weights with a variance of 1 over the inputs, those of the last layer times
    /// `last`; biases of 0.
    #[must_use]
    pub fn new(widths: &[usize], last: f32, random: &mut Stream) -> Self {
        let mut parameters = Vec::new();
        for (l, pair) in widths.windows(2).enumerate() {
            let scale = if l + 2 == widths.len() { last } else { 1.0 };
            let deviation = scale / (pair[0] as f32).sqrt();
            let weights = (0..pair[0] * pair[1]).map(|_| deviation * random.normal() as f32);
            parameters.extend(weights);
            parameters.extend(std::iter::repeat_n(0.0, pair[1]));
        }
        Self {
            widths: widths.to_vec(),
            parameters,
        }
    }

    /// A network from its parameters.
    #[must_use]
    pub fn of(widths: &[usize], parameters: Vec<f32>) -> Self {
        Self {
            widths: widths.to_vec(),
            parameters,
        }
    }

    /// Widths of the layers, with inputs and outputs.
    #[must_use]
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// Weights and biases per layer.
    #[must_use]
    pub fn layers(&self) -> Vec<(Vec<f32>, Vec<f32>)> {
        let layers = 0..self.widths.len() - 1;
        let parts = layers.map(|l| {
            let (weights, biases) = self.layer(l);
            (weights.to_vec(), biases.to_vec())
        });
        parts.collect()
    }

    /// Outputs for the picked rows, row by row.
    pub fn forward<'p>(
        &self,
        rows: &SparseRows,
        picks: &[u32],
        pass: &'p mut PassBuffers,
    ) -> &'p [f32] {
        let layers = self.widths.len() - 1;
        pass.layers.resize_with(layers, Vec::new);
        for l in 0..layers {
            let (weights, biases) = self.layer(l);
            let outputs = self.widths[l + 1];
            let (below, above) = pass.layers.split_at_mut(l);
            let to = &mut above[0];
            to.clear();
            picks.iter().for_each(|_| to.extend_from_slice(biases));
            match below.last() {
                None => {
                    for (&r, to) in picks.iter().zip(to.chunks_exact_mut(outputs)) {
                        let (columns, values) = rows.row(r as usize);
                        for (&column, &value) in columns.iter().zip(values) {
                            let row = &weights[usize::from(column) * outputs..][..outputs];
                            add_scaled(to, value, row);
                        }
                    }
                }
                Some(from) => {
                    let from = matrix(from, picks.len(), self.widths[l]);
                    let weights = matrix(weights, self.widths[l], outputs);
                    let mut to = matrix_mut(to, picks.len(), outputs);
                    general_mat_mul(1.0, &from, &weights, 1.0, &mut to);
                }
            }
            if l + 1 < layers {
                to.iter_mut().for_each(|x| *x = tanh(*x));
            }
        }
        pass.layers.last().map_or(&[], Vec::as_slice)
    }

    /// Adds to `gradient` the gradient of the parameters, from the slopes of the outputs of the
    /// last [`forward`](Self::forward), which must have had the same rows.
    pub fn backward(
        &self,
        rows: &SparseRows,
        picks: &[u32],
        slopes: &[f32],
        pass: &mut PassBuffers,
        gradient: &mut [f32],
    ) {
        let batch = picks.len();
        pass.slopes.clear();
        pass.slopes.extend_from_slice(slopes);
        for l in (0..self.widths.len() - 1).rev() {
            let (inputs, outputs) = (self.widths[l], self.widths[l + 1]);
            let begin = self.begin(l);
            let (of_weights, of_biases) =
                gradient[begin..begin + (inputs + 1) * outputs].split_at_mut(inputs * outputs);
            for slopes in pass.slopes.chunks_exact(outputs) {
                add_scaled(of_biases, 1.0, slopes);
            }
            let Some(below) = l.checked_sub(1) else {
                for (&r, slopes) in picks.iter().zip(pass.slopes.chunks_exact(outputs)) {
                    let (columns, values) = rows.row(r as usize);
                    for (&column, &value) in columns.iter().zip(values) {
                        let row = &mut of_weights[usize::from(column) * outputs..][..outputs];
                        add_scaled(row, value, slopes);
                    }
                }
                return;
            };
            let from = &pass.layers[below];
            let slopes = matrix(&pass.slopes, batch, outputs);
            let inputs_by_row = matrix(from, batch, inputs);
            let mut of_weights = matrix_mut(of_weights, inputs, outputs);
            general_mat_mul(1.0, &inputs_by_row.t(), &slopes, 1.0, &mut of_weights);
            pass.slopes_below.resize(batch * inputs, 0.0);
            let weights = matrix(self.layer(l).0, inputs, outputs);
            let mut to = matrix_mut(&mut pass.slopes_below, batch, inputs);
            general_mat_mul(1.0, &slopes, &weights.t(), 0.0, &mut to);
            for (slope, &y) in pass.slopes_below.iter_mut().zip(from) {
                *slope *= 1.0 - y * y;
            }
            std::mem::swap(&mut pass.slopes, &mut pass.slopes_below);
        }
    }

    fn begin(&self, layer: usize) -> usize {
        let before = self.widths.windows(2).take(layer);
        before.map(|pair| (pair[0] + 1) * pair[1]).sum()
    }

    fn layer(&self, l: usize) -> (&[f32], &[f32]) {
        let (inputs, outputs) = (self.widths[l], self.widths[l + 1]);
        let all = &self.parameters[self.begin(l)..][..(inputs + 1) * outputs];
        all.split_at(inputs * outputs)
    }
}

#[inline]
fn add_scaled(to: &mut [f32], factor: f32, from: &[f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

fn matrix(numbers: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((rows, columns), &numbers[..rows * columns])
        .expect("as many numbers as rows times columns")
}

fn matrix_mut(numbers: &mut [f32], rows: usize, columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((rows, columns), &mut numbers[..rows * columns])
        .expect("as many numbers as rows times columns")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use switchyard_sim::random::Purpose;

    fn rows() -> SparseRows {
        let mut rows = SparseRows::default();
        rows.push(&[0.0, 0.3, 0.0, -0.7, 0.0]);
        rows.push(&[1.0, 0.0, 0.0, 0.0, 0.2]);
        let mut more = SparseRows::default();
        more.push(&[0.0; 5]);
        more.push(&[0.5, -0.4, 0.3, -0.2, 0.1]);
        rows.extend(&more);
        rows
    }

    /// The loss: the sum of outputs times slopes.
    fn loss(mlp: &Mlp, rows: &SparseRows, picks: &[u32], slopes: &[f32]) -> f64 {
        let mut pass = PassBuffers::default();
        let outputs = mlp.forward(rows, picks, &mut pass);
        let parts = outputs.iter().zip(slopes);
        parts.map(|(&y, &s)| f64::from(y) * f64::from(s)).sum()
    }

    #[test]
    fn the_backward_pass_equals_finite_differences() {
        let mut random = Stream::new(3, Purpose::Learning, 0);
        let mut mlp = Mlp::new(&[5, 7, 6, 3], 1.0, &mut random);
        let (rows, picks) = (rows(), [3, 0, 1, 2, 3]);
        let slopes: Vec<f32> = (0..15).map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0).collect();
        let mut gradient = vec![0.5; mlp.parameters.len()];
        let mut pass = PassBuffers::default();
        mlp.forward(&rows, &picks, &mut pass);
        mlp.backward(&rows, &picks, &slopes, &mut pass, &mut gradient);
        for (i, &found) in gradient.iter().enumerate() {
            let before = mlp.parameters[i];
            let mut at = |step: f32| {
                mlp.parameters[i] = before + step;
                loss(&mlp, &rows, &picks, &slopes)
            };
            let slope = (at(0.01) - at(-0.01)) / 0.02;
            mlp.parameters[i] = before;
            let got = f64::from(found - 0.5);
            let near = 2e-3 * slope.abs().max(1.0);
            assert!(
                (slope - got).abs() < near,
                "parameter {i}: {got}, not {slope}"
            );
        }
    }
}
