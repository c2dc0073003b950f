//! Where the windows of a convolution lie on an image.

use crate::error::KernelError;

/// Where windows lie on an image. Positions outside the image count as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window2d {
    /// Lines and columns of a window.
    pub kernel: [usize; 2],
    /// Lines and columns from one window to the next; both at least 1.
    pub stride: [usize; 2],
    /// Zeros around the image.
    pub padding: Padding,
}

/// Lines or columns of zeros on each side of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say all")]
pub struct Padding {
    pub top: usize,
    pub left: usize,
    pub bottom: usize,
    pub right: usize,
}

/// The part of one line of the image that one window covers, in positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRun {
    /// The window, counted along lines.
    pub(crate) window: usize,
    /// First position inside the window.
    pub(crate) slot: usize,
    /// First position inside the image.
    pub(crate) position: usize,
    /// Positions covered.
    pub(crate) count: usize,
}

// === impl Padding ===

impl Padding {
    /// Lines and columns of an image of `height` lines and `width` columns with these zeros.
    pub(crate) fn around(&self, height: usize, width: usize) -> [usize; 2] {
        [
            self.top + height + self.bottom,
            self.left + width + self.right,
        ]
    }
}

// === impl Window2d ===

impl Window2d {
    /// A square window with `(kernel - 1) / 2` zeros on every side, as PyTorch writes it.
    pub fn centred(kernel: usize, stride: usize) -> Self {
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
    pub fn positions(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each window is exactly one position of the image.
    pub fn is_identity(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == Padding::default()
    }

    /// Lines and columns of windows over an image of `height` lines and `width` columns.
    ///
    /// # Errors
    /// The image with its padding is smaller than a window.
    pub fn output(&self, height: usize, width: usize) -> Result<[usize; 2], KernelError> {
        let padded = self.padding.around(height, width);
        let [kernel_height, kernel_width] = self.kernel;
        if padded[0] < kernel_height || padded[1] < kernel_width {
            return Err(KernelError::ImageTooSmall {
                height,
                width,
                kernel_height,
                kernel_width,
            });
        }
        Ok([0, 1].map(|axis| (padded[axis] - self.kernel[axis]) / self.stride[axis] + 1))
    }

    /// Calls `visit` for each run that windows cover of an image, window by window.
    #[inline]
    pub(crate) fn for_each_run(
        &self,
        [height, width]: [usize; 2],
        [lines, columns]: [usize; 2],
        mut visit: impl FnMut(WindowRun),
    ) {
        for line in 0..lines {
            let (first_y, slot_y, count_y) = self.overlap(0, line, height);
            for column in 0..columns {
                let (first_x, slot_x, count) = self.overlap(1, column, width);
                for y in 0..count_y {
                    visit(WindowRun {
                        window: line * columns + column,
                        slot: (slot_y + y) * self.kernel[1] + slot_x,
                        position: (first_y + y) * width + first_x,
                        count,
                    });
                }
            }
        }
    }

    /// Along one axis, for window `index` over `length` positions: the first position, the first
    /// slot of the window that lies inside, and how many slots lie inside.
    #[inline]
    pub(crate) fn overlap(
        &self,
        axis: usize,
        index: usize,
        length: usize,
    ) -> (usize, usize, usize) {
        let before = [self.padding.top, self.padding.left][axis];
        let start = index * self.stride[axis];
        let slot = before.saturating_sub(start).min(self.kernel[axis]);
        let first = (start + slot).saturating_sub(before).min(length);
        (first, slot, (self.kernel[axis] - slot).min(length - first))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_image_smaller_than_its_window_is_an_error() {
        let window = Window2d {
            kernel: [3, 3],
            stride: [1, 1],
            padding: Padding::default(),
        };
        let text = window.output(2, 8).unwrap_err().to_string();
        assert!(text.contains("2 by 8"), "{text}");
        assert_eq!(window.output(3, 8), Ok([1, 6]));
    }
}
