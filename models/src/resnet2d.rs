//! Residual networks over images, with exits: the family that EdgeServing schedules.
//!
//! A stem, groups of residual blocks of one width, and a pooled linear head after some of the
//! groups. The same code is ResNet-20/32/56 at CIFAR's size, trained here, and ResNet-50/101/152
//! with public weights. A block cannot be cut; blocks are grouped into stages of similar cost.
//!
//! Networks trained here have no normalisation: the last convolution of a block starts small, so
//! that a block starts as the identity (Zhang et al., "Fixup Initialization", 2019). Public ones
//! have batch normalisation, which is folded as they load.

mod spec;
mod tensors;

use candle_core::{Result, Tensor};

pub use spec::{BlockKind, GroupSpec, ResNet2dSpec, StemSpec, TensorLayout};

use crate::error::ModelError;
use crate::layers::Linear;
use crate::layers2d::{Conv2d, max_pool, mean_pool};
use crate::model::{StagedModel, in_slices};
use crate::params::Params;
use crate::pointwise::{add_relu, relu};
use crate::unfold2d::Window2d;
use spec::{COLOURS, Place};
use tensors::Source;

/// The network.
pub struct ResNet2d {
    spec: ResNet2dSpec,
    stem: Conv2d,
    blocks: Vec<Block>,
    heads: Vec<Linear>,
    exits: Vec<usize>,
    stages: Vec<Stage>,
}

/// A run of blocks; the first one has the stem in front.
struct Stage {
    first: usize,
    end: usize,
    /// Largest number of activations per image inside.
    width: usize,
}

/// `relu(skip(x) + convs(x))`, with a ReLU between convolutions.
struct Block {
    convs: Vec<Conv2d>,
    /// Present where the block changes the width or the resolution.
    skip: Option<Conv2d>,
}

// === impl ResNet2d ===

impl ResNet2d {
    pub(crate) fn new(
        params: &mut Params,
        spec: &ResNet2dSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mut source = Source::new(params, spec.layout);
        let stem = source.stem(&spec.stem)?;
        let places = spec.places();
        let blocks = places
            .iter()
            .map(|place| Block::new(&mut source, spec.block, place))
            .collect::<std::result::Result<_, _>>()?;
        let heads = spec
            .exits
            .iter()
            .map(|&group| {
                let width = spec.block.output(spec.groups[group - 1].channels);
                source.head(group, group == spec.groups.len(), [width, spec.classes])
            })
            .collect::<std::result::Result<_, _>>()?;
        let mut first = 0;
        let mut stages = Vec::new();
        for end in spec.stage_ends() {
            let widths = places[first..end].iter().map(|place| place.width);
            let stem = if first == 0 { spec.stem_width() } else { 0 };
            stages.push(Stage {
                first,
                end,
                width: widths.fold(stem, usize::max),
            });
            first = end;
        }
        Ok(Self {
            spec: spec.clone(),
            stem,
            blocks,
            heads,
            exits: spec.exits_after(),
            stages,
        })
    }

    /// `[batch, 3 * size * size]`, channels first as clients send it, to the first block's input.
    fn begin(&self, x: &Tensor) -> Result<Tensor> {
        let size = self.spec.size;
        let (batch, width) = x.dims2()?;
        if width != COLOURS * size * size {
            candle_core::bail!(
                "input has {width} samples, the model takes {COLOURS} x {size} x {size}"
            );
        }
        let image = x
            .reshape((batch, COLOURS, size, size))?
            .permute((0, 2, 3, 1))?
            .contiguous()?;
        let x = relu(&self.stem.forward(&image)?)?;
        if self.spec.stem.pool {
            return max_pool(&x, Window2d::centred(3, 2));
        }
        Ok(x)
    }
}

impl StagedModel for ResNet2d {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let Some(stage) = self.stages.get(stage) else {
            candle_core::bail!("stage {stage} of {}", self.stages.len());
        };
        in_slices(x, stage.width, |x| {
            let mut x = match stage.first {
                0 => self.begin(x)?,
                _ => x.clone(),
            };
            for block in &self.blocks[stage.first..stage.end] {
                x = block.forward(&x)?;
            }
            Ok(x)
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            candle_core::bail!("exit {exit} of {}", self.heads.len());
        };
        head.forward(&mean_pool(x)?)
    }
}

// === impl Block ===

impl Block {
    fn new(
        source: &mut Source,
        kind: BlockKind,
        place: &Place,
    ) -> std::result::Result<Self, ModelError> {
        let shapes = kind.convs(place);
        let last = shapes.len() - 1;
        let convs = shapes
            .iter()
            .enumerate()
            .map(|(i, shape)| source.conv(place, i, i == last, shape))
            .collect::<std::result::Result<_, _>>()?;
        let output = kind.output(place.channels);
        let skip = if place.stride != 1 || place.input != output {
            Some(source.skip(place, output)?)
        } else {
            None
        };
        Ok(Self { convs, skip })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut inner = self.convs[0].forward(x)?;
        for conv in &self.convs[1..] {
            inner = conv.forward(&relu(&inner)?)?;
        }
        match &self.skip {
            Some(skip) => add_relu(&skip.forward(x)?, &inner),
            None => add_relu(x, &inner),
        }
    }
}
