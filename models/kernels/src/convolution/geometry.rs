//! The windows of a convolution in memory: their addresses, and blocks of them that fit a cache.

use super::driver::OutputCut;
use super::tile::Runs;
use crate::window::Window2d;

/// Approximate input values that a block of positions reads for a part of a panel's rows: they stay in a
/// second-level cache with that part and the next.
const BLOCK_VALUES: usize = 80 * 1024;

/// Fewest positions in one block, if there are as many.
const BLOCK_MIN: usize = 16;

/// Most positions in one block; their offsets are kept on the stack.
pub(super) const BLOCK_MAX: usize = 384;

/// A number of positions that full tiles of any size divide.
const TILES: usize = 24;

/// Where windows lie in padded images, channels last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Values from one image, line and column of windows to the next.
    steps: [usize; 3],
    /// Lines and columns of windows over an image.
    windows: [usize; 2],
    /// Memory that a window reads.
    pub(super) runs: Runs,
}

// === impl Geometry ===

impl Geometry {
    /// For windows `[lines, columns]` over images `[height, width, channels]`, padding included.
    pub(super) fn new(
        [height, width, channels]: [usize; 3],
        window: Window2d,
        windows: [usize; 2],
    ) -> Self {
        let pitch = width * channels;
        let [down, right] = window.stride;
        Self {
            steps: [height * pitch, down * pitch, right * channels],
            windows,
            runs: Runs {
                lines: window.kernel[0],
                pitch,
                run: window.kernel[1] * channels,
            },
        }
    }

    /// Windows over one image.
    pub(super) fn per_image(&self) -> usize {
        self.windows[0] * self.windows[1]
    }

    /// Offsets in the input of the windows from `first` on.
    pub(super) fn offsets(&self, first: usize, offsets: &mut [usize]) {
        let [lines, columns] = self.windows;
        let (line, mut column) = (first / columns, first % columns);
        let (mut image, mut line) = (line / lines, line % lines);
        // Counted on: two divisions for each position would show.
        for offset in offsets {
            *offset = image * self.steps[0] + line * self.steps[1] + column * self.steps[2];
            column += 1;
            if column == columns {
                (line, column) = (line + 1, 0);
            }
            if line == lines {
                (image, line) = (image + 1, 0);
            }
        }
    }

    /// How an output of `len` values, `output` per position, is cut for this many threads, if a line of a window
    /// is read in as many `parts`.
    pub(super) fn cut(&self, len: usize, output: usize, threads: usize, parts: usize) -> OutputCut {
        OutputCut {
            group: len,
            block: self.block(len / output.max(1), threads, parts) * output,
        }
    }

    /// Positions of a block: their input fits the cache, every thread gets a block, and no thread
    /// is left with a few positions for which it reads all weights again.
    fn block(&self, positions: usize, threads: usize, parts: usize) -> usize {
        // Windows of neighbouring lines share their input.
        let each = self.steps[1] / self.windows[1].max(1) / parts.max(1) + 1;
        let fitting = (BLOCK_VALUES / each).clamp(BLOCK_MIN, BLOCK_MAX);
        let blocks = positions.div_ceil(fitting).next_multiple_of(threads);
        let even = positions.div_ceil(blocks.max(1));
        match even {
            0..64 => even.max(1),
            _ => even.next_multiple_of(TILES).min(BLOCK_MAX),
        }
    }
}
