//! Packed weights of a convolution, for any kernel.

use super::dense::{DenseKernel, Words};
use super::depthwise::DepthwiseKernel;
use super::driver::{convolve, multiply};
use super::int8::Int8Kernel;
use super::winograd::WinogradKernel;
use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::FeatureMap;
use crate::window::Window2d;

/// The format in which weights are packed and multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightFormat {
    /// 32 bits.
    F32,
    /// The upper half of 32 bits.
    Bf16,
    /// 8 bits, with a scale per output.
    Int8,
}

/// Weights of a convolution over all channels, or of a linear map, which is a convolution of one
/// position.
#[derive(Debug)]
pub struct PackedConv(ChosenKernel);

/// Weights of a linear map in 32 bits, for rows in memory that is not a [`FeatureMap`]'s.
#[derive(Debug)]
pub struct PackedLinear {
    kernel: DenseKernel,
    sizes: [usize; 2],
}

/// Weights of a convolution of each channel on its own.
#[derive(Debug)]
pub struct PackedDepthwise(DepthwiseKernel);

/// The kernel that suits the weights.
#[derive(Debug)]
enum ChosenKernel {
    Dense(DenseKernel),
    Winograd(WinogradKernel),
    Int8(Int8Kernel),
}

// === impl PackedConv ===

impl PackedConv {
    /// Packs `[rows + 1, output]`, the last row the bias, for `input` channels; `rows` is the
    /// positions of a window times `input`. `window` is that of a convolution of images; without it
    /// windows have one line.
    ///
    /// # Errors
    /// There are too many rows for the format.
    pub fn new(
        weight: &[f32],
        window: Option<Window2d>,
        [input, output]: [usize; 2],
        format: WeightFormat,
    ) -> Result<Self, KernelError> {
        let shape = [window.map_or(1, |window| window.kernel[0]), input, output];
        let is_winograd = window.is_some_and(|w| WinogradKernel::suits(w, [input, output]));
        let kernel = match format {
            WeightFormat::F32 if is_winograd => {
                ChosenKernel::Winograd(WinogradKernel::new(weight, [input, output]))
            }
            WeightFormat::F32 => ChosenKernel::Dense(DenseKernel::new(weight, shape, Words::F32)),
            WeightFormat::Bf16 => ChosenKernel::Dense(DenseKernel::new(weight, shape, Words::Bf16)),
            WeightFormat::Int8 => ChosenKernel::Int8(Int8Kernel::new(weight, shape)?),
        };
        Ok(Self(kernel))
    }

    /// Convolves `x` with windows of as many positions as the weights were packed for; adds
    /// `residual`, which has the result's shape; applies `activation`.
    ///
    /// # Errors
    /// Shapes do not fit, or an image with its padding is smaller than a window.
    pub fn forward(
        &self,
        x: &FeatureMap,
        window: Window2d,
        residual: Option<&FeatureMap>,
        activation: Activation,
    ) -> Result<FeatureMap, KernelError> {
        match &self.0 {
            ChosenKernel::Dense(kernel) => convolve(kernel, x, window, residual, activation),
            ChosenKernel::Winograd(kernel) => convolve(kernel, x, window, residual, activation),
            ChosenKernel::Int8(kernel) => convolve(kernel, x, window, residual, activation),
        }
    }
}

// === impl PackedLinear ===

impl PackedLinear {
    /// Packs `[input + 1, output]`, the last row the bias.
    ///
    /// # Errors
    /// `weight` has not as many values, or a size is 0.
    pub fn new(weight: &[f32], [input, output]: [usize; 2]) -> Result<Self, KernelError> {
        if input == 0 || output == 0 || Some(weight.len()) != (input + 1).checked_mul(output) {
            let len = weight.len();
            return Err(KernelError::Shape(format!(
                "{len} weights of a linear map of {input} values to {output}"
            )));
        }
        let shape = [1, input, output];
        Ok(Self {
            kernel: DenseKernel::new(weight, shape, Words::F32),
            sizes: [input, output],
        })
    }

    /// Values of a row and of its result.
    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// Multiplies `x`, `[rows, input]`; writes `[rows, output]`. The threads of the current pool share the rows if
    /// there is enough work; the result does not depend on them.
    ///
    /// # Errors
    /// The sizes do not fit.
    pub fn forward(&self, x: &[f32], out: &mut [f32]) -> Result<(), KernelError> {
        multiply(&self.kernel, x, self.sizes[0], out)
    }
}

// === impl PackedDepthwise ===

impl PackedDepthwise {
    /// Packs `[positions + 1, channels]`, the last row the bias.
    pub fn new(weight: &[f32], channels: usize) -> Self {
        Self(DepthwiseKernel::new(weight, channels))
    }

    /// Convolves each channel of `x` with windows of as many positions as the weights have; applies
    /// `activation`.
    ///
    /// # Errors
    /// Shapes do not fit, or an image with its padding is smaller than a window.
    pub fn forward(
        &self,
        x: &FeatureMap,
        window: Window2d,
        activation: Activation,
    ) -> Result<FeatureMap, KernelError> {
        convolve(&self.0, x, window, None, activation)
    }
}
