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
use crate::flow::{Flow, Mode};
use crate::kernels::Activation;
use crate::layers::Linear;
use crate::layers2d::Conv2d;
use crate::model::{StagedModel, in_shares};
use crate::params::Params;
use crate::unfold2d::Window2d;
use spec::{COLOURS, Place};
use tensors::Source;

/// The network.
pub struct ResNet2d {
    spec: ResNet2dSpec,
    mode: Mode,
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

/// `relu(skip(x) + last(convs(x)))`, with a ReLU after each of `convs`.
struct Block {
    convs: Vec<Conv2d>,
    last: Conv2d,
    /// Present where the block changes the width or the resolution.
    skip: Option<Conv2d>,
}

// === impl ResNet2d ===

impl ResNet2d {
    pub(crate) fn new(
        params: &mut Params,
        spec: &ResNet2dSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mode = params.mode();
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
            mode,
            stem,
            blocks,
            heads,
            exits: spec.exits_after(),
            stages,
        })
    }

    /// `[batch, 3 * size * size]`, channels first as clients send it, to the first block's input.
    fn begin(&self, x: &Tensor) -> Result<Flow> {
        let size = self.spec.size;
        let image = self.mode.planes(x, [COLOURS, size, size])?;
        let x = self.stem.forward(&image, Activation::Relu)?;
        if self.spec.stem.pool {
            return x.max_pool(Window2d::centred(3, 2));
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
        in_shares(x, stage.width, self.mode, |x| {
            let mut x = match stage.first {
                0 => self.begin(x)?,
                _ => self.mode.pictures(x)?,
            };
            for block in &self.blocks[stage.first..stage.end] {
                x = block.forward(&x)?;
            }
            x.into_pictures()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            candle_core::bail!("exit {exit} of {}", self.heads.len());
        };
        let pooled = self.mode.pictures(x)?.mean_pool()?;
        head.forward_rows(&pooled, Activation::None)?.into_rows()
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
        let mut conv = |i: usize| source.conv(place, i, i == last, &shapes[i]);
        let convs = (0..last)
            .map(&mut conv)
            .collect::<std::result::Result<_, _>>()?;
        let last = conv(last)?;
        let output = kind.output(place.channels);
        let skip = if place.stride != 1 || place.input != output {
            Some(source.skip(place, output)?)
        } else {
            None
        };
        Ok(Self { convs, last, skip })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        let mut inner = None;
        for conv in &self.convs {
            inner = Some(conv.forward(inner.as_ref().unwrap_or(x), Activation::Relu)?);
        }
        let inner = inner.as_ref().unwrap_or(x);
        match &self.skip {
            Some(skip) => {
                let onto = skip.forward(x, Activation::None)?;
                self.last.forward_onto(inner, &onto, Activation::Relu)
            }
            None => self.last.forward_onto(inner, x, Activation::Relu),
        }
    }
}
