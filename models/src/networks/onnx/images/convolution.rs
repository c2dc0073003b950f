//! A convolution, and the rows of weights that the kernels pack.

use candle_core::Result;
use switchyard_kernels::{Activation, Window2d};

use super::function::Affine;
use crate::networks::onnx::elements;
use crate::networks::onnx::proto::TensorProto;

/// A convolution, with the operations that were joined to it.
pub(super) struct Convolution<'a> {
    pub(super) form: Form,
    weight: Weight<'a>,
    bias: Option<&'a TensorProto>,
    pub(super) window: Window2d,
    pub(super) input: usize,
    pub(super) output: usize,
    /// Of its sums, in this order.
    pub(super) affines: Vec<Affine<'a>>,
    pub(super) activation: Activation,
}

/// The way from positions to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Over all channels.
    Dense,
    /// Each channel on its own.
    Depthwise,
    /// Transposed, with windows that do not overlap: each position becomes a window.
    Spread,
}

/// The weights of a convolution.
#[derive(Clone, Copy)]
pub(super) enum Weight<'a> {
    Given(&'a TensorProto),
    /// The same for each position of a window.
    Mean,
}

// === impl Convolution ===

impl<'a> Convolution<'a> {
    pub(super) fn new(
        form: Form,
        weight: Weight<'a>,
        bias: Option<&'a TensorProto>,
        window: Window2d,
        [input, output]: [usize; 2],
    ) -> Self {
        Self {
            form,
            weight,
            bias,
            window,
            input,
            output,
            affines: Vec::new(),
            activation: Activation::None,
        }
    }

    /// Columns of [`rows`](Self::rows).
    pub(super) fn columns(&self) -> usize {
        match self.form {
            Form::Dense | Form::Depthwise => self.output,
            Form::Spread => self.output * self.window.positions(),
        }
    }

    /// Values of the weights.
    pub(super) fn weights(&self) -> usize {
        self.row_count() * self.columns()
    }

    /// Rows of [`rows`](Self::rows) but the bias.
    fn row_count(&self) -> usize {
        match self.form {
            Form::Dense => self.window.positions() * self.input,
            Form::Depthwise => self.window.positions(),
            Form::Spread => self.input,
        }
    }

    /// `[rows + 1, columns]`, the last row the bias. A row of a dense convolution is a position of the window
    /// and an input channel, that of a depthwise one a position; a spread one has a row per input channel, and a
    /// column for each position and output channel.
    ///
    /// # Errors
    /// A weight has not the values of its shape.
    pub(super) fn rows(&self) -> Result<Vec<f32>> {
        let (input, output) = (self.input, self.output);
        let (positions, columns) = (self.window.positions(), self.columns());
        let count = self.row_count();
        let weight = match self.weight {
            Weight::Given(weight) => elements::weights(weight)?,
            Weight::Mean => vec![1.0 / positions as f32; positions * output],
        };
        let mut rows = vec![0.0; (count + 1) * columns];
        for (at, value) in weight.into_iter().enumerate() {
            let (first, position) = (at / positions, at % positions);
            let [row, column] = match self.form {
                Form::Dense => [position * input + first % input, first / input],
                Form::Depthwise => [position, first],
                Form::Spread => [first / output, position * output + first % output],
            };
            rows[row * columns + column] = value;
        }
        if let Some(bias) = self.bias {
            let bias = elements::weights(bias)?;
            for (to, value) in rows[count * columns..].iter_mut().zip(bias.iter().cycle()) {
                *to = *value;
            }
        }
        for affine in &self.affines {
            let [factors, summands] = affine.parameters()?;
            for row in rows.chunks_exact_mut(columns) {
                for (value, factor) in row.iter_mut().zip(factors.iter().cycle()) {
                    *value *= factor;
                }
            }
            let last = rows[count * columns..].iter_mut();
            for (value, summand) in last.zip(summands.iter().cycle()) {
                *value += summand;
            }
        }
        Ok(rows)
    }
}
