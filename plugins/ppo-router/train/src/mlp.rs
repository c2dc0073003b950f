//! Networks with a backward pass: tanh layers, the last one linear, batches of sparse rows.
//!
//! Most numbers of an observation are 0 (one-hot lengths, ages of requests that are not there):
//! the first layer goes over the others alone, which saves nine tenths of it.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use ppo_router_net::math::tanh;
use switchyard_sim::random::Stream;

/// Rows that are mostly 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    ends: Vec<usize>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

/// A network. Parameters lie layer by layer: weights input by input, then biases.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    widths: Vec<usize>,
    /// All parameters.
    pub parameters: Vec<f32>,
}

/// Buffers of a pass over a batch.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Outputs of each layer.
    layers: Vec<Vec<f32>>,
    slopes: Vec<f32>,
    slopes_below: Vec<f32>,
}

// === impl Rows ===

impl Rows {
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

    /// Adds a row of another with more numbers behind its `width`.
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

    /// Adds all rows of another.
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

    /// No rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets the rows and keeps the memory.
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
    /// Random weights, normal with a variance of 1 over the inputs; those of the last layer
    /// times `last`, so that it begins near 0. No biases.
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

    /// With parameters that it had before.
    #[must_use]
    pub fn of(widths: &[usize], parameters: Vec<f32>) -> Self {
        Self {
            widths: widths.to_vec(),
            parameters,
        }
    }

    /// Widths of the layers, inputs and outputs included.
    #[must_use]
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// Weights and biases by layer.
    #[must_use]
    pub fn layers(&self) -> Vec<(Vec<f32>, Vec<f32>)> {
        let layers = 0..self.widths.len() - 1;
        let parts = layers.map(|l| {
            let (weights, biases) = self.layer(l);
            (weights.to_vec(), biases.to_vec())
        });
        parts.collect()
    }

    /// Outputs for some of the rows, one row of outputs after the other.
    pub fn forward<'p>(&self, rows: &Rows, picks: &[u32], pass: &'p mut Pass) -> &'p [f32] {
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

    /// Adds to `gradient` what the slopes of the last [`forward`](Self::forward)'s outputs make
    /// of the parameters. It must have been of the same rows.
    pub fn backward(
        &self,
        rows: &Rows,
        picks: &[u32],
        slopes: &[f32],
        pass: &mut Pass,
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

    fn rows() -> Rows {
        let mut rows = Rows::default();
        rows.push(&[0.0, 0.3, 0.0, -0.7, 0.0]);
        rows.push(&[1.0, 0.0, 0.0, 0.0, 0.2]);
        let mut more = Rows::default();
        more.push(&[0.0; 5]);
        more.push(&[0.5, -0.4, 0.3, -0.2, 0.1]);
        rows.extend(&more);
        rows
    }

    /// The loss whose slopes are given: the sum of outputs times slopes.
    fn loss(mlp: &Mlp, rows: &Rows, picks: &[u32], slopes: &[f32]) -> f64 {
        let mut pass = Pass::default();
        let outputs = mlp.forward(rows, picks, &mut pass);
        let parts = outputs.iter().zip(slopes);
        parts.map(|(&y, &s)| f64::from(y) * f64::from(s)).sum()
    }

    #[test]
    fn the_backward_pass_is_that_of_finite_differences() {
        let mut random = Stream::new(3, Purpose::Learning, 0);
        let mut mlp = Mlp::new(&[5, 7, 6, 3], 1.0, &mut random);
        let (rows, picks) = (rows(), [3, 0, 1, 2, 3]);
        let slopes: Vec<f32> = (0..15).map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0).collect();
        let mut gradient = vec![0.5; mlp.parameters.len()];
        let mut pass = Pass::default();
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

    #[test]
    fn it_is_the_network_that_is_served() {
        use crate::yard::Yard;
        use ppo_router_net::{Kind, Network, Scratch};
        let mut random = Stream::new(4, Purpose::Learning, 0);
        let meta = crate::train::meta(&Yard::paper(), Kind::Paper, &[9, 6], "", 1, "");
        let mlp = Mlp::new(&meta.layers, 1.0, &mut random);
        let network = Network::try_new(meta, mlp.layers()).unwrap();
        let mut rows = Rows::default();
        let numbers = (0..132).map(|i| if i % 5 == 0 { i as f32 / 132.0 } else { 0.0 });
        let observation: Vec<f32> = numbers.collect();
        rows.push(&observation);
        let (mut pass, mut scratch) = (Pass::default(), Scratch::default());
        let trained = mlp.forward(&rows, &[0], &mut pass);
        let served = network.forward(&observation, &mut scratch);
        for (a, b) in trained.iter().zip(served) {
            assert!((a - b).abs() < 1e-5, "{trained:?} {served:?}");
        }
    }
}
