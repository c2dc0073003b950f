//! The layers of a plan, with their weights.

use candle_core::Result;
use switchyard_kernels::Activation;

use super::plan::{ConvPlan, ExcitePlan, Gate, Gates, HeadPlan, HiddenForm, UnitLayers, UnitPlan};
use crate::error::ModelError;
use crate::networks::published::{conv_bn, depthwise_bn, linear, one_by_one};
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, DepthwiseConv2d, Linear};
use crate::weights::params::Params;

/// A part of the network that cannot be cut.
pub(super) enum InvertedUnit {
    Conv(Conv2d, Activation),
    Fused(Box<FusedBlock>),
    Inverted(Box<InvertedBlock>),
}

/// `project(act(conv(x)))` or `act(conv(x))`, plus `x` where the shapes are the same.
pub(super) struct FusedBlock {
    conv: Conv2d,
    project: Option<Conv2d>,
    activation: Activation,
    residual: bool,
}

/// `project(excite(act(depthwise(act(expand(x))))))`, plus `x` where the shapes are the same.
pub(super) struct InvertedBlock {
    expand: Option<Conv2d>,
    depthwise: DepthwiseConv2d,
    excite: Option<Excite>,
    project: Conv2d,
    activation: Activation,
    residual: bool,
}

/// Squeeze-and-excitation: channels scaled by gates that a small network computes from the whole
/// image (Hu et al., "Squeeze-and-excitation networks", 2018).
struct Excite {
    squeeze: Linear,
    widen: Linear,
    gates: Gates,
}

/// From the last image to classes.
pub(super) struct ClassHead {
    hidden: Option<(Linear, Activation)>,
    classifier: Linear,
}

// === impl InvertedUnit ===

impl InvertedUnit {
    pub(super) fn new(
        params: &mut Params,
        unit: &UnitPlan,
        gates: Gates,
        epsilon: f64,
    ) -> std::result::Result<Self, ModelError> {
        let activation = unit.activation;
        Ok(match &unit.layers {
            UnitLayers::Conv(plan) => Self::Conv(conv(params, plan, epsilon)?, activation),
            UnitLayers::Fused {
                conv: first,
                project,
                residual,
            } => Self::Fused(Box::new(FusedBlock {
                conv: conv(params, first, epsilon)?,
                project: optional(project, |plan| conv(params, plan, epsilon))?,
                activation,
                residual: *residual,
            })),
            UnitLayers::Inverted {
                expand,
                depthwise,
                excite,
                project,
                residual,
            } => Self::Inverted(Box::new(InvertedBlock {
                expand: optional(expand, |plan| conv(params, plan, epsilon))?,
                depthwise: depthwise_bn(
                    params,
                    &depthwise.conv,
                    &depthwise.norm,
                    depthwise.channels[0],
                    depthwise.window,
                    epsilon,
                )?,
                excite: optional(excite, |plan| Excite::new(params, plan, gates))?,
                project: conv(params, project, epsilon)?,
                activation,
                residual: *residual,
            })),
        })
    }

    pub(super) fn forward(&self, x: &Flow) -> Result<Flow> {
        match self {
            Self::Conv(conv, activation) => conv.forward(x, *activation),
            Self::Fused(block) => block.forward(x),
            Self::Inverted(block) => block.forward(x),
        }
    }
}

fn conv(
    params: &mut Params,
    plan: &ConvPlan,
    epsilon: f64,
) -> std::result::Result<Conv2d, ModelError> {
    let (window, channels) = (plan.window, plan.channels);
    conv_bn(params, &plan.conv, &plan.norm, channels, window, epsilon)
}

fn optional<P, L>(
    plan: &Option<P>,
    make: impl FnOnce(&P) -> std::result::Result<L, ModelError>,
) -> std::result::Result<Option<L>, ModelError> {
    plan.as_ref().map(make).transpose()
}

// === impl FusedBlock ===

impl FusedBlock {
    fn forward(&self, x: &Flow) -> Result<Flow> {
        let inner = self.conv.forward(x, self.activation)?;
        match (&self.project, self.residual) {
            (Some(project), true) => project.forward_onto(&inner, x, Activation::None),
            (Some(project), false) => project.forward(&inner, Activation::None),
            (None, true) => inner.plus(x),
            (None, false) => Ok(inner),
        }
    }
}

// === impl InvertedBlock ===

impl InvertedBlock {
    fn forward(&self, x: &Flow) -> Result<Flow> {
        let mut inner = match &self.expand {
            Some(expand) => {
                let wide = expand.forward(x, self.activation)?;
                self.depthwise.forward(&wide, self.activation)?
            }
            None => self.depthwise.forward(x, self.activation)?,
        };
        if let Some(excite) = &self.excite {
            inner = excite.forward(inner)?;
        }
        if self.residual {
            return self.project.forward_onto(&inner, x, Activation::None);
        }
        self.project.forward(&inner, Activation::None)
    }
}

// === impl Excite ===

impl Excite {
    fn new(
        params: &mut Params,
        plan: &ExcitePlan,
        gates: Gates,
    ) -> std::result::Result<Self, ModelError> {
        let [channels, squeezed] = plan.channels;
        Ok(Self {
            squeeze: one_by_one(params, &plan.squeeze, [channels, squeezed])?,
            widen: one_by_one(params, &plan.widen, [squeezed, channels])?,
            gates,
        })
    }

    fn forward(&self, x: Flow) -> Result<Flow> {
        let squeezed = self
            .squeeze
            .forward_rows(&x.mean_pool()?, self.gates.squeezed)?;
        let widened = self.widen.forward_rows(&squeezed, Activation::None)?;
        x.scale_channels(&match self.gates.gate {
            Gate::Sigmoid => widened.sigmoid()?,
            Gate::HardSigmoid => widened.hard_sigmoid()?,
        })
    }
}

// === impl ClassHead ===

impl ClassHead {
    pub(super) fn new(
        params: &mut Params,
        plan: &HeadPlan,
    ) -> std::result::Result<Self, ModelError> {
        let mut features = plan.features;
        let hidden = match &plan.hidden {
            None => None,
            Some(hidden) => {
                let shape = [features, hidden.output];
                features = hidden.output;
                let layer = match hidden.form {
                    HiddenForm::Convolution => one_by_one(params, &hidden.name, shape)?,
                    HiddenForm::Linear => linear(params, &hidden.name, shape)?,
                };
                Some((layer, hidden.activation))
            }
        };
        let classifier = linear(params, &plan.classifier, [features, plan.classes])?;
        Ok(Self { hidden, classifier })
    }

    pub(super) fn forward(&self, x: &Flow) -> Result<Flow> {
        let mut features = x.mean_pool()?;
        if let Some((hidden, activation)) = &self.hidden {
            features = hidden.forward_rows(&features, *activation)?;
        }
        self.classifier.forward_rows(&features, Activation::None)
    }
}
