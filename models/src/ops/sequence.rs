//! Windows of a sequence as rows of a matrix (im2col), the first half of a 1-D convolution.
//!
//! A sequence is an image of one line. candle 0.11's own im2col copies element by element and
//! differentiates through a convolution over the whole length; the composition of its `narrow` and
//! `cat` allocates a full padded gradient per tap. Both made training several times slower than
//! this.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use switchyard_kernels::{Padding, Window2d, Windows};

use super::device::has_kernels;
use super::tensors::{contiguous, kernel_error};

/// A "same" window: `ceil(length / stride)` windows of `kernel` positions, zeros outside.
///
/// `kernel` must be a multiple of `stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceWindow {
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

/// `[batch, length, channels]` to `[batch * windows, kernel * channels + 1]`.
struct Unfold(SequenceWindow);

/// The transpose of [`Unfold`]: adds every window back onto its positions.
struct Fold {
    window: SequenceWindow,
    /// `[batch, length, channels]`.
    dims: [usize; 3],
}

// === impl SequenceWindow ===

impl SequenceWindow {
    /// Windows over a sequence of `length` positions.
    pub(crate) fn count(&self, length: usize) -> usize {
        length.div_ceil(self.stride)
    }

    /// The same windows over a sequence of `length` positions seen as an image of one line.
    pub(crate) fn over(&self, length: usize) -> Window2d {
        let covered = (self.count(length).max(1) - 1) * self.stride + self.kernel;
        Window2d {
            kernel: [1, self.kernel],
            stride: [1, self.stride],
            padding: Padding {
                left: self.left(),
                right: covered.saturating_sub(self.left() + length),
                ..Padding::default()
            },
        }
    }

    /// Zeros in front of the sequence.
    fn left(&self) -> usize {
        (self.kernel - self.stride) / 2
    }

    /// `[batch, length, channels]` to `[batch * windows, kernel * channels + 1]`.
    ///
    /// The last column is 1 throughout, for the bias: one pass less over the output, and its
    /// gradient comes from the same product as the weights'.
    pub(crate) fn unfold(self, x: &Tensor) -> Result<Tensor> {
        if has_kernels(x) {
            x.contiguous()?.apply_op1(Unfold(self))
        } else {
            self.unfold_composed(x)
        }
    }

    /// The same from candle's own operations, for devices without a kernel of this project.
    fn unfold_composed(self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, channels) = x.dims3()?;
        let windows = self.count(length);
        // Folding `stride` neighbouring positions into the channels leaves windows of stride 1.
        let taps = self.kernel / self.stride;
        let folded_length = windows + taps - 1;
        let right = folded_length * self.stride - length - self.left();
        let folded = x.pad_with_zeros(1, self.left(), right)?.reshape((
            batch,
            folded_length,
            self.stride * channels,
        ))?;
        let mut columns = (0..taps)
            .map(|tap| folded.narrow(1, tap, windows))
            .collect::<Result<Vec<_>>>()?;
        columns.push(Tensor::ones((batch, windows, 1), x.dtype(), x.device())?);
        Tensor::cat(&columns, 2)?.reshape((batch * windows, self.kernel * channels + 1))
    }

    fn windows(self, length: usize, channels: usize) -> Result<Windows> {
        Windows::new(self.over(length), [1, length, channels]).map_err(kernel_error)
    }
}

// === impl Unfold ===

impl CustomOp1 for Unfold {
    fn name(&self) -> &'static str {
        "unfold"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, length, channels) = layout.shape().dims3()?;
        let sequences = contiguous(storage, layout)?;
        let windows = self.0.windows(length, channels)?;
        let count = batch * windows.per_image();
        let rows = windows.unfold(sequences, 0..count);
        Ok((CpuStorage::F32(rows), (count, windows.width() + 1).into()))
    }

    fn bwd(&self, arg: &Tensor, _res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let fold = Fold {
            window: self.0,
            dims: arg.dims3()?.into(),
        };
        Ok(Some(grad.contiguous()?.apply_op1_no_bwd(&fold)?))
    }
}

// === impl Fold ===

impl CustomOp1 for Fold {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = contiguous(storage, layout)?;
        let [batch, length, channels] = self.dims;
        let windows = self.window.windows(length, channels)?;
        let mut sums = vec![0f32; batch * length * channels];
        let count = batch * windows.per_image();
        windows.fold(rows, windows.width() + 1, 0..count, &mut sums);
        Ok((CpuStorage::F32(sums), self.dims.as_slice().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;

    const WINDOWS: [SequenceWindow; 5] = [
        SequenceWindow {
            kernel: 1,
            stride: 1,
        },
        SequenceWindow {
            kernel: 5,
            stride: 1,
        },
        SequenceWindow {
            kernel: 6,
            stride: 2,
        },
        SequenceWindow {
            kernel: 4,
            stride: 4,
        },
        SequenceWindow {
            kernel: 16,
            stride: 4,
        },
    ];

    fn rows(tensor: &Tensor) -> Vec<Vec<f32>> {
        tensor.to_vec2().unwrap()
    }

    #[test]
    fn windows_hold_their_neighbourhood() {
        let x = Tensor::new(&[[[1f32], [2.0], [3.0], [4.0], [5.0]]], &Device::Cpu).unwrap();
        let three = SequenceWindow {
            kernel: 3,
            stride: 1,
        };
        let want = [
            [0., 1., 2., 1.],
            [1., 2., 3., 1.],
            [2., 3., 4., 1.],
            [3., 4., 5., 1.],
            [4., 5., 0., 1.],
        ];
        assert_eq!(rows(&three.unfold(&x).unwrap()), want);
        let strided = SequenceWindow {
            kernel: 4,
            stride: 2,
        };
        let want = [
            [0., 1., 2., 3., 1.],
            [2., 3., 4., 5., 1.],
            [4., 5., 0., 0., 1.],
        ];
        assert_eq!(rows(&strided.unfold(&x).unwrap()), want);
    }

    #[test]
    fn forward_and_gradient_equal_the_composed_operations() {
        // 3 is shorter than some windows, 21 no multiple of any stride.
        for length in [3, 21] {
            let x = Var::randn(0f32, 1.0, (2, length, 3), &Device::Cpu).unwrap();
            for window in WINDOWS {
                let ours = window.unfold(&x).unwrap();
                let theirs = window.unfold_composed(&x).unwrap();
                assert_eq!(rows(&ours), rows(&theirs), "{window:?}");
                let scale = Tensor::randn(0f32, 1.0, ours.shape(), &Device::Cpu).unwrap();
                let gradient = |y: &Tensor| -> Vec<f32> {
                    let sum = (y * &scale).unwrap().sum_all().unwrap();
                    let gradients = sum.backward().unwrap();
                    let gradient = gradients.get(&x).unwrap();
                    gradient.flatten_all().unwrap().to_vec1().unwrap()
                };
                for (a, b) in gradient(&ours).iter().zip(gradient(&theirs)) {
                    assert!((a - b).abs() < 1e-5, "{window:?}: {a} {b}");
                }
            }
        }
    }
}
