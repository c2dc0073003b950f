//! The recurrence of an LSTM (Hochreiter and Schmidhuber, 1997).

use crate::functions::{Sigmoid, VectorFunction, tanh};
use crate::memory::Buffer;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Gates of a cell, in their order in memory: input, forget, candidate, output.
const GATES: usize = 4;

/// A layer that starts each sequence from zeros.
#[derive(Clone, Copy, Debug)]
pub struct LstmRecurrence<'a> {
    /// Steps of a sequence.
    pub steps: usize,
    /// Cells.
    pub width: usize,
    /// Added to the forget gate.
    pub forget_bias: f32,
    /// `[width, 4 * width]`: maps the previous hidden states to their contribution to the gates.
    pub weight: &'a [f32],
}

struct AllSequences<'a, 'b> {
    layer: LstmRecurrence<'a>,
    inputs: &'a [f32],
    states: &'b mut [f32],
}

/// One vector per gate.
type Gates<S> = [<S as Simd>::Vector; GATES];

// === impl LstmRecurrence ===

impl LstmRecurrence<'_> {
    /// Writes the hidden states `[sequences, steps, width]`. `inputs` is `[sequences, steps, 4 *
    /// width]`: the contribution of each step's input to the gates.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub fn unroll(self, inputs: &[f32], states: &mut [f32]) {
        let Self { width, weight, .. } = self;
        assert_eq!(weight.len(), width * GATES * width, "recurrent weights");
        assert_eq!(inputs.len(), GATES * states.len(), "inputs of the gates");
        let sequence = (self.steps * width).max(1);
        assert!(states.len().is_multiple_of(sequence), "whole sequences");
        dispatch(AllSequences {
            layer: self,
            inputs,
            states,
        });
    }

    /// Sums of the gates of cells `from..to` before their activation: `inputs` of a step, and the
    /// contributions of the previous hidden states.
    #[inline(always)]
    fn gates<S: Simd>(
        &self,
        simd: S,
        [from, to]: [usize; 2],
        inputs: &[f32],
        hidden: &[f32],
    ) -> Gates<S> {
        let columns = GATES * self.width;
        // Two sums per gate: one alone waits for each addition.
        let (mut even, mut odd) = ([simd.splat(0.0); GATES], [simd.splat(0.0); GATES]);
        let (pairs, last) = hidden.as_chunks::<2>();
        let rows = self.weight.chunks_exact((2 * columns).max(1));
        for ([first, second], rows) in pairs.iter().zip(rows) {
            let (first_row, second_row) = rows.split_at(columns);
            self.add_row(simd, [from, to], *first, first_row, &mut even);
            self.add_row(simd, [from, to], *second, second_row, &mut odd);
        }
        if let [last] = last {
            let row = &self.weight[(self.width - 1) * columns..];
            self.add_row(simd, [from, to], *last, row, &mut even);
        }
        self.add_row(simd, [from, to], 1.0, inputs, &mut odd);
        for (even, odd) in even.iter_mut().zip(odd) {
            *even = simd.add(*even, odd);
        }
        even
    }

    /// `sums += scale * row`, for cells `from..to`.
    #[inline(always)]
    fn add_row<S: Simd>(
        &self,
        simd: S,
        [from, to]: [usize; 2],
        scale: f32,
        row: &[f32],
        sums: &mut Gates<S>,
    ) {
        let scale = simd.splat(scale);
        for (gate, sum) in sums.iter_mut().enumerate() {
            let part = &row[gate * self.width..][from..to];
            *sum = simd.mul_add(scale, simd.load(part), *sum);
        }
    }
}

// === impl AllSequences ===

