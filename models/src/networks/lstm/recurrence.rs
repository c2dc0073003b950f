//! The recurrence of an LSTM as one operation with its own gradient.
//!
//! In candle's operations a step is a product, nine narrow elementwise operations and four copies,
//! and the gradient of `narrow` allocates the whole sequence once per step. Here a layer's forward
//! and backward pass are two loops over contiguous rows.

use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor};
use switchyard_kernels::LstmRecurrence;

use crate::ops::device::has_kernels;
use crate::ops::tensors::contiguous;

/// Added to the forget gate, so that a layer starts by remembering (Jozefowicz et al., "An
/// Empirical Exploration of Recurrent Network Architectures", 2015).
const FORGET_BIAS: f32 = 1.0;

/// Gates of a cell, in their order in memory: input, forget, candidate, output.
pub(super) const GATES: usize = 4;

/// Hidden states `[batch, steps, width]` of a layer that starts from zeros.
///
/// `inputs` is `[batch, steps, 4 * width]`: the contribution of each step's input to the gates.
/// `weight` is `[width, 4 * width]`: it maps the previous state to its contribution.
pub(super) fn unroll(inputs: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (_, _, gates) = inputs.dims3()?;
    let (width, columns) = weight.dims2()?;
    if columns != gates || gates != GATES * width {
        candle_core::bail!("{gates} gate inputs and recurrent weights [{width}, {columns}]");
    }
    if has_kernels(inputs) {
        inputs
            .contiguous()?
            .apply_op2(&weight.contiguous()?, Unroll)
    } else {
        composed(inputs, weight)
    }
}

/// The same made of candle's own operations, for devices without a kernel of this project.
fn composed(inputs: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (batch, steps, gates) = inputs.dims3()?;
    let width = gates / GATES;
    let zeros = Tensor::zeros((batch, width), inputs.dtype(), inputs.device())?;
    let (mut hidden, mut cell) = (zeros.clone(), zeros);
    let mut states = Vec::with_capacity(steps);
    for step in 0..steps {
        let input = inputs.narrow(1, step, 1)?.squeeze(1)?;
        let gates = (input + hidden.matmul(weight)?)?;
        let gate = |index: usize| gates.narrow(1, index * width, width);
        let keep = candle_nn::ops::sigmoid(&(gate(1)? + f64::from(FORGET_BIAS))?)?;
        let write = candle_nn::ops::sigmoid(&gate(0)?)?;
        cell = ((keep * &cell)? + (write * gate(2)?.tanh()?)?)?;
        hidden = (candle_nn::ops::sigmoid(&gate(3)?)? * cell.tanh()?)?;
        states.push(hidden.clone());
    }
    Tensor::stack(&states, 1)
}

/// [`unroll`] on a CPU: gate inputs and recurrent weights to hidden states.
struct Unroll;

/// Gates before their activation, transposed weights `[4 * width, width]` and the gradient of the
/// hidden states, to the gradient of the gate inputs.
struct Rewind;

/// Gates of one cell after their activation.
#[derive(Clone, Copy)]
struct CellGates {
    input: f32,
    forget: f32,
    candidate: f32,
    output: f32,
}

// === impl CellGates ===

impl CellGates {
    /// Gates of unit `at` of a row `[4 * width]`.
    fn of(row: &[f32], width: usize, at: usize) -> Self {
        Self {
            input: sigmoid(row[at]),
            forget: sigmoid(row[width + at] + FORGET_BIAS),
            candidate: row[2 * width + at].tanh(),
            output: sigmoid(row[3 * width + at]),
        }
    }

    fn next_cell(&self, cell: f32) -> f32 {
        self.forget * cell + self.input * self.candidate
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `sum += scale * row`.
fn add_scaled(sum: &mut [f32], scale: f32, row: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += scale * value;
    }
}

// === impl Unroll ===

impl CustomOp2 for Unroll {
    fn name(&self) -> &'static str {
        "lstm"
    }

    fn cpu_fwd(
        &self,
        inputs: &CpuStorage,
        inputs_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, steps, columns) = inputs_layout.shape().dims3()?;
        let inputs = contiguous(inputs, inputs_layout)?;
        let weight = contiguous(weight, weight_layout)?;
        let width = columns / GATES;
        let mut states = vec![0f32; batch * steps * width];
        let layer = LstmRecurrence {
            steps,
            width,
            forget_bias: FORGET_BIAS,
            weight,
        };
        layer.unroll(inputs, &mut states);
        Ok((CpuStorage::F32(states), (batch, steps, width).into()))
    }

    fn bwd(
        &self,
        inputs: &Tensor,
        weight: &Tensor,
        states: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (batch, steps, columns) = inputs.dims3()?;
        let width = columns / GATES;
        // The states are known by now, so one product computes the gates of all steps.
        let start = Tensor::zeros((batch, 1, width), DType::F32, inputs.device())?;
        let before = Tensor::cat(&[&start, &states.narrow(1, 0, steps - 1)?], 1)?;
        let before = before.reshape((batch * steps, width))?;
        let gates = (inputs + before.matmul(weight)?.reshape(inputs.shape())?)?;
        let transposed = weight.t()?.contiguous()?;
        let grad = grad.contiguous()?;
        let by_gates = gates.apply_op3_no_bwd(&transposed, &grad, &Rewind)?;
        let flat = by_gates.reshape((batch * steps, columns))?;
        let by_weight = before.t()?.matmul(&flat)?;
        Ok((Some(by_gates), Some(by_weight)))
    }
}

