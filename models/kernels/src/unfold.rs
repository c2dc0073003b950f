//! Windows of images as rows of a matrix (im2col), and its transpose.
//!
//! Images are channels last, `[images, height, width, channels]`: the part of one line that a
//! window covers is one contiguous run of memory, copied at once. A sequence is an image of one
//! line.

use std::ops::Range;

use crate::error::KernelError;
use crate::window::{Window2d, WindowRun};

/// Windows over a batch of images, counted image by image and line by line.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    window: Window2d,
    /// Lines and columns of an image, and channels.
    image: [usize; 3],
    /// Lines and columns of windows over an image.
    output: [usize; 2],
}

// === impl Windows ===

impl Windows {
    /// The windows over images of `height` lines, `width` columns and `channels`.
    ///
    /// # Errors
    /// The image with its padding is smaller than a window.
    pub fn new(
        window: Window2d,
        [height, width, channels]: [usize; 3],
    ) -> Result<Self, KernelError> {
        Ok(Self {
            window,
            image: [height, width, channels],
            output: window.output(height, width)?,
        })
    }

    /// Values of one image.
    pub fn image_len(&self) -> usize {
        self.image.iter().product()
    }

    /// Channels of an image.
    pub fn channels(&self) -> usize {
        self.image[2]
    }

    /// Lines and columns of windows over an image.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// Windows over one image.
    pub fn per_image(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Positions of one window.
    pub fn positions(&self) -> usize {
        self.window.positions()
    }

    /// Values that a window covers.
    pub fn width(&self) -> usize {
        self.window.positions() * self.image[2]
    }

    /// The windows `range` of `images` as rows of `[range, width + 1]`; columns ordered by (line,
    /// column, channel).
    ///
    /// The last column is 1 throughout, for the bias: one pass less over the product, and its
    /// gradient comes from the same product as the weights'.
    pub fn unfold(&self, images: &[f32], range: Range<usize>) -> Vec<f32> {
        let [height, width, channels] = self.image;
        let kernel_x = self.window.kernel[1];
        let mut rows = Vec::with_capacity(range.len() * (self.width() + 1));
        for index in range {
            let (image, line, column) = self.place(index);
            let image = &images[image * self.image_len()..][..self.image_len()];
            let (first_y, slot_y, count_y) = self.window.overlap(0, line, height);
            let (first_x, slot_x, count_x) = self.window.overlap(1, column, width);
            let end = rows.len() + self.width();
            rows.resize(rows.len() + slot_y * kernel_x * channels, 0.0);
            for y in first_y..first_y + count_y {
                let run = &image[(y * width + first_x) * channels..][..count_x * channels];
                if count_x == kernel_x {
                    rows.extend_from_slice(run);
                } else {
                    rows.resize(rows.len() + slot_x * channels, 0.0);
                    rows.extend_from_slice(run);
                    let right = kernel_x - slot_x - count_x;
                    rows.resize(rows.len() + right * channels, 0.0);
                }
            }
            // The part of the window below the image.
            rows.resize(end, 0.0);
            rows.push(1.0);
        }
        rows
    }

    /// The transpose of [`unfold`](Self::unfold): adds the first [`width`](Self::width) values of
    /// each row, rows lying `pitch` apart, back onto the positions of `images`.
    pub fn fold(&self, rows: &[f32], pitch: usize, range: Range<usize>, images: &mut [f32]) {
        let [height, width, channels] = self.image;
        let kernel_x = self.window.kernel[1];
        for (index, row) in range.zip(rows.chunks_exact(pitch)) {
            let (image, line, column) = self.place(index);
            let image = &mut images[image * self.image_len()..][..self.image_len()];
            let (first_y, slot_y, count_y) = self.window.overlap(0, line, height);
            let (first_x, slot_x, count_x) = self.window.overlap(1, column, width);
            for y in 0..count_y {
                let part = &row[((slot_y + y) * kernel_x + slot_x) * channels..];
                let onto = &mut image[((first_y + y) * width + first_x) * channels..];
                for (sum, value) in onto[..count_x * channels].iter_mut().zip(part) {
                    *sum += value;
                }
            }
        }
    }

    /// Calls `visit` for each run that windows cover of one image, window by window.
    #[inline]
    pub(crate) fn for_each_run(&self, visit: impl FnMut(WindowRun)) {
        let [height, width, _] = self.image;
        self.window
            .for_each_run([height, width], self.output, visit);
    }

    /// Image, line and column of a window.
    fn place(&self, index: usize) -> (usize, usize, usize) {
        let (image, window) = (index / self.per_image(), index % self.per_image());
        (image, window / self.output[1], window % self.output[1])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{centred_windows, lopsided, random, random_map, slots};

    fn windows() -> Vec<Window2d> {
        let mut windows = centred_windows();
        windows.extend([
            lopsided([2, 3], [1, 2], [0, 1, 1, 0]),
            lopsided([3, 1], [1, 1], [1, 0, 1, 0]),
            lopsided([3, 3], [2, 2], [0, 0, 1, 1]),
            lopsided([4, 4], [4, 4], [0, 0, 0, 0]),
        ]);
        windows
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
    fn rows_are_the_slots_of_their_windows() {
        for [height, width] in [[4, 4], [9, 6]] {
            let x = random_map([2, height, width, 3]);
            for window in windows() {
                let windows = Windows::new(window, [height, width, 3]).unwrap();
                let count = 2 * windows.per_image();
                let rows = windows.unfold(&x.values, 0..count);
                let want = slots(&x, window);
                assert_eq!(want.len(), count);
                for (row, want) in rows.chunks_exact(windows.width() + 1).zip(&want) {
                    assert_eq!(row.split_last().unwrap(), (&1.0, &want[..]), "{window:?}");
                }
            }
        }
    }

    /// `<unfold(x), y> = <x, fold(y)>`, block by block.
    #[test]
    fn folding_is_the_transpose_of_unfolding() {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        for window in windows() {
            let windows = Windows::new(window, [9, 6, 3]).unwrap();
            let (count, width) = (2 * windows.per_image(), windows.width());
            let (x, y) = (random(2 * 9 * 6 * 3, 1.0), random(count * width, 1.0));
            let mut folded = vec![0.0; x.len()];
            let middle = count / 3;
            for range in [0..middle, middle..count] {
                let rows = &y[range.start * width..range.end * width];
                windows.fold(rows, width, range, &mut folded);
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
}
