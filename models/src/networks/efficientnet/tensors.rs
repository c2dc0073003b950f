//! The tensors of an EfficientNet, in timm's naming or torchvision's.

use switchyard_kernels::Window2d;

use super::excite::Excite;
use super::plan::{MbConvShape, UnitPlan};
use super::spec::{EfficientNetSpec, TensorNaming};
use crate::error::ModelError;
use crate::networks::published::{conv_bn, depthwise_bn, linear};
use crate::ops::layers::{Conv2d, DepthwiseConv2d, Linear};
use crate::weights::params::{Init, Params};

/// Makes layers from parameters in either naming.
pub(super) struct EfficientNetTensors<'a> {
    params: &'a mut Params,
    naming: TensorNaming,
    epsilon: f64,
}

/// A layer of a block, which both namings name differently.
#[derive(Clone, Copy)]
enum BlockLayer {
    Expand,
    Depthwise,
    Excite,
    Project,
}

// === impl EfficientNetTensors ===

impl<'a> EfficientNetTensors<'a> {
    pub(super) fn new(params: &'a mut Params, spec: &EfficientNetSpec) -> Self {
        Self {
            params,
            naming: spec.layout,
            epsilon: spec.epsilon(),
        }
    }

    /// The stem or the last pointwise convolution.
    pub(super) fn conv(&mut self, unit: &UnitPlan) -> Result<Conv2d, ModelError> {
        let stem = unit.stride == 2;
        let (conv, norm) = match (self.naming, stem) {
            (TensorNaming::Timm, true) => ("conv_stem", "bn1"),
            (TensorNaming::Timm, false) => ("conv_head", "bn2"),
            (TensorNaming::Torchvision, true) => ("features.0.0", "features.0.1"),
            (TensorNaming::Torchvision, false) => ("features.8.0", "features.8.1"),
        };
        let window = Window2d::centred(unit.kernel, unit.stride);
        let channels = [unit.input, unit.output];
        conv_bn(self.params, conv, norm, channels, window, self.epsilon)
    }

    pub(super) fn expand(
        &mut self,
        unit: &UnitPlan,
        block: &MbConvShape,
    ) -> Result<Option<Conv2d>, ModelError> {
        if block.inner == unit.input {
            return Ok(None);
        }
        let channels = [unit.input, block.inner];
        self.pointwise(unit, block, BlockLayer::Expand, channels)
            .map(Some)
    }

    pub(super) fn depthwise(
        &mut self,
        unit: &UnitPlan,
        block: &MbConvShape,
    ) -> Result<DepthwiseConv2d, ModelError> {
        let (conv, norm) = self.names(unit, block, BlockLayer::Depthwise);
        let window = Window2d::centred(unit.kernel, unit.stride);
        depthwise_bn(self.params, &conv, &norm, block.inner, window, self.epsilon)
    }

    pub(super) fn excite(
        &mut self,
        unit: &UnitPlan,
        block: &MbConvShape,
    ) -> Result<Excite, ModelError> {
        let (squeeze, widen) = self.names(unit, block, BlockLayer::Excite);
        Ok(Excite {
            squeeze: self.one_by_one(&squeeze, [block.inner, block.squeezed])?,
            widen: self.one_by_one(&widen, [block.squeezed, block.inner])?,
        })
    }

    pub(super) fn project(
        &mut self,
        unit: &UnitPlan,
        block: &MbConvShape,
    ) -> Result<Conv2d, ModelError> {
        let channels = [block.inner, unit.output];
        self.pointwise(unit, block, BlockLayer::Project, channels)
    }

    /// `[features, classes]`.
    pub(super) fn head(&mut self, shape: [usize; 2]) -> Result<Linear, ModelError> {
        let name = match self.naming {
            TensorNaming::Timm => "classifier",
            TensorNaming::Torchvision => "classifier.1",
        };
        linear(self.params, name, shape)
    }

    fn pointwise(
        &mut self,
        unit: &UnitPlan,
        block: &MbConvShape,
        layer: BlockLayer,
        channels: [usize; 2],
    ) -> Result<Conv2d, ModelError> {
        let (conv, norm) = self.names(unit, block, layer);
        let window = Window2d::centred(1, 1);
        conv_bn(self.params, &conv, &norm, channels, window, self.epsilon)
    }

    /// A 1 x 1 convolution with bias, on one position.
    fn one_by_one(
        &mut self,
        name: &str,
        [input, output]: [usize; 2],
    ) -> Result<Linear, ModelError> {
        let weight_name = format!("{name}.weight");
        let weight = self
            .params
            .get(&weight_name, &[output, input, 1, 1], Init::Zero)?
            .reshape((output, input))
            .and_then(|weight| weight.t()?.contiguous())
            .map_err(ModelError::compute(&weight_name))?;
        let weight = self.params.narrow(&weight_name, weight)?;
        let bias = self
            .params
            .get(&format!("{name}.bias"), &[output], Init::Zero)?;
        let mode = self.params.mode();
        Linear::with_mode(weight, bias, mode).map_err(ModelError::compute(name))
    }

    /// A layer's convolution and normalisation, or the two convolutions of an excitation.
    fn names(&self, unit: &UnitPlan, block: &MbConvShape, layer: BlockLayer) -> (String, String) {
        let expands = block.inner != unit.input;
        let (group, index) = (block.group, block.index);
        match self.naming {
            TensorNaming::Timm => {
                let (first, second) = match (layer, expands) {
                    (BlockLayer::Expand, _) => ("conv_pw", "bn1"),
                    (BlockLayer::Depthwise, true) => ("conv_dw", "bn2"),
                    (BlockLayer::Depthwise, false) => ("conv_dw", "bn1"),
                    (BlockLayer::Excite, _) => ("se.conv_reduce", "se.conv_expand"),
                    (BlockLayer::Project, true) => ("conv_pwl", "bn3"),
                    (BlockLayer::Project, false) => ("conv_pw", "bn2"),
                };
                let at = format!("blocks.{group}.{index}");
                (format!("{at}.{first}"), format!("{at}.{second}"))
            }
            TensorNaming::Torchvision => {
                // A sequence of layers, one shorter if the block does not expand.
                let index_in_block = match layer {
                    BlockLayer::Expand => 0,
                    BlockLayer::Depthwise => 1,
                    BlockLayer::Excite => 2,
                    BlockLayer::Project => 3,
                } - usize::from(!expands);
                let at = format!("features.{}.{index}.block.{index_in_block}", group + 1);
                match layer {
                    BlockLayer::Excite => (format!("{at}.fc1"), format!("{at}.fc2")),
                    _ => (format!("{at}.0"), format!("{at}.1")),
                }
            }
        }
    }
}
