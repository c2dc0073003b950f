//! The trunk of a video network: everything up to the heads.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use switchyard_kernels::frames::{ClipShape, FrameSampling, segment_means};
use switchyard_kernels::{Activation, Window2d};

use super::block::{KERNEL, LINEAR_GAIN, TrunkStage, X3dBlock, over_time};
use crate::error::ModelError;
use crate::networks::spec::{BadHyperParameter, check_depth, check_size};
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, DepthwiseConv2d};
use crate::ops::tensors::{kernel_error, to_tensor, with_values};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Hyper-parameters of a video trunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrunkSpec {
    /// Frames of a clip.
    pub frames: usize,
    /// Lines and columns of a frame.
    pub side: usize,
    /// Reads the last of every `every` frames; divides `frames`.
    pub every: usize,
    /// Averages squares of `shrink` lines and columns first; divides `side`.
    pub shrink: usize,
    /// Parts of a clip, in time, that a head tells apart; divides the frames read.
    pub segments: usize,
    /// Channels of the stem, which halves lines and columns; part of stage 0.
    pub stem: usize,
    /// Stages in order.
    pub stages: Vec<TrunkStage>,
}

/// A video trunk: flat clips in, `[batch, frames, lines, columns, channels]` out.
pub(crate) struct Trunk {
    spec: TrunkSpec,
    mode: ComputeMode,
    stem: Conv2d,
    stem_time: DepthwiseConv2d,
    stages: Vec<Vec<X3dBlock>>,
}

// === impl TrunkSpec ===

impl TrunkSpec {
    /// Values of a clip.
    pub(crate) fn samples(&self) -> usize {
        let frame = self.side.saturating_mul(self.side);
        self.frames.saturating_mul(frame)
    }

    /// Values that a head behind a stage reads; [`check`](Self::check) must have passed.
    pub(crate) fn features(&self, stage: usize) -> usize {
        self.segments * self.sides()[stage + 1] * self.stages[stage].channels
    }

    /// Checks every hyper-parameter; `at` is the path of the trunk in the card.
    pub(crate) fn check(&self, at: &str) -> std::result::Result<(), BadHyperParameter> {
        check_size(&format!("{at}.frames"), self.frames)?;
        check_size(&format!("{at}.side"), self.side)?;
        check_divisor(at, "every", self.every, self.frames)?;
        check_divisor(at, "shrink", self.shrink, self.side)?;
        check_divisor(at, "segments", self.segments, self.frames_read())?;
        check_size(&format!("{at}.stem"), self.stem)?;
        check_depth(&format!("{at}.stages"), self.stages.len())?;
        for (i, stage) in self.stages.iter().enumerate() {
            let at = format!("{at}.stages[{i}]");
            check_size(&format!("{at}.channels"), stage.channels)?;
            check_size(&format!("{at}.inner"), stage.inner)?;
            check_depth(&format!("{at}.blocks"), stage.blocks)?;
            check_size(&format!("{at}.stride"), stage.stride)?;
        }
        Ok(())
    }

    /// Frames that are read.
    fn frames_read(&self) -> usize {
        self.frames / self.every
    }

    /// Lines and columns before each stage, and behind the last.
    fn sides(&self) -> Vec<usize> {
        let mut sides = vec![(self.side / self.shrink).div_ceil(2)];
        for (i, stage) in self.stages.iter().enumerate() {
            sides.push(sides[i].div_ceil(stage.stride));
        }
        sides
    }
}

fn check_divisor(
    at: &str,
    field: &str,
    value: usize,
    of: usize,
) -> std::result::Result<(), BadHyperParameter> {
    let field = format!("{at}.{field}");
    check_size(&field, value)?;
    if of.is_multiple_of(value) {
        return Ok(());
    }
    let reason = format!("{value} does not divide {of}");
    Err(BadHyperParameter { field, reason })
}

// === impl Trunk ===

