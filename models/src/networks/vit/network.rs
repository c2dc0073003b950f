//! The network of a vision transformer.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, Padding, Window2d};

use super::config::VitConfig;
use super::layer::VitLayer;
use super::spec::{VitNaming, VitSpec};
use crate::error::ModelError;
use crate::networks::inverted::COLOURS;
use crate::networks::published::{conv_bias, linear};
use crate::networks::slices::in_shares;
use crate::networks::spec::{BadHyperParameter, Spec, check_depth, check_range, check_size};
use crate::networks::staged::{StagedModel, check_only_exit, no_stage};
use crate::ops::flow::Flow;
use crate::ops::layers::{ChannelNorm, Conv2d, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};

/// Largest number of lines and columns of an image.
const SIZE_MAX: usize = 1024;

/// Epsilon of the norms of timm and torchvision.
const EPSILON: f64 = 1e-6;

/// The network. Its only exit is after the last stage.
pub(super) struct Vit {
    spec: VitSpec,
    mode: ComputeMode,
    patches: Conv2d,
    /// `[1, grid, grid, hidden]`.
    positions: Tensor,
    /// With its position added, `[1, 1, hidden]`.
    class: Tensor,
    layers: Vec<VitLayer>,
    norm: ChannelNorm,
    head: Linear,
    exits: [usize; 1],
}

// === impl VitSpec ===

impl Spec for VitSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![COLOURS, self.size, self.size]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.stages()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_range("size", self.size, SIZE_MAX)?;
        check_range("patch", self.patch, self.size)?;
        check_size("hidden", self.hidden)?;
        check_depth("layers", self.layers)?;
        check_range("heads", self.heads, self.hidden)?;
        check_size("wide", self.wide)?;
        check_depth("layers_per_stage", self.layers_per_stage)?;
        for (field, value, of, whole) in [
            ("patch", self.patch, "size", self.size),
            ("heads", self.heads, "hidden", self.hidden),
        ] {
            if !whole.is_multiple_of(value) {
                return Err(BadHyperParameter {
                    field: field.to_owned(),
                    reason: format!("{value} does not divide {of} {whole}"),
                });
            }
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(Vit::new(params, self)?))
    }
}

// === impl Vit ===

impl Vit {
    pub(super) fn new(
        params: &mut Params,
        spec: &VitSpec,
    ) -> std::result::Result<Self, ModelError> {
        let epsilon = match spec.layout {
            VitNaming::HuggingFace => {
                VitConfig::read(&params.sibling("config.json")?, spec)?.layer_norm_eps
            }
            VitNaming::Timm | VitNaming::Torchvision => EPSILON,
        };
        let names = spec.layout.names();
        let (hidden, patch, grid) = (spec.hidden, spec.patch, spec.grid());
        let window = Window2d {
            kernel: [patch; 2],
            stride: [patch; 2],
            padding: Padding::default(),
        };
        let patches = ["weight", "bias"].map(|part| format!("{}.{part}", names.patches));
        let patches = [patches[0].as_str(), patches[1].as_str()];
        let patches = conv_bias(params, patches, [COLOURS, hidden], window)?;
        let class = params.get(names.class, &[1, 1, hidden], Init::Zero)?;
        let all = params.get(names.positions, &[1, spec.tokens(), hidden], Init::Zero)?;
        let first = all.narrow(1, 0, 1).and_then(|first| class + first);
        let others = all.narrow(1, 1, spec.tokens() - 1);
        let others = others.and_then(|others| others.reshape((1, grid, grid, hidden)));
        let failed = |error| ModelError::compute(names.positions)(error);
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            patches,
            positions: others.map_err(failed)?,
            class: first.map_err(failed)?,
            layers: (0..spec.layers)
                .map(|index| VitLayer::new(params, spec, index, epsilon))
                .collect::<std::result::Result<_, _>>()?,
            norm: ChannelNorm::new(params, names.norm, hidden, epsilon)?,
            head: linear(params, names.head, [hidden, spec.classes])?,
            exits: [spec.stages()],
        })
    }

    /// Images as clients send them to tokens, `[batch, tokens, hidden]`.
    fn begin(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, size, hidden) = (x.dim(0)?, self.spec.size, self.spec.hidden);
        let images = Flow::planes(self.mode, x, [COLOURS, size, size])?;
        let positions = self.positions.repeat((batch, 1, 1, 1))?;
        let positions = Flow::images(self.mode, &positions)?;
        let patches = self
            .patches
            .forward_onto(&images, &positions, Activation::None)?;
        let patches = patches.into_images()?.reshape((batch, (), hidden))?;
        Tensor::cat(&[self.class.repeat((batch, 1, 1))?, patches], 1)
    }
}

impl StagedModel for Vit {
    fn stages(&self) -> usize {
        self.exits[0]
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let per_stage = self.spec.layers_per_stage;
        let layers = match self.layers.get(stage * per_stage..) {
            Some(layers) if !layers.is_empty() => &layers[..per_stage.min(layers.len())],
            _ => return no_stage(stage, self.stages()),
        };
        let (tokens, hidden) = (self.spec.tokens(), self.spec.hidden);
        let width = tokens * self.spec.wide.max(3 * hidden);
        in_shares(x, width, self.mode, |x| {
            let x = match stage {
                0 => self.begin(x)?,
                _ => x.clone(),
            };
            let (batch, found, channels) = x.dims3()?;
            if (found, channels) != (tokens, hidden) {
                candle_core::bail!(
                    "activations {:?}, not [batch, {tokens}, {hidden}]",
                    x.dims()
                );
            }
            let x = x.reshape((batch * tokens, 1, 1, hidden))?;
            let mut x = Flow::images(self.mode, &x)?;
            for layer in layers {
                x = layer.forward(&x)?;
            }
            x.into_images()?.reshape((batch, tokens, hidden))
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        let (batch, _, hidden) = x.dims3()?;
        let class = x.narrow(1, 0, 1)?.contiguous()?;
        let class = Flow::images(self.mode, &class.reshape((batch, 1, 1, hidden))?)?;
        let normed = self.norm.forward(&class)?.into_images()?;
        self.head.forward(&normed.reshape((batch, hidden))?)
    }
}
