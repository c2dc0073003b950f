//! Where a residual network's tensors come from: this crate's naming, or torchvision's.

use super::spec::{COLOURS, ConvShape, Place, StemSpec, TensorLayout};
use crate::error::ModelError;
use crate::layers::Linear;
use crate::layers2d::Conv2d;
use crate::params::Params;
use crate::public;
use crate::unfold2d::Window2d;

/// Standard deviation of a block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// Standard deviation of a projection that no ReLU follows, relative to He's.
const LINEAR_GAIN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// What torchvision and timm add to a variance.
const EPSILON: f64 = 1e-5;

/// Makes layers from parameters in either layout.
pub(super) struct Source<'a> {
    params: &'a mut Params,
    layout: TensorLayout,
}

// === impl Source ===

impl<'a> Source<'a> {
    pub(super) fn new(params: &'a mut Params, layout: TensorLayout) -> Self {
        Self { params, layout }
    }

    pub(super) fn stem(&mut self, stem: &StemSpec) -> Result<Conv2d, ModelError> {
        let shape = ConvShape {
            channels: [COLOURS, stem.channels],
            window: Window2d::centred(stem.kernel, stem.stride),
        };
        match self.layout {
            TensorLayout::Switchyard => self.own("stem", &shape, 1.0),
            TensorLayout::Torchvision => self.folded("conv1", "bn1", &shape),
        }
    }

    /// Convolution `index` of a block.
    pub(super) fn conv(
        &mut self,
        place: &Place,
        index: usize,
        last: bool,
        shape: &ConvShape,
    ) -> Result<Conv2d, ModelError> {
        let (block, number) = (self.block(place), index + 1);
        match self.layout {
            TensorLayout::Switchyard => {
                let gain = if last { RESIDUAL_GAIN } else { 1.0 };
                self.own(&format!("{block}.conv{number}"), shape, gain)
            }
            TensorLayout::Torchvision => {
                let conv = format!("{block}.conv{number}");
                self.folded(&conv, &format!("{block}.bn{number}"), shape)
            }
        }
    }

    /// The projection beside a block.
    pub(super) fn skip(&mut self, place: &Place, output: usize) -> Result<Conv2d, ModelError> {
        let block = self.block(place);
        let shape = ConvShape {
            channels: [place.input, output],
            window: Window2d::centred(1, place.stride),
        };
        match self.layout {
            TensorLayout::Switchyard => self.own(&format!("{block}.skip"), &shape, LINEAR_GAIN),
            TensorLayout::Torchvision => {
                let conv = format!("{block}.downsample.0");
                self.folded(&conv, &format!("{block}.downsample.1"), &shape)
            }
        }
    }

    /// The head after `group`, counted from 1.
    pub(super) fn head(
        &mut self,
        group: usize,
        last: bool,
        shape: [usize; 2],
    ) -> Result<Linear, ModelError> {
        match (self.layout, last) {
            (TensorLayout::Switchyard, _) => {
                Linear::new(self.params, &format!("exit{group}"), shape[0], shape[1])
            }
            (TensorLayout::Torchvision, true) => public::linear(self.params, "fc", shape),
            (TensorLayout::Torchvision, false) => {
                public::linear(self.params, &format!("exit{group}.fc"), shape)
            }
        }
    }

    fn block(&self, place: &Place) -> String {
        let (group, block) = (place.group, place.block);
        match self.layout {
            TensorLayout::Switchyard => format!("group{}.block{block}", group + 1),
            TensorLayout::Torchvision => format!("layer{}.{block}", group + 1),
        }
    }

    fn own(&mut self, name: &str, shape: &ConvShape, gain: f64) -> Result<Conv2d, ModelError> {
        Conv2d::new(self.params, name, shape.channels, shape.window, gain)
    }

    fn folded(&mut self, conv: &str, norm: &str, shape: &ConvShape) -> Result<Conv2d, ModelError> {
        public::conv_bn(
            self.params,
            conv,
            norm,
            shape.channels,
            shape.window,
            EPSILON,
        )
    }
}
