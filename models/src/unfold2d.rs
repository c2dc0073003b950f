//! Windows of a picture as rows of a matrix (im2col), the first half of a 2-D convolution.
//!
//! Pictures are channels last, `[batch, height, width, channels]`: what a window covers of one
//! line is one contiguous run of memory, copied at once. See `unfold` for why candle's own way is
//! not used.

use std::ops::Range;

use candle_core::{CpuStorage, Layout, Result, Tensor};

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

/// Windows over a batch of pictures, counted picture by picture and line by line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    window: Window2d,
    /// Lines and columns of a picture, and channels.
    picture: [usize; 3],
    /// Lines and columns of windows over a picture.
    output: [usize; 2],
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
            let band = padded.narrow(1, y, lines * stride_y)?;
            // With a stride of 1 all are views: nothing is copied.
            let band = match stride_y {
                1 => band,
                _ => band
                    .reshape((batch, lines, stride_y, (), channels))?
                    .narrow(2, 0, 1)?
                    .squeeze(2)?,
            };
            for x in 0..self.kernel[1] {
                let tap = band.narrow(2, x, columns * stride_x)?;
                taps.push(match stride_x {
                    1 => tap,
                    _ => tap
                        .reshape((batch, lines, columns, stride_x, channels))?
                        .narrow(3, 0, 1)?
                        .squeeze(3)?,
                });
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
            let (first_y, slot_y, count_y) = self.overlap(0, line, height);
            for column in 0..columns {
                let (first_x, slot_x, count) = self.overlap(1, column, width);
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
    fn overlap(&self, axis: usize, index: usize, length: usize) -> (usize, usize, usize) {
        let before = [self.padding.top, self.padding.left][axis];
        let start = index * self.stride[axis];
        let slot = before.saturating_sub(start).min(self.kernel[axis]);
        let first = (start + slot).saturating_sub(before).min(length);
        (first, slot, (self.kernel[axis] - slot).min(length - first))
    }
}

// === impl Windows ===

impl Windows {
    /// The windows over pictures of `height` lines, `width` columns and `channels`.
    ///
    /// # Errors
    /// The picture with its padding is smaller than a window.
    pub(crate) fn new(window: Window2d, [height, width, channels]: [usize; 3]) -> Result<Self> {
        Ok(Self {
            window,
            picture: [height, width, channels],
            output: window.output(height, width)?,
        })
    }

    /// Numbers in one picture.
    fn picture_len(&self) -> usize {
        self.picture.iter().product()
    }

    /// Windows over one picture.
    pub(crate) fn per_picture(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Numbers that a window covers.
    pub(crate) fn width(&self) -> usize {
        self.window.positions() * self.picture[2]
    }

    /// The windows `range` of `pictures` as rows of `[range, width + 1]`; columns ordered by
    /// (line, column, channel).
    ///
    /// The last column is 1 throughout, for the bias: one pass less over the product, and its
    /// gradient comes from the same product as the weights'.
    pub(crate) fn unfold(&self, pictures: &[f32], range: Range<usize>) -> Vec<f32> {
        let [height, width, channels] = self.picture;
        let kernel_x = self.window.kernel[1];
        let mut rows = Vec::with_capacity(range.len() * (self.width() + 1));
        for index in range {
            let (picture, line, column) = self.place(index);
            let picture = &pictures[picture * self.picture_len()..][..self.picture_len()];
            let (first_y, slot_y, count_y) = self.window.overlap(0, line, height);
            let (first_x, slot_x, count_x) = self.window.overlap(1, column, width);
            let end = rows.len() + self.width();
            rows.resize(rows.len() + slot_y * kernel_x * channels, 0.0);
            for y in first_y..first_y + count_y {
                let run = &picture[(y * width + first_x) * channels..][..count_x * channels];
                if count_x == kernel_x {
                    rows.extend_from_slice(run);
                } else {
                    rows.resize(rows.len() + slot_x * channels, 0.0);
                    rows.extend_from_slice(run);
                    let right = kernel_x - slot_x - count_x;
                    rows.resize(rows.len() + right * channels, 0.0);
                }
            }
            // What of the window lies below the picture.
            rows.resize(end, 0.0);
            rows.push(1.0);
        }
        rows
    }

    /// The transpose of [`unfold`](Self::unfold) without its last column: adds rows of
    /// `[range, width]` back onto the positions of `pictures`.
    pub(crate) fn fold(&self, rows: &[f32], range: Range<usize>, pictures: &mut [f32]) {
        let [height, width, channels] = self.picture;
        let kernel_x = self.window.kernel[1];
        for (index, row) in range.zip(rows.chunks_exact(self.width())) {
            let (picture, line, column) = self.place(index);
            let picture = &mut pictures[picture * self.picture_len()..][..self.picture_len()];
            let (first_y, slot_y, count_y) = self.window.overlap(0, line, height);
            let (first_x, slot_x, count_x) = self.window.overlap(1, column, width);
            for y in 0..count_y {
                let part = &row[((slot_y + y) * kernel_x + slot_x) * channels..];
                let onto = &mut picture[((first_y + y) * width + first_x) * channels..];
                for (sum, value) in onto[..count_x * channels].iter_mut().zip(part) {
                    *sum += value;
                }
            }
        }
    }

    /// Picture, line and column of a window.
    fn place(&self, index: usize) -> (usize, usize, usize) {
        let (picture, window) = (index / self.per_picture(), index % self.per_picture());
        (picture, window / self.output[1], window % self.output[1])
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
    use candle_core::Device;

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
        let windows = Windows::new(Window2d::centred(3, 2), [3, 3, 1]).unwrap();
        let want = [
            [0., 0., 0., 0., 1., 2., 0., 4., 5., 1.],
            [0., 0., 0., 2., 3., 0., 5., 6., 0., 1.],
            [0., 4., 5., 0., 7., 8., 0., 0., 0., 1.],
            [5., 6., 0., 8., 9., 0., 0., 0., 0., 1.],
        ];
        assert_eq!(windows.unfold(&x, 0..4), want.concat());
        assert_eq!(windows.unfold(&x, 1..3), want[1..3].concat());
    }

    #[test]
    fn rows_equal_the_composed_taps() {
        for (height, width) in [(4, 4), (9, 6)] {
            let x = Tensor::randn(0f32, 1.0, (2, height, width, 3), &Device::Cpu).unwrap();
            let numbers = x.flatten_all().unwrap().to_vec1().unwrap();
            for window in windows() {
                let windows = Windows::new(window, [height, width, 3]).unwrap();
                let count = 2 * windows.per_picture();
                let taps = Tensor::cat(&window.taps(&x).unwrap(), 3).unwrap();
                let taps = taps.flatten_to(2).unwrap().to_vec2::<f32>().unwrap();
                let rows = windows.unfold(&numbers, 0..count);
                for (row, taps) in rows.chunks_exact(windows.width() + 1).zip(&taps) {
                    assert_eq!(row.split_last().unwrap(), (&1.0, &taps[..]), "{window:?}");
                }
                assert_eq!(taps.len(), count);
            }
        }
    }

    /// `<unfold(x), y> = <x, fold(y)>`, block by block.
    #[test]
    fn folding_is_the_transpose_of_unfolding() {
        let random = |n: usize| -> Vec<f32> {
            let numbers = Tensor::randn(0f32, 1.0, n, &Device::Cpu).unwrap();
            numbers.to_vec1().unwrap()
        };
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        for window in windows() {
            let windows = Windows::new(window, [9, 6, 3]).unwrap();
            let (count, width) = (2 * windows.per_picture(), windows.width());
            let (x, y) = (random(2 * 9 * 6 * 3), random(count * width));
            let mut folded = vec![0.0; x.len()];
            let middle = count / 3;
            for range in [0..middle, middle..count] {
                let rows = &y[range.start * width..range.end * width];
                windows.fold(rows, range, &mut folded);
            }
            let rows = windows.unfold(&x, 0..count);
            let products = rows.chunks_exact(width + 1).zip(y.chunks_exact(width));
            let forward: f32 = products.map(|(row, y)| dot(&row[..width], y)).sum();
            let backward = dot(&x, &folded);
            assert!(
                (forward - backward).abs() < 1e-2,
                "{window:?}: {forward} {backward}"
            );
        }
    }

    #[test]
    fn a_picture_smaller_than_its_window_is_an_error() {
        let window = lopsided([3, 3], [1, 1], [0; 4]);
        let text = Windows::new(window, [2, 8, 1]).unwrap_err().to_string();
        assert!(text.contains("2 by 8"), "{text}");
    }
}
