//! The blocks of a residual network, their costs, and the stages they are cut into.

use switchyard_kernels::Window2d;

use super::spec::{BlockKind, ResNet2dSpec};
use crate::networks::stages::{exits_after, stage_ends};

/// Channels of an image.
pub(super) const COLOURS: usize = 3;

/// One block and its position.
pub(super) struct BlockPlan {
    /// Group and block within it, from 0.
    pub(super) group: usize,
    pub(super) block: usize,
    /// Channels of the input, and inside.
    pub(super) input: usize,
    pub(super) channels: usize,
    pub(super) stride: usize,
    /// Most activations per image at any point of the block.
    pub(super) width: usize,
    /// Multiply-adds per image.
    cost: f64,
}

/// One convolution of a block.
pub(super) struct BlockConv {
    pub(super) channels: [usize; 2],
    pub(super) window: Window2d,
}

// === impl ResNet2dSpec ===

impl ResNet2dSpec {
    /// Every block in order.
    pub(super) fn block_plans(&self) -> Vec<BlockPlan> {
        let mut side = self.stem_side();
        if self.stem.pool {
            side = side.div_ceil(2);
        }
        let mut input = self.stem.channels;
        let mut blocks = Vec::new();
        for (group, spec) in self.groups.iter().enumerate() {
            for block in 0..spec.blocks {
                let stride = if block == 0 { spec.stride } else { 1 };
                blocks.push(self.block_plan([group, block], input, stride, side));
                input = self.block.output(spec.channels);
                side = side.div_ceil(stride);
            }
        }
        blocks
    }

    fn block_plan(
        &self,
        [group, block]: [usize; 2],
        input: usize,
        stride: usize,
        side: usize,
    ) -> BlockPlan {
        let mut plan = BlockPlan {
            group,
            block,
            input,
            channels: self.groups[group].channels,
            stride,
            width: side * side * input,
            cost: 0.0,
        };
        let mut side = side;
        for shape in self.block.convs(&plan) {
            side = side.div_ceil(shape.window.stride[0]);
            let [from, to] = shape.channels;
            plan.width = plan.width.max(side * side * to);
            plan.cost += (side * side) as f64 * (shape.window.positions() * from * to) as f64;
        }
        plan
    }

    /// End of each stage, in blocks.
    pub(super) fn stage_ends(&self) -> Vec<usize> {
        let mut costs: Vec<f64> = self.block_plans().iter().map(|block| block.cost).collect();
        let taps = self.stem.kernel * self.stem.kernel * COLOURS;
        costs[0] += self.stem_width() as f64 * taps as f64;
        stage_ends(&costs, &self.blocks_through_exits(), self.slices)
    }

    /// For each exit, how many stages run before it.
    pub(super) fn exits_after(&self) -> Vec<usize> {
        exits_after(&self.stage_ends(), &self.blocks_through_exits())
    }

    /// For each exit, how many blocks run before it.
    fn blocks_through_exits(&self) -> Vec<usize> {
        let exits = self.exits.iter();
        exits.map(|&group| self.blocks_through(group)).collect()
    }

    /// Activations per image behind the stem.
    pub(super) fn stem_width(&self) -> usize {
        self.stem_side() * self.stem_side() * self.stem.channels
    }

    fn stem_side(&self) -> usize {
        self.size.div_ceil(self.stem.stride)
    }

    fn blocks_through(&self, group: usize) -> usize {
        self.groups[..group].iter().map(|group| group.blocks).sum()
    }
}

// === impl BlockKind ===

impl BlockKind {
    /// Channels that leave a block with `channels` inside.
    pub(super) fn output(self, channels: usize) -> usize {
        match self {
            Self::Basic => channels,
            Self::Bottleneck => channels * 4,
        }
    }

    /// The convolutions of a block in order.
    pub(super) fn convs(self, plan: &BlockPlan) -> Vec<BlockConv> {
        let (input, channels, stride) = (plan.input, plan.channels, plan.stride);
        let conv = |from, to, kernel, stride| BlockConv {
            channels: [from, to],
            window: Window2d::centred(kernel, stride),
        };
        match self {
            Self::Basic => vec![
                conv(input, channels, 3, stride),
                conv(channels, channels, 3, 1),
            ],
            Self::Bottleneck => vec![
                conv(input, channels, 1, 1),
                conv(channels, channels, 3, stride),
                conv(channels, self.output(channels), 1, 1),
            ],
        }
    }
}
