//! A block of a video trunk.

use candle_core::Result;
use serde::{Deserialize, Serialize};
use switchyard_kernels::{Activation, Padding, Window2d};

use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, DepthwiseConv2d};
use crate::weights::params::Params;

/// Standard deviation of a block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// Standard deviation of a convolution that no ReLU follows, relative to He's.
pub(super) const LINEAR_GAIN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Lines and columns of the spatial filters, and frames of the temporal ones.
pub(super) const KERNEL: usize = 3;

/// Consecutive bottleneck blocks of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrunkStage {
    /// Channels of every block.
    pub channels: usize,
    /// Channels inside every block.
    pub inner: usize,
    /// Blocks.
    pub blocks: usize,
    /// Lines and columns between windows of the first block.
    pub stride: usize,
}

/// `relu(skip(x) + narrow(relu(time(space(relu(widen(x)))))))`.
pub(super) struct X3dBlock {
    widen: Conv2d,
    space: DepthwiseConv2d,
    time: DepthwiseConv2d,
    narrow: Conv2d,
    /// Present if the block changes the width or the resolution.
    skip: Option<Conv2d>,
}

/// A depthwise window over frames, which stand for lines.
pub(super) fn over_time() -> Window2d {
    let side = KERNEL / 2;
    Window2d {
        kernel: [KERNEL, 1],
        stride: [1, 1],
        padding: Padding {
            top: side,
            bottom: side,
            ..Padding::default()
        },
    }
}

// === impl X3dBlock ===

impl X3dBlock {
    pub(super) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        stage: TrunkStage,
        stride: usize,
    ) -> std::result::Result<Self, ModelError> {
        let TrunkStage {
            channels, inner, ..
        } = stage;
        let point = Window2d::centred(1, 1);
        let name = |part: &str| format!("{name}.{part}");
        let skip = if stride != 1 || input != channels {
            let window = Window2d::centred(1, stride);
            let name = name("skip");
            Some(Conv2d::new(
                params,
                &name,
                [input, channels],
                window,
                LINEAR_GAIN,
            )?)
        } else {
            None
        };
        let window = Window2d::centred(KERNEL, stride);
        Ok(Self {
            widen: Conv2d::new(params, &name("widen"), [input, inner], point, 1.0)?,
            space: DepthwiseConv2d::new(params, &name("space"), inner, window, LINEAR_GAIN)?,
            time: DepthwiseConv2d::new(params, &name("time"), inner, over_time(), 1.0)?,
            narrow: Conv2d::new(
                params,
                &name("narrow"),
                [inner, channels],
                point,
                RESIDUAL_GAIN,
            )?,
            skip,
        })
    }

    /// `x` holds the frames of one clip after another, one image each.
    pub(super) fn forward(&self, x: Flow, frames: usize) -> Result<Flow> {
        let inner = self.widen.forward(&x, Activation::Relu)?;
        let inner = self.space.forward(&inner, Activation::None)?;
        let [images, lines, columns, channels] = inner.dims4()?;
        let over_time = inner.reshape([images / frames, frames, lines * columns, channels])?;
        let inner = self.time.forward(&over_time, Activation::Relu)?;
        let inner = inner.reshape([images, lines, columns, channels])?;
        let onto = match &self.skip {
            Some(skip) => skip.forward(&x, Activation::None)?,
            None => x,
        };
        self.narrow.forward_onto(&inner, &onto, Activation::Relu)
    }
}
