//! Windows of a picture as rows of a matrix (im2col), the first half of a 2-D convolution.
//!
//! Pictures are channels last, `[batch, height, width, channels]`: what a window covers of one
//! line is one contiguous run of memory, copied at once. See `unfold` for why candle's own way is
//! not used.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

/// Where windows lie on a picture. Outside the picture there are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window2d {
    /// Lines and columns of a window.
    pub(crate) kernel: [usize; 2],
    /// Lines and columns from one window to the next; both at least 1.
    pub(crate) stride: [usize; 2],
    /// Zeros around the picture.
    pub(crate) padding: Padding,
}

/// Lines or columns of zeros on each side of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Padding {
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) bottom: usize,
    pub(crate) right: usize,
}

/// What one window covers of one line of the picture, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The window, counted along lines.
    pub(crate) window: usize,
    /// First position inside the window.
    pub(crate) slot: usize,
    /// First position inside the picture.
    pub(crate) position: usize,
    /// Positions covered.
    pub(crate) count: usize,
}

/// `[batch, height, width, channels]` to `[batch * windows, kernel * channels + 1]`.
struct Unfold2d(Window2d);

/// The transpose of [`Unfold2d`]: adds every window back onto its positions.
struct Fold2d {
    window: Window2d,
    shape: [usize; 4],
}

// === impl Window2d ===

impl Window2d {
    /// A square window with `(kernel - 1) / 2` zeros on every side, as PyTorch writes it.
    pub(crate) fn centred(kernel: usize, stride: usize) -> Self {
        let side = (kernel - 1) / 2;
        Self {
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: Padding {
                top: side,
                left: side,
                bottom: side,
                right: side,
            },
        }
    }

    /// Positions of one window.
    pub(crate) fn positions(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether windows are the positions themselves.
    pub(crate) fn is_identity(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == Padding::default()
    }

    /// Lines and columns of windows over a picture of `height` lines and `width` columns.
    ///
    /// # Errors
    /// The picture with its padding is smaller than a window.
    pub(crate) fn output(&self, height: usize, width: usize) -> Result<[usize; 2]> {
        let Padding {
            top,
            left,
            bottom,
            right,
        } = self.padding;
        let padded = [top + height + bottom, left + width + right];
        let [kernel_height, kernel_width] = self.kernel;
        if padded[0] < kernel_height || padded[1] < kernel_width {
            candle_core::bail!(
                "a {height} by {width} picture is smaller than its {kernel_height} by \
                 {kernel_width} window"
            );
        }
        Ok([0, 1].map(|axis| (padded[axis] - self.kernel[axis]) / self.stride[axis] + 1))
    }

    /// `[batch, height, width, channels]` to `[batch * windows, kernel * channels + 1]`; columns
    /// ordered by (line, column, channel).
    ///
    /// The last column is 1 throughout, for the bias: one pass less over the output, and its
    /// gradient comes from the same product as the weights'.
    pub(crate) fn unfold(self, x: &Tensor) -> Result<Tensor> {
        if x.device().is_cpu() {
            x.contiguous()?.apply_op1(Unfold2d(self))
        } else {
            self.unfold_composed(x)
        }
    }

    /// The same from candle's own operations, for devices without a kernel of ours.
    fn unfold_composed(self, x: &Tensor) -> Result<Tensor> {
        let mut columns = self.taps(x)?;
        let (batch, height, width, _) = columns[0].dims4()?;
        columns.push(Tensor::ones(
            (batch, height, width, 1),
            x.dtype(),
            x.device(),
        )?);
        Tensor::cat(&columns, 3)?.flatten_to(2)
    }

    /// For each position of the window, in order, what all windows have there:
    /// `[batch, lines, columns, channels]` of windows. From candle's own operations.
    pub(crate) fn taps(self, x: &Tensor) -> Result<Vec<Tensor>> {
        let (batch, height, width, channels) = x.dims4()?;
        let [lines, columns] = self.output(height, width)?;
        let [stride_y, stride_x] = self.stride;
        // Room for whole strides behind the last tap, which are never read.
        let behind =
            |windows: usize, stride: usize, kernel: usize, before: usize, length: usize| {
                (windows * stride + kernel - 1).saturating_sub(before + length)
            };
        let Padding { top, left, .. } = self.padding;
        let bottom = behind(lines, stride_y, self.kernel[0], top, height);
        let right = behind(columns, stride_x, self.kernel[1], left, width);
        let padded = x
            .pad_with_zeros(1, top, bottom)?
            .pad_with_zeros(2, left, right)?;
        let mut taps = Vec::with_capacity(self.positions());
        for y in 0..self.kernel[0] {
            let band = padded
                .narrow(1, y, lines * stride_y)?
                .reshape((batch, lines, stride_y, (), channels))?
                .narrow(2, 0, 1)?
                .squeeze(2)?;
            for x in 0..self.kernel[1] {
                taps.push(
                    band.narrow(2, x, columns * stride_x)?
                        .reshape((batch, lines, columns, stride_x, channels))?
                        .narrow(3, 0, 1)?
                        .squeeze(3)?,
                );
            }
        }
        Ok(taps)
    }

    /// Calls `visit` for everything that windows cover of a picture, window by window.
    #[inline]
    pub(crate) fn for_each_run(
        &self,
        [height, width]: [usize; 2],
        [lines, columns]: [usize; 2],
        mut visit: impl FnMut(Run),
    ) {
        for line in 0..lines {
            let (first_y, slot_y, count_y) = self.overlap(0, self.padding.top, line, height);
            for column in 0..columns {
                let (first_x, slot_x, count) = self.overlap(1, self.padding.left, column, width);
                for y in 0..count_y {
                    visit(Run {
                        window: line * columns + column,
                        slot: (slot_y + y) * self.kernel[1] + slot_x,
                        position: (first_y + y) * width + first_x,
                        count,
                    });
                }
            }
        }
    }

    /// Along one axis, for window `index` over `length` positions: first position, first slot of
    /// the window that lies inside, and how many do.
    fn overlap(
        &self,
        axis: usize,
        before: usize,
        index: usize,
        length: usize,
    ) -> (usize, usize, usize) {
        let start = index * self.stride[axis];
        let slot = before.saturating_sub(start).min(self.kernel[axis]);
        let first = (start + slot).saturating_sub(before).min(length);
        (first, slot, (self.kernel[axis] - slot).min(length - first))
    }
}

// === impl Unfold2d ===

impl CustomOp1 for Unfold2d {
    fn name(&self) -> &'static str {
        "unfold2d"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = layout.shape().dims4()?;
        let source = contiguous(storage, layout)?;
        let output = self.0.output(height, width)?;
        let windows = output[0] * output[1];
        let row = self.0.positions() * channels + 1;
        let picture = height * width * channels;
        let mut rows = vec![0f32; batch * windows * row];
        for b in 0..batch {
            let from = &source[b * picture..][..picture];
            let to = &mut rows[b * windows * row..][..windows * row];
            self.0.for_each_run([height, width], output, |run| {
                let values = run.count * channels;
                to[run.window * row + run.slot * channels..][..values]
                    .copy_from_slice(&from[run.position * channels..][..values]);
            });
        }
        for row in rows.chunks_exact_mut(row) {
            row[row.len() - 1] = 1.0;
        }
        Ok((CpuStorage::F32(rows), (batch * windows, row).into()))
    }