impl Vectorized for AllSequences<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            layer,
            inputs,
            states,
        } = self;
        let LstmRecurrence { steps, width, .. } = layer;
        let columns = (GATES * width).max(1);
        let mut cells = Buffer::take(width);
        let sequences = inputs.chunks_exact((steps * columns).max(1));
        let states = states.chunks_exact_mut((steps * width).max(1));
        for (inputs, states) in sequences.zip(states) {
            cells.fill(0.0);
            for (step, inputs) in inputs.chunks_exact(columns).enumerate() {
                let (before, states) = states.split_at_mut(step * width);
                // Empty before the first step.
                let hidden = &before[step.saturating_sub(1) * width..];
                let states = states[..width].chunks_mut(S::LANES);
                for (at, (state, cell)) in states.zip(cells.chunks_mut(S::LANES)).enumerate() {
                    let from = at * S::LANES;
                    let range = [from, from + cell.len()];
                    let [input, forget, candidate, output] =
                        layer.gates(simd, range, inputs, hidden);
                    let forget = simd.add(forget, simd.splat(layer.forget_bias));
                    let kept = simd.mul(Sigmoid.of(simd, forget), simd.load(cell));
                    let input = Sigmoid.of(simd, input);
                    let next = simd.mul_add(input, tanh(simd, candidate), kept);
                    simd.store(cell, next);
                    let output = Sigmoid.of(simd, output);
                    simd.store(state, simd.mul(output, tanh(simd, next)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    const FORGET_BIAS: f32 = 1.0;

    /// The definition, in f64, for one sequence.
    fn reference(layer: LstmRecurrence<'_>, inputs: &[f32]) -> Vec<f64> {
        let width = layer.width;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (mut hidden, mut cell) = (vec![0.0; width], vec![0.0; width]);
        let mut states = Vec::new();
        for inputs in inputs.chunks_exact(GATES * width) {
            let gate = |gate: usize, at: usize| {
                let column = gate * width + at;
                let rows = layer.weight.chunks_exact(GATES * width).zip(&hidden);
                let sum: f64 = rows.map(|(row, h)| f64::from(row[column]) * h).sum();
                f64::from(inputs[column]) + sum
            };
            let mut next = Vec::new();
            for (at, cell) in cell.iter_mut().enumerate() {
                let forget = sigmoid(gate(1, at) + f64::from(layer.forget_bias));
                *cell = forget * *cell + sigmoid(gate(0, at)) * gate(2, at).tanh();
                next.push(sigmoid(gate(3, at)) * cell.tanh());
            }
            states.extend(&next);
            hidden = next;
        }
        states
    }

    #[test]
    fn states_are_those_of_the_definition() {
        for width in [1, 2, 5, 8, 16, 19, 24, 40] {
            for (sequences, steps) in [(3, 9), (2, 1), (0, 4), (1, 0)] {
                let weight = random(width * GATES * width, 0.5);
                let inputs = random(sequences * steps * GATES * width, 1.5);
                let layer = LstmRecurrence {
                    steps,
                    width,
                    forget_bias: FORGET_BIAS,
                    weight: &weight,
                };
                let mut states = vec![f32::NAN; sequences * steps * width];
                layer.unroll(&inputs, &mut states);
                let sequence = (steps * width).max(1);
                let inputs = inputs.chunks_exact(GATES * sequence);
                for (inputs, states) in inputs.zip(states.chunks_exact(sequence)) {
                    for (ours, want) in states.iter().zip(reference(layer, inputs)) {
                        let gap = (f64::from(*ours) - want).abs();
                        assert!(gap < 5e-6, "{width}: {ours} {want}");
                    }
                    let mut alone = vec![f32::NAN; sequence];
                    layer.unroll(inputs, &mut alone);
                    assert_eq!(alone, states, "in any batch");
                }
            }
        }
    }

    #[test]
    fn nan_stays_in_its_sequence() {
        let (steps, width) = (3, 5);
        let weight = random(width * GATES * width, 0.5);
        for at in 0..GATES * width {
            let mut inputs = random(2 * steps * GATES * width, 1.0);
            inputs[at] = f32::NAN;
            let mut states = vec![0.0; 2 * steps * width];
            let layer = LstmRecurrence {
                steps,
                width,
                forget_bias: FORGET_BIAS,
                weight: &weight,
            };
            layer.unroll(&inputs, &mut states);
            let (first, second) = states.split_at(steps * width);
            assert!(first[at % width].is_nan(), "{at}");
            assert!(first[width..].iter().all(|state| state.is_nan()), "{at}");
            assert!(second.iter().all(|state| state.is_finite()), "{at}");
        }
    }
}
