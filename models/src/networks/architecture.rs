//! The closed set of architectures a card may name.

use std::collections::BTreeMap;

use candle_core::Var;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::bert::BertSpec;
use super::cnn1d::Cnn1dSpec;
use super::efficientnet::EfficientNetSpec;
use super::efficientnet_v2::EfficientNetV2Spec;
use super::fusion::FusionSpec;
use super::inverted::ImagePadding;
use super::lstm::LstmSpec;
use super::minirocket::MiniRocketSpec;
use super::mlp::MlpSpec;
use super::mobilenet::MobileNetSpec;
use super::mobilenet_v3::MobileNetV3Spec;
use super::onnx::{OnnxSpec, engine_of};
use super::resnet1d::ResNet1dSpec;
use super::resnet2d::ResNet2dSpec;
use super::spec::{BadHyperParameter, HYPER_PARAMETER_MAX, Spec, check_range};
use super::staged::StagedModel;
use super::task::Task;
use super::vit::VitSpec;
use super::x3d::X3dSpec;
use crate::error::ModelError;
use crate::weights::params::Params;

/// Most values in one request: slightly more than a 3 x 1,024 x 1,024 image.
const SAMPLES_MAX: usize = 1 << 22;

/// The engine of every architecture but ONNX graphs.
const OWN_KERNELS: &str = "switchyard's own kernels";

/// Architecture name and hyper-parameters, as written in `model.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Architecture {
    /// [`Bert`](super::bert::Bert).
    Bert(BertSpec),
    /// [`Cnn1d`](super::cnn1d::Cnn1d).
    Cnn1d(Cnn1dSpec),
    /// [`Lstm`](super::lstm::Lstm).
    Lstm(LstmSpec),
    /// [`Mlp`](super::mlp::Mlp).
    Mlp(MlpSpec),
    /// [`MobileNet`](super::mobilenet::MobileNet).
    MobileNet(MobileNetSpec),
    /// [`efficientnet`](super::efficientnet).
    EfficientNet(EfficientNetSpec),
    /// [`efficientnet_v2`](super::efficientnet_v2).
    #[serde(rename = "efficientnet-v2")]
    EfficientNetV2(EfficientNetV2Spec),
    /// [`mobilenet_v3`](super::mobilenet_v3).
    #[serde(rename = "mobilenet-v3")]
    MobileNetV3(MobileNetV3Spec),
    /// [`ResNet1d`](super::resnet1d::ResNet1d).
    ResNet1d(ResNet1dSpec),
    /// [`ResNet2d`](super::resnet2d::ResNet2d).
    ResNet2d(ResNet2dSpec),
    /// [`MiniRocket`](super::minirocket::MiniRocket).
    MiniRocket(MiniRocketSpec),
    /// [`vit`](super::vit).
    Vit(VitSpec),
    /// [`X3d`](super::x3d::X3d).
    X3d(X3dSpec),
    /// [`Fusion`](super::fusion::Fusion).
    Fusion(FusionSpec),
    /// A graph, see [`onnx`](super::onnx).
    Onnx(OnnxSpec),
}

/// A network to train.
pub struct Trainable {
    /// The network; it computes with the variables.
    pub model: Box<dyn StagedModel>,
    /// The variables by name.
    pub vars: BTreeMap<String, Var>,
    /// Values in all variables.
    pub parameters: u64,
}

// === impl Architecture ===

