//! The closed set of architectures a card may name.

use serde::{Deserialize, Serialize};

use crate::bert::BertSpec;
use crate::cnn1d::{Cnn1dSpec, ConvSpec};
use crate::efficientnet::EfficientNetSpec;
use crate::error::ModelError;
use crate::fusion::FusionSpec;
use crate::lstm::LstmSpec;
use crate::minirocket::MiniRocketSpec;
use crate::mlp::MlpSpec;
use crate::mobilenet::MobileNetSpec;
use crate::model::StagedModel;
use crate::onnx::OnnxSpec;
use crate::params::Params;
use crate::resnet1d::ResNet1dSpec;
use crate::resnet2d::ResNet2dSpec;
use crate::x3d::X3dSpec;

/// Largest value of any single hyper-parameter, so that a hostile card cannot make a shape
/// overflow.
pub(crate) const HYPER_PARAMETER_MAX: usize = 1 << 16;

/// Most numbers in one request: a 3 x 1,024 x 1,024 image and some.
const SAMPLES_MAX: usize = 1 << 22;

/// Most layers or blocks in one list or stage.
pub(crate) const DEPTH_MAX: usize = 256;

/// Architecture name and hyper-parameters, as written in `model.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Architecture {
    /// [`Bert`](crate::bert::Bert).
    Bert(BertSpec),
    /// [`Cnn1d`](crate::cnn1d::Cnn1d).
    Cnn1d(Cnn1dSpec),
    /// [`Lstm`](crate::lstm::Lstm).
    Lstm(LstmSpec),
    /// [`Mlp`](crate::mlp::Mlp).
    Mlp(MlpSpec),
    /// [`MobileNet`](crate::mobilenet::MobileNet).
    MobileNet(MobileNetSpec),
    /// [`EfficientNet`](crate::efficientnet::EfficientNet).
    EfficientNet(EfficientNetSpec),
    /// [`ResNet1d`](crate::resnet1d::ResNet1d).
    ResNet1d(ResNet1dSpec),
    /// [`ResNet2d`](crate::resnet2d::ResNet2d).
    ResNet2d(ResNet2dSpec),
    /// [`MiniRocket`](crate::minirocket::MiniRocket).
    MiniRocket(MiniRocketSpec),
    /// [`X3d`](crate::x3d::X3d).
    X3d(X3dSpec),
    /// [`Fusion`](crate::fusion::Fusion).
    Fusion(FusionSpec),
    /// A graph for onnxruntime, see [`onnx`](crate::onnx).
    Onnx(OnnxSpec),
}

/// What every architecture's hyper-parameters say, and how its network is built from them.
pub(crate) trait Spec {
    /// Numbers of one request that stage 0 takes, flat; 1 for a text.
    fn samples(&self) -> usize;

    /// Classes told apart.
    fn classes(&self) -> usize;

    /// Whether requests are texts.
    fn takes_text(&self) -> bool {
        false
    }

    /// Numbers of an answer that is a vector and no class.
    fn embedding(&self) -> Option<usize> {
        None
    }

    /// For each exit, how many stages run before it.
    fn exits(&self) -> Vec<usize>;

    /// Checks every hyper-parameter; after this, building cannot overflow or divide by zero.
    fn check(&self) -> Result<(), BadHyperParameter>;

    /// Builds the network; [`check`](Self::check) must have passed.
    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError>;
}

/// A hyper-parameter that cannot be: dotted path below `architecture`, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadHyperParameter {
    pub(crate) field: String,
    pub(crate) reason: String,
}

// === impl Architecture ===

impl Architecture {
    fn spec(&self) -> &dyn Spec {
        match self {
            Self::Bert(spec) => spec,
            Self::Cnn1d(spec) => spec,
            Self::Lstm(spec) => spec,
            Self::Mlp(spec) => spec,
            Self::MobileNet(spec) => spec,
            Self::EfficientNet(spec) => spec,
            Self::ResNet1d(spec) => spec,
            Self::ResNet2d(spec) => spec,
            Self::MiniRocket(spec) => spec,
            Self::X3d(spec) => spec,
            Self::Fusion(spec) => spec,
            Self::Onnx(spec) => spec,
        }
    }

    /// Numbers of one request that stage 0 takes, flat; 1 for a text.
    pub fn samples(&self) -> usize {
        self.spec().samples()
    }

    /// Classes told apart.
    pub fn classes(&self) -> usize {
        self.spec().classes()
    }

    /// Whether requests are texts.
    pub fn takes_text(&self) -> bool {
        self.spec().takes_text()
    }

    /// Numbers of an answer that is a vector and no class.
    pub fn embedding(&self) -> Option<usize> {
        self.spec().embedding()
    }

    /// For each exit, how many stages run before it.
    pub fn exits(&self) -> Vec<usize> {
        self.spec().exits()
    }

    /// Checks every hyper-parameter; after this, building cannot overflow or divide by zero.
    pub(crate) fn check(&self) -> Result<(), BadHyperParameter> {
        in_range("classes", self.classes(), HYPER_PARAMETER_MAX)?;
        // Before samples: they may be a product of what this bounds.
        self.spec().check()?;
        in_range("samples", self.samples(), SAMPLES_MAX)
    }

    /// Builds the network; [`check`](Self::check) must have passed.
    pub(crate) fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        self.spec().build(params)
    }
}

/// Checks a hyper-parameter that is a size.
pub(crate) fn check_size(field: &str, value: usize) -> Result<(), BadHyperParameter> {
    in_range(field, value, HYPER_PARAMETER_MAX)
}

/// Checks a number of layers or blocks.
pub(crate) fn check_depth(field: &str, value: usize) -> Result<(), BadHyperParameter> {
    in_range(field, value, DEPTH_MAX)
}

/// Checks a 1-D convolution.
pub(crate) fn check_conv(at: &str, conv: &ConvSpec) -> Result<(), BadHyperParameter> {
    check_size(&format!("{at}.channels"), conv.channels)?;
    check_size(&format!("{at}.stride"), conv.stride)?;
    check_size(&format!("{at}.kernel"), conv.kernel)?;
    if !conv.kernel.is_multiple_of(conv.stride) {
        return Err(BadHyperParameter {
            field: format!("{at}.kernel"),
            reason: format!("{} is no multiple of stride {}", conv.kernel, conv.stride),
        });
    }
    Ok(())
}

fn in_range(field: &str, value: usize, max: usize) -> Result<(), BadHyperParameter> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(BadHyperParameter {
        field: field.to_owned(),
        reason: format!("{value} is not in 1..={max}"),
    })
}