    fn bwd(&self, arg: &Tensor, _res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let fold = Fold2d {
            window: self.0,
            shape: arg.dims4()?.into(),
        };
        Ok(Some(grad.contiguous()?.apply_op1_no_bwd(&fold)?))
    }
}

// === impl Fold2d ===

impl CustomOp1 for Fold2d {
    fn name(&self) -> &'static str {
        "fold2d"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = contiguous(storage, layout)?;
        let [batch, height, width, channels] = self.shape;
        let output = self.window.output(height, width)?;
        let windows = output[0] * output[1];
        let row = self.window.positions() * channels + 1;
        let picture = height * width * channels;
        let mut sums = vec![0f32; batch * picture];
        for b in 0..batch {
            let from = &rows[b * windows * row..][..windows * row];
            let to = &mut sums[b * picture..][..picture];
            self.window.for_each_run([height, width], output, |run| {
                let values = run.count * channels;
                let part = &from[run.window * row + run.slot * channels..][..values];
                let onto = &mut to[run.position * channels..][..values];
                for (sum, value) in onto.iter_mut().zip(part) {
                    *sum += value;
                }
            });
        }
        Ok((CpuStorage::F32(sums), self.shape.as_slice().into()))
    }
}

/// The numbers of a contiguous f32 tensor.
pub(crate) fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&values[from..to]),
        None => candle_core::bail!("windows need contiguous input"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;

    fn lopsided(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 4]) -> Window2d {
        let [top, left, bottom, right] = padding;
        Window2d {
            kernel,
            stride,
            padding: Padding {
                top,
                left,
                bottom,
                right,
            },
        }
    }

    fn windows() -> Vec<Window2d> {
        vec![
            Window2d::centred(1, 1),
            Window2d::centred(1, 2),
            Window2d::centred(3, 1),
            Window2d::centred(3, 2),
            Window2d::centred(7, 2),
            lopsided([2, 3], [1, 2], [0, 1, 1, 0]),
            lopsided([3, 1], [1, 1], [1, 0, 1, 0]),
            lopsided([3, 3], [2, 2], [0, 0, 1, 1]),
            lopsided([4, 4], [4, 4], [0, 0, 0, 0]),
        ]
    }

    #[test]
    fn windows_hold_their_neighbourhood() {
        let x: Vec<f32> = (1..=9).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (1, 3, 3, 1), &Device::Cpu).unwrap();
        let rows = Window2d::centred(3, 2).unfold(&x).unwrap();
        let want = [
            [0., 0., 0., 0., 1., 2., 0., 4., 5., 1.],
            [0., 0., 0., 2., 3., 0., 5., 6., 0., 1.],
            [0., 4., 5., 0., 7., 8., 0., 0., 0., 1.],
            [5., 6., 0., 8., 9., 0., 0., 0., 0., 1.],
        ];
        assert_eq!(rows.to_vec2::<f32>().unwrap(), want);
    }

    #[test]
    fn forward_and_gradient_equal_the_composed_operations() {
        for (height, width) in [(4, 4), (9, 6)] {
            let x = Var::randn(0f32, 1.0, (2, height, width, 3), &Device::Cpu).unwrap();
            for window in windows() {
                let ours = window.unfold(&x).unwrap();
                let theirs = window.unfold_composed(&x).unwrap();
                assert_eq!(
                    ours.to_vec2::<f32>().unwrap(),
                    theirs.to_vec2::<f32>().unwrap(),
                    "{window:?}"
                );
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

    #[test]
    fn a_picture_smaller_than_its_window_is_an_error() {
        let x = Tensor::zeros((1, 2, 8, 1), candle_core::DType::F32, &Device::Cpu).unwrap();
        let text = lopsided([3, 3], [1, 1], [0; 4])
            .unfold(&x)
            .unwrap_err()
            .to_string();
        assert!(text.contains("2 by 8"), "{text}");
    }
}
