//! The positions of a convolution, cut into blocks that fit a cache and that threads share.

use rayon::prelude::*;

use super::tile::Runs;
use crate::unfold2d::Window2d;

/// Input numbers that a block of positions reads, about: half of a second-level cache, beside a
/// panel of weights.
const BLOCK_NUMBERS: usize = 48 * 1024;

/// Positions in one block at least, where there are as many.
const BLOCK_MIN: usize = 16;

/// Positions in one block at most; their offsets are kept on the stack.
pub(super) const BLOCK_MAX: usize = 384;

/// Positions that make whole tiles of any size.
const TILES: usize = 24;

/// Multiply-adds below which a convolution is not shared among threads: waking one takes as long.
pub(super) const SHARED_MIN: usize = 1 << 20;

/// Where windows lie in padded pictures, channels last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Numbers from one picture, line and column of windows to the next.
    steps: [usize; 3],
    /// Lines and columns of windows over a picture.
    windows: [usize; 2],
    /// What a window reads.
    pub(super) runs: Runs,
}

// === impl Geometry ===

impl Geometry {
    /// Of windows `[lines, columns]` over pictures `[height, width, channels]`, padding included.
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

    /// Windows over one picture.
    pub(super) fn per_picture(&self) -> usize {
        self.windows[0] * self.windows[1]
    }

    /// Where the windows from `first` on start in the input.
    pub(super) fn offsets(&self, first: usize, offsets: &mut [usize]) {
        for (i, offset) in offsets.iter_mut().enumerate() {
            let [lines, columns] = self.windows;
            let (line, column) = ((first + i) / columns, (first + i) % columns);
            let (picture, line) = (line / lines, line % lines);
            *offset = picture * self.steps[0] + line * self.steps[1] + column * self.steps[2];
        }
    }

    /// Calls `compute` with each block of `out` `[positions, output]` and its first position, on
    /// the threads of the pool this runs in where `rows` products for each number are worth it.
    pub(super) fn share(
        &self,
        out: &mut [f32],
        output: usize,
        rows: usize,
        compute: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let positions = out.len() / output.max(1);
        let threads = match out.len() * rows {
            ..SHARED_MIN => 1,
            _ => rayon::current_num_threads(),
        };
        let block = self.block(positions, threads);
        let numbers = (block * output).max(1);
        let compute = |(i, out): (usize, &mut [f32])| compute(i * block, out);
        if threads > 1 {
            out.par_chunks_mut(numbers).enumerate().for_each(compute);
        } else {
            out.chunks_mut(numbers).enumerate().for_each(compute);
        }
    }

    /// Positions of a block: their input fits the cache, every thread gets one, and none is left
    /// with a few for which all weights are read again.
    fn block(&self, positions: usize, threads: usize) -> usize {
        // Windows of neighbouring lines share what they read.
        let each = self.steps[1].max(1) / self.windows[1].max(1) + 1;
        let fitting = (BLOCK_NUMBERS / each).clamp(BLOCK_MIN, BLOCK_MAX);
        let blocks = positions.div_ceil(fitting).next_multiple_of(threads);
        let even = positions.div_ceil(blocks.max(1));
        match even {
            0..64 => even.max(1),
            _ => even.next_multiple_of(TILES).min(BLOCK_MAX),
        }
    }
}
