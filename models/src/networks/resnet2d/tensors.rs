//! The tensors of a residual network, in this crate's naming or torchvision's.

use switchyard_kernels::Window2d;

use super::plan::{BlockConv, BlockPlan, COLOURS};
use super::spec::{ResNet2dStem, TensorLayout};
use crate::error::ModelError;
use crate::networks::published;
use crate::ops::layers::{Conv2d, Linear};
use crate::weights::params::Params;

/// Standard deviation of a block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// Standard deviation of a projection that no ReLU follows, relative to He's.
const LINEAR_GAIN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Added to a variance by torchvision and timm.
const EPSILON: f64 = 1e-5;

/// Makes layers from parameters in either layout.
pub(super) struct ResNet2dTensors<'a> {
    params: &'a mut Params,
    layout: TensorLayout,
}

// === impl ResNet2dTensors ===

impl<'a> ResNet2dTensors<'a> {
    pub(super) fn new(params: &'a mut Params, layout: TensorLayout) -> Self {
        Self { params, layout }
    }

    pub(super) fn stem(&mut self, stem: &ResNet2dStem) -> Result<Conv2d, ModelError> {
        let shape = BlockConv {
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
        plan: &BlockPlan,
        index: usize,
        last: bool,
        shape: &BlockConv,
    ) -> Result<Conv2d, ModelError> {
        let (block, number) = (self.block(plan), index + 1);
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

    /// The projection next to a block.
    pub(super) fn skip(&mut self, plan: &BlockPlan, output: usize) -> Result<Conv2d, ModelError> {
        let block = self.block(plan);
        let shape = BlockConv {
            channels: [plan.input, output],
            window: Window2d::centred(1, plan.stride),
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
            (TensorLayout::Torchvision, true) => published::linear(self.params, "fc", shape),
            (TensorLayout::Torchvision, false) => {
                published::linear(self.params, &format!("exit{group}.fc"), shape)
            }
        }
    }

    /// Leaves the head after `group` in the file: the card does not offer it.
    pub(super) fn leave_head(&mut self, group: usize) {
        let head = format!("exit{group}.");
        self.params.ignore(|name| name.starts_with(&head));
    }

    fn block(&self, plan: &BlockPlan) -> String {
        let (group, block) = (plan.group, plan.block);
        match self.layout {
            TensorLayout::Switchyard => format!("group{}.block{block}", group + 1),
            TensorLayout::Torchvision => format!("layer{}.{block}", group + 1),
        }
    }

    fn own(&mut self, name: &str, shape: &BlockConv, gain: f64) -> Result<Conv2d, ModelError> {
        Conv2d::new(self.params, name, shape.channels, shape.window, gain)
    }

    fn folded(&mut self, conv: &str, norm: &str, shape: &BlockConv) -> Result<Conv2d, ModelError> {
        published::conv_bn(
            self.params,
            conv,
            norm,
            shape.channels,
            shape.window,
            EPSILON,
        )
    }
}
