//! Weights in panels of a few output channels each, and the tiles that cover a block of positions.

use super::tile::{positions, tiles, vectors};
use crate::error::KernelError;
use crate::window::Window2d;

/// Rows and columns of a convolution's weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightShape {
    /// Lines of a window.
    pub(super) lines: usize,
    /// Weights of one output channel: positions of a window times `input`.
    pub(super) rows: usize,
    pub(super) input: usize,
    pub(super) output: usize,
}

/// Channels `from..from + channels` of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    pub(crate) from: usize,
    pub(crate) channels: usize,
    pub(crate) vectors: usize,
}

/// Computes a block of positions, tile by tile.
pub(crate) trait Tiles {
    /// Channels of a vector.
    const LANES: usize;

    /// Vectors that fit into registers.
    const REGISTERS: usize;

    /// Steps in which a row of weights is multiplied.
    const STEPS: usize;

    /// Parts of a panel's rows.
    #[inline(always)]
    fn parts(&self) -> usize {
        1
    }

    /// The tiles from now on are of this part.
    #[inline(always)]
    fn begin(&mut self, _part: usize) {}

    /// Computes the positions of a tile, which start at `offsets` and are those of the block from
    /// `from` on, by the channels of a panel of `N` vectors. With fewer than `M` positions, the
    /// last one is computed more than once and written once.
    ///
    /// Must be `#[inline(always)]`.
    fn tile<const M: usize, const N: usize>(
        &mut self,
        panel: Panel,
        from: usize,
        offsets: &[usize],
    );
}

// === impl WeightShape ===

impl WeightShape {
    /// For `[rows + 1, output]` weights, `count` values in total, and windows of `lines` lines.
    pub(super) fn of(count: usize, [lines, input, output]: [usize; 3]) -> Self {
        Self {
            lines,
            rows: count / output - 1,
            input,
            output,
        }
    }

    /// Refuses a window or a number of channels that the weights were not made for.
    pub(super) fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        let rows = window.positions() * self.input;
        if (channels, self.rows, self.lines) == (self.input, rows, window.kernel[0]) {
            return Ok(());
        }
        Err(KernelError::Shape(format!(
            "weights for {} channels and {} rows meet {channels} channels and {window:?}",
            self.input, self.rows
        )))
    }
}

/// The output channels in panels; only the last panel may be narrower.
pub(crate) fn panels(output: usize, [lanes, registers]: [usize; 2]) -> impl Iterator<Item = Panel> {
    let width = vectors(registers) * lanes;
    (0..output).step_by(width).map(move |from| {
        let channels = width.min(output - from);
        let vectors = channels.div_ceil(lanes);
        Panel {
            from,
            channels,
            vectors,
        }
    })
}

/// Output channels, rounded up to whole vectors.
pub(crate) fn padded(output: usize, [lanes, _]: [usize; 2]) -> usize {
    output.next_multiple_of(lanes)
}

/// Computes all positions of a block, which start at `offsets`, for all output channels.
#[inline(always)]
pub(crate) fn compute<T: Tiles>(block: &mut T, output: usize, offsets: &[usize]) {
    for panel in panels(output, [T::LANES, T::REGISTERS]) {
        match panel.vectors {
            1 => of_panel::<T, 1>(block, panel, offsets),
            2 => of_panel::<T, 2>(block, panel, offsets),
            3 if vectors(T::REGISTERS) > 2 => of_panel::<T, 3>(block, panel, offsets),
            4 if vectors(T::REGISTERS) > 2 => of_panel::<T, 4>(block, panel, offsets),
            _ => unreachable!("panels have at most as many vectors"),
        }
    }
}

#[inline(always)]
fn of_panel<T: Tiles, const N: usize>(block: &mut T, panel: Panel, offsets: &[usize]) {
    // A constant, and so are the guards: the compiler makes no code for larger tiles.
    let most = positions(T::REGISTERS, N, T::STEPS);
    for part in 0..block.parts() {
        block.begin(part);
        for tile in tiles(offsets.len(), most) {
            let from = tile.start;
            let at = &offsets[tile];
            match at.len() {
                8 if most >= 8 => block.tile::<8, N>(panel, from, at),
                7 if most >= 8 => block.tile::<7, N>(panel, from, at),
                6 if most >= 6 => block.tile::<6, N>(panel, from, at),
                5 => block.tile::<5, N>(panel, from, at),
                3 | 4 => block.tile::<4, N>(panel, from, at),
                2 => block.tile::<2, N>(panel, from, at),
                1 => block.tile::<1, N>(panel, from, at),
                _ => unreachable!("tiles have at most as many positions"),
            }
        }
    }
}