// === impl Rewind ===

impl CustomOp3 for Rewind {
    fn name(&self) -> &'static str {
        "lstm-backward"
    }

    fn cpu_fwd(
        &self,
        gates: &CpuStorage,
        gates_layout: &Layout,
        transposed: &CpuStorage,
        transposed_layout: &Layout,
        grad: &CpuStorage,
        grad_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, steps, columns) = gates_layout.shape().dims3()?;
        let gates = contiguous(gates, gates_layout)?;
        let transposed = contiguous(transposed, transposed_layout)?;
        let grad = contiguous(grad, grad_layout)?;
        let width = columns / GATES;
        let mut out = vec![0f32; gates.len()];
        // Cells of one sequence, preceded by the initial zeros.
        let mut cells = vec![0f32; (steps + 1) * width];
        let mut by_hidden = vec![0f32; width];
        let mut by_cell = vec![0f32; width];
        for b in 0..batch {
            let rows = &gates[b * steps * columns..][..steps * columns];
            let out = &mut out[b * steps * columns..][..steps * columns];
            for (step, row) in rows.chunks_exact(columns).enumerate() {
                let (past, now) = cells.split_at_mut((step + 1) * width);
                for at in 0..width {
                    now[at] = CellGates::of(row, width, at).next_cell(past[step * width + at]);
                }
            }
            by_cell.fill(0.0);
            by_hidden.fill(0.0);
            for step in (0..steps).rev() {
                add_scaled(
                    &mut by_hidden,
                    1.0,
                    &grad[(b * steps + step) * width..][..width],
                );
                let row = &rows[step * columns..][..columns];
                let by_gates = &mut out[step * columns..][..columns];
                for at in 0..width {
                    let gate = CellGates::of(row, width, at);
                    let (before, cell) = (cells[step * width + at], cells[(step + 1) * width + at]);
                    let seen = cell.tanh();
                    by_cell[at] += by_hidden[at] * gate.output * (1.0 - seen * seen);
                    let by_input = by_cell[at] * gate.candidate;
                    let by_forget = by_cell[at] * before;
                    let by_candidate = by_cell[at] * gate.input;
                    let by_output = by_hidden[at] * seen;
                    by_gates[at] = by_input * gate.input * (1.0 - gate.input);
                    by_gates[width + at] = by_forget * gate.forget * (1.0 - gate.forget);
                    by_gates[2 * width + at] =
                        by_candidate * (1.0 - gate.candidate * gate.candidate);
                    by_gates[3 * width + at] = by_output * gate.output * (1.0 - gate.output);
                    by_cell[at] *= gate.forget;
                }
                by_hidden.fill(0.0);
                for (value, row) in by_gates.iter().zip(transposed.chunks_exact(width)) {
                    add_scaled(&mut by_hidden, *value, row);
                }
            }
        }
        Ok((CpuStorage::F32(out), (batch, steps, columns).into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;
    use crate::ops::testing::values;

    #[test]
    fn one_unit_by_hand() {
        // Width 1, two steps. Gates of step 0: all 0, so i = o = 1/2, f = s(1), g = 0: c = h = 0.
        // Step 1: i = o = s(1), g = tanh(1): c = s(1) tanh(1), h = s(1) tanh(c).
        let inputs = Tensor::new(
            &[[[0f32, 0.0, 0.0, 0.0], [1.0, 0.0, 1.0, 1.0]]],
            &Device::Cpu,
        );
        let weight = Tensor::new(&[[3f32, 3.0, 3.0, 3.0]], &Device::Cpu).unwrap();
        let states = values(&unroll(&inputs.unwrap(), &weight).unwrap());
        let open = 1.0 / (1.0 + (-1f32).exp());
        assert_eq!(states[0], 0.0);
        assert!((states[1] - open * (open * 1f32.tanh()).tanh()).abs() < 1e-6);
    }

    #[test]
    fn states_and_gradients_equal_the_composed_operations() {
        let (batch, steps, width) = (3, 7, 5);
        for steps in [1, steps] {
            let inputs = Var::randn(0f32, 1.0, (batch, steps, GATES * width), &Device::Cpu);
            let inputs = inputs.unwrap();
            let weight = Var::randn(0f32, 0.7, (width, GATES * width), &Device::Cpu).unwrap();
            let ours = unroll(&inputs, &weight).unwrap();
            let theirs = composed(&inputs, &weight).unwrap();
            let scale = Tensor::randn(0f32, 1.0, ours.shape(), &Device::Cpu).unwrap();
            let gradients = |states: &Tensor| {
                let sum = (states * &scale).unwrap().sum_all().unwrap();
                let gradients = sum.backward().unwrap();
                let of = |var: &Var| values(gradients.get(var).unwrap());
                [values(states), of(&inputs), of(&weight)]
            };
            for (ours, theirs) in gradients(&ours).iter().zip(&gradients(&theirs)) {
                assert_eq!(ours.len(), theirs.len());
                for (a, b) in ours.iter().zip(theirs) {
                    assert!((a - b).abs() < 1e-5, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let inputs = Tensor::zeros((2, 3, 20), DType::F32, &Device::Cpu).unwrap();
        for shape in [(5, 16), (4, 16), (4, 20)] {
            let weight = Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
            assert!(unroll(&inputs, &weight).is_err(), "{shape:?}");
        }
    }
}