impl Trunk {
    /// The names of its parameters start with `prefix`.
    pub(crate) fn new(
        params: &mut Params,
        prefix: &str,
        spec: &TrunkSpec,
    ) -> std::result::Result<Self, ModelError> {
        let name = |name: &str| format!("{prefix}{name}");
        let window = Window2d::centred(KERNEL, 2);
        let stem = Conv2d::new(params, &name("stem"), [1, spec.stem], window, LINEAR_GAIN)?;
        let over_time = over_time();
        let stem_time =
            DepthwiseConv2d::new(params, &name("stem_time"), spec.stem, over_time, 1.0)?;
        let mut channels = spec.stem;
        let mut stages = Vec::with_capacity(spec.stages.len());
        for (i, stage) in spec.stages.iter().enumerate() {
            let mut blocks = Vec::with_capacity(stage.blocks);
            for j in 0..stage.blocks {
                let stride = if j == 0 { stage.stride } else { 1 };
                let name = name(&format!("stage{i}.block{j}"));
                blocks.push(X3dBlock::new(params, &name, channels, *stage, stride)?);
                channels = stage.channels;
            }
            stages.push(blocks);
        }
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            stem,
            stem_time,
            stages,
        })
    }

    pub(crate) fn stages(&self) -> usize {
        self.stages.len()
    }

    pub(crate) fn mode(&self) -> ComputeMode {
        self.mode
    }

    /// Largest number of activations per clip inside a stage.
    pub(crate) fn width(&self, stage: usize) -> usize {
        // The first block widens before it strides.
        let side = self.spec.sides()[stage];
        let own = self.spec.stages[stage];
        self.spec.frames_read() * side * side * own.inner.max(own.channels)
    }

    /// `[frames, lines, columns, channels]` behind a stage.
    pub(crate) fn shape_after(&self, stage: usize) -> [usize; 4] {
        let side = self.spec.sides()[stage + 1];
        let channels = self.spec.stages[stage].channels;
        [self.spec.frames_read(), side, side, channels]
    }

    /// Stage 0 takes flat clips, every other stage the result of the one before it.
    pub(crate) fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let frames = self.spec.frames_read();
        let mut x = if stage == 0 {
            self.begin(x)?
        } else {
            Flow::images(self.mode, &x.flatten(0, 1)?)?
        };
        for block in &self.stages[stage] {
            x = block.forward(x, frames)?;
        }
        let x = x.into_images()?;
        let (_, lines, columns, channels) = x.dims4()?;
        x.reshape(((), frames, lines, columns, channels))
    }

    /// The features that a head reads: means of activations over the frames of a segment and the
    /// columns of a line, `[batch, segments * lines * channels]`.
    pub(crate) fn pool(&self, x: &Tensor) -> Result<Tensor> {
        let (clips, frames, lines, columns, channels) = x.dims5()?;
        let segments = self.spec.segments;
        if self.mode == ComputeMode::Packed {
            let shape = ClipShape {
                clips,
                frames,
                lines,
                columns,
                channels,
            };
            let means = with_values(x, |values| segment_means(values, shape, segments))?;
            let means = means.map_err(kernel_error)?;
            return to_tensor(&means, (clips, segments * lines * channels));
        }
        let (rows, positions) = (segments * lines, frames * lines * columns);
        // As a product: candle reduces over a middle dimension element by element.
        let share = segments as f32 / (frames * columns) as f32;
        let mut weights = vec![0.0; rows * positions];
        for position in 0..positions {
            let (frame, line) = (position / (lines * columns), position / columns % lines);
            let row = frame * segments / frames * lines + line;
            weights[row * positions + position] = share;
        }
        let weights = Tensor::from_vec(weights, (1, rows, positions), x.device())?;
        let weights = weights.to_dtype(x.dtype())?;
        weights
            .broadcast_matmul(&x.flatten(1, 3)?)?
            .reshape((clips, ()))
    }

    /// From flat clips to the output of the stem, one image per frame.
    fn begin(&self, clips: &Tensor) -> Result<Flow> {
        let (batch, width) = clips.dims2()?;
        if width != self.spec.samples() {
            let samples = self.spec.samples();
            candle_core::bail!("input has {width} samples, the model takes {samples}");
        }
        let images = self.read_frames(clips)?;
        let x = self.stem.forward(&images, Activation::None)?;
        let [images, lines, columns, channels] = x.dims4()?;
        let x = x.reshape([batch, self.spec.frames_read(), lines * columns, channels])?;
        self.stem_time
            .forward(&x, Activation::Relu)?
            .reshape([images, lines, columns, channels])
    }

    /// The frames that are read, one image each.
    fn read_frames(&self, clips: &Tensor) -> Result<Flow> {
        let TrunkSpec {
            side,
            every,
            shrink,
            ..
        } = self.spec;
        if self.mode == ComputeMode::Packed {
            let sampling = FrameSampling {
                side,
                every,
                shrink,
            };
            let images = with_values(clips, |clips| sampling.read(clips))?;
            return images.map(Flow::Packed).map_err(kernel_error);
        }
        let images = clips.dim(0)? * self.spec.frames_read();
        let mut x = clips.reshape((images, every, side * side))?;
        x = x.narrow(1, every - 1, 1)?;
        let small = side / shrink;
        if shrink > 1 {
            let squares = (images * small, shrink, small, shrink);
            x = x.reshape(squares)?.mean(3)?.mean(1)?;
        }
        x.reshape((images, small, small, 1)).map(Flow::Graph)
    }
}
