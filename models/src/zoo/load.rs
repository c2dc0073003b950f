//! Loading a variant onto a device.

use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device};

use super::card::{VARIANT_CARD, VariantCard};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::bert::tokenizer;
use crate::networks::onnx::{self, OnnxSpec};
use crate::networks::staged::StagedModel;
use crate::networks::standing_in::StandIn;
use crate::networks::tokens::Tokenizer;
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;
use crate::weights::precision::Precision;

/// A variant with its weights on a device.
pub struct LoadedVariant {
    /// Its card.
    pub card: VariantCard,
    /// The network.
    pub model: Arc<dyn StagedModel>,
    /// Bytes of its parameters on the device.
    pub bytes: u64,
}

/// How a loaded network computes.
#[derive(Clone, Copy)]
enum ComputePath {
    /// With the kernels of this project on packed weights.
    Packed,
    /// In f32, by operations one after another; narrow weights are widened as they are used.
    Widened,
    /// As [`ComputePath::Widened`], but half-precision weights compute in half precision: a GPU
    /// computes in it, a CPU only stores in it.
    Device,
}

// === impl ComputePath ===

impl ComputePath {
    fn mode(self) -> ComputeMode {
        match self {
            Self::Packed => ComputeMode::Packed,
            Self::Widened | Self::Device => ComputeMode::Graph,
        }
    }

    fn compute(self, precision: Precision) -> DType {
        match (self, precision) {
            (Self::Device, Precision::F16) => DType::F16,
            _ => DType::F32,
        }
    }
}

/// Loads the variant in folder `dir` onto `device`, in full precision.
///
/// # Errors
/// The card or the weights cannot be read, do not fit each other, or do not fit on the device.
pub fn load_variant(dir: &Path, device: &Device) -> Result<LoadedVariant, ModelError> {
    load_variant_at(dir, Precision::F32, device)
}

/// Loads the variant in folder `dir` onto `device`, the weights of its products in `precision`.
///
/// # Errors
/// As [`load_variant`]; or a weight is too large for the precision.
pub fn load_variant_at(
    dir: &Path,
    precision: Precision,
    device: &Device,
) -> Result<LoadedVariant, ModelError> {
    // No kernel multiplies half precision: a CPU widens its weights as they are used.
    let path = match device {
        Device::Cpu if precision != Precision::F16 => ComputePath::Packed,
        Device::Cpu => ComputePath::Widened,
        _ => ComputePath::Device,
    };
    load(dir, device, precision, path)
}

/// As [`load_variant`], but computing with candle's operations as training does, on any device: the
/// reference for the CPU's kernels.
///
/// # Errors
/// As [`load_variant`].
pub fn load_variant_plain(dir: &Path, device: &Device) -> Result<LoadedVariant, ModelError> {
    load(dir, device, Precision::F32, ComputePath::Widened)
}

/// As [`load_variant_at`] on a device without kernels of this project, such as a GPU, but on the
/// CPU: the same operations in the same precision, so that the answers of a GPU can be tested on
/// machines without one.
///
/// # Errors
/// As [`load_variant_at`].
pub fn load_variant_standing_in(
    dir: &Path,
    precision: Precision,
) -> Result<LoadedVariant, ModelError> {
    let mut loaded = load(dir, &Device::Cpu, precision, ComputePath::Device)?;
    loaded.model = Arc::new(StandIn(loaded.model));
    Ok(loaded)
}

/// The tokenizer of the variant in folder `dir`, if it takes text and brings one.
///
/// # Errors
/// The card or the tokenizer's files cannot be read, or do not fit each other.
pub fn tokenizer_of(dir: &Path) -> Result<Option<Arc<Tokenizer>>, ModelError> {
    let card = VariantCard::read(&dir.join(VARIANT_CARD))?;
    let Architecture::Bert(spec) = &card.architecture else {
        return Ok(None);
    };
    let config = dir.join(&card.weights).with_file_name("config.json");
    tokenizer::open(spec, &config).map(Some)
}

fn load(
    dir: &Path,
    device: &Device,
    precision: Precision,
    path: ComputePath,
) -> Result<LoadedVariant, ModelError> {
    let card_file = dir.join(VARIANT_CARD);
    let card = VariantCard::read(&card_file)?;
    if let Architecture::Onnx(spec) = &card.architecture {
        let model = load_graph(dir, &card, spec, device, precision)?;
        return Ok(LoadedVariant {
            bytes: spec.bytes,
            model,
            card,
        });
    }
    let weights = dir.join(&card.weights);
    let compute = path.compute(precision);
    let mut params = Params::open(&weights, device, precision, compute, path.mode())?;
    let model = card.architecture.build(&mut params)?;
    let parameters = params.count();
    let saved_bytes = params.saved_bytes();
    params.finish()?;
    if parameters != card.parameters {
        let reason = format!("{}, the weights have {parameters}", card.parameters);
        return Err(ModelError::field(&card_file, "parameters", reason));
    }
    Ok(LoadedVariant {
        card,
        model: model.into(),
        bytes: (parameters * size_of::<f32>() as u64).saturating_sub(saved_bytes),
    })
}

/// The network of an ONNX graph.
fn load_graph(
    dir: &Path,
    card: &VariantCard,
    spec: &OnnxSpec,
    device: &Device,
    precision: Precision,
) -> Result<Arc<dyn StagedModel>, ModelError> {
    let card_file = dir.join(VARIANT_CARD);
    let refuse = |reason: String| ModelError::field(&card_file, "architecture.kind", reason);
    if precision.is_reduced() {
        let reason = format!(
            "an ONNX graph has the precision of its file and cannot be loaded at {precision}"
        );
        return Err(refuse(reason));
    }
    if !device.is_cpu() {
        let reason = "an ONNX graph runs on workers with device = \"cpu\" only";
        return Err(refuse(reason.to_owned()));
    }
    let model = onnx::open(&dir.join(&card.weights), &card_file, spec)?;
    Ok(Arc::new(model))
}