impl Architecture {
    /// The engine that computes it on a CPU of this machine.
    pub fn engine(&self) -> &'static str {
        match self {
            Self::Onnx(spec) => engine_of(spec),
            _ => OWN_KERNELS,
        }
    }

    fn spec(&self) -> &dyn Spec {
        match self {
            Self::Bert(spec) => spec,
            Self::Cnn1d(spec) => spec,
            Self::Lstm(spec) => spec,
            Self::Mlp(spec) => spec,
            Self::MobileNet(spec) => spec,
            Self::EfficientNet(spec) => spec,
            Self::EfficientNetV2(spec) => spec,
            Self::MobileNetV3(spec) => spec,
            Self::ResNet1d(spec) => spec,
            Self::ResNet2d(spec) => spec,
            Self::MiniRocket(spec) => spec,
            Self::Vit(spec) => spec,
            Self::X3d(spec) => spec,
            Self::Fusion(spec) => spec,
            Self::Onnx(spec) => spec,
        }
    }

    /// Shape of one request's values as stage 0 reads them; `[1]` for a text. A network without axes
    /// of its own has a single one.
    pub fn input_shape(&self) -> Vec<usize> {
        self.spec().input_shape()
    }

    /// Values of one request that stage 0 takes; 1 for a text. Saturates.
    pub fn samples(&self) -> usize {
        let shape = self.input_shape();
        shape.into_iter().fold(1, usize::saturating_mul)
    }

    /// Classes told apart.
    pub fn classes(&self) -> usize {
        self.spec().classes()
    }

    /// Whether requests are texts.
    pub fn takes_text(&self) -> bool {
        self.spec().takes_text()
    }

    /// Values of an answer that is an embedding.
    pub fn embedding(&self) -> Option<usize> {
        self.spec().embedding()
    }

    /// Kind of its answers.
    pub fn task(&self) -> Task {
        self.spec().task()
    }

    /// For each exit, how many stages run before it.
    pub fn exits(&self) -> Vec<usize> {
        self.spec().exits()
    }

    /// The network with some of its exits, by position; `None` if its hyper-parameters name none, or if it
    /// would end elsewhere. Stages may be cut at other places.
    pub fn with_exits(&self, kept: &[bool]) -> Option<Self> {
        let Self::ResNet2d(spec) = self else {
            return None;
        };
        if kept.len() != spec.exits.len() || kept.last() != Some(&true) {
            return None;
        }
        let exits = spec.exits.iter().zip(kept);
        let exits = exits.filter(|(_, is_kept)| **is_kept);
        let mut spec = spec.clone();
        spec.exits = exits.map(|(&group, _)| group).collect();
        Some(Self::ResNet2d(spec))
    }

    /// Sets the lines and columns of an image, for a network with public weights.
    pub(crate) fn set_size(&mut self, size: usize) {
        match self {
            Self::EfficientNet(spec) => spec.size = size,
            Self::EfficientNetV2(spec) => spec.size = size,
            Self::MobileNetV3(spec) => spec.size = size,
            Self::ResNet2d(spec) => spec.size = size,
            Self::Vit(spec) => spec.size = size,
            _ => {}
        }
    }

    /// Sets the zeros around images, for a network that knows several ways.
    pub(crate) fn set_padding(&mut self, padding: ImagePadding) {
        match self {
            Self::EfficientNet(spec) => spec.padding = padding,
            Self::EfficientNetV2(spec) => spec.padding = padding,
            Self::MobileNetV3(spec) => spec.padding = padding,
            _ => {}
        }
    }

    /// Builds the network with variables drawn from `rng`, on the CPU. Hyper-parameters are not
    /// checked.
    ///
    /// # Errors
    /// The architecture takes its weights from files only.
    pub fn fresh(&self, rng: Pcg64) -> Result<Trainable, ModelError> {
        let mut params = Params::fresh(rng);
        let model = self.build(&mut params)?;
        Ok(Trainable {
            model,
            parameters: params.count(),
            vars: params.into_vars(),
        })
    }

    /// Checks every hyper-parameter; after this, building cannot overflow or divide by zero.
    pub(crate) fn check(&self) -> Result<(), BadHyperParameter> {
        check_range("classes", self.classes(), HYPER_PARAMETER_MAX)?;
        // The number of samples may be a product of hyper-parameters that this check bounds.
        self.spec().check()?;
        check_range("samples", self.samples(), SAMPLES_MAX)
    }

    /// Builds the network; [`check`](Self::check) must have passed.
    pub(crate) fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        self.spec().build(params)
    }
}
