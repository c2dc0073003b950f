//! The tensors of an architecture: from a weights file, or a seeded start for training.
//!
//! Both run the same constructor, so loading expects exactly the tensors that training writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, Var};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;

use super::mode::ComputeMode;
use super::precision::Precision;
use super::product::{ProductWeights, too_large};
use super::tensors::{RawTensors, read_tensors};
use crate::error::ModelError;

/// Initial values of a parameter without a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Init {
    /// All zeros.
    Zero,
    /// Normal with this standard deviation.
    Normal(f64),
}

/// Hands out named parameters and counts them.
pub(crate) struct Params {
    source: ParamSource,
    count: u64,
    /// Precision of the weights of products.
    precision: Precision,
    /// Type that the network computes in, and that its other parameters are kept in.
    compute: DType,
    /// Bytes saved compared with full precision.
    saved_bytes: u64,
}

enum ParamSource {
    Fresh {
        rng: Pcg64,
        vars: BTreeMap<String, Var>,
    },
    File {
        file: PathBuf,
        tensors: RawTensors,
        device: Device,
        mode: ComputeMode,
    },
}

// === impl Params ===

impl Params {
    /// Trainable variables drawn from `rng`, on the CPU.
    pub(crate) fn fresh(rng: Pcg64) -> Self {
        let vars = BTreeMap::new();
        Self::new(ParamSource::Fresh { rng, vars }, Precision::F32, DType::F32)
    }

    fn new(source: ParamSource, precision: Precision, compute: DType) -> Self {
        Self {
            source,
            count: 0,
            precision,
            compute,
            saved_bytes: 0,
        }
    }

    /// The tensors of a safetensors file, placed on `device` when the architecture asks for them.
    ///
    /// The whole file is checked before anything is allocated on the device.
    pub(crate) fn open(
        file: &Path,
        device: &Device,
        precision: Precision,
        compute: DType,
        mode: ComputeMode,
    ) -> Result<Self, ModelError> {
        let source = ParamSource::File {
            file: file.to_path_buf(),
            tensors: read_tensors(file)?,
            device: device.clone(),
            mode,
        };
        Ok(Self::new(source, precision, compute))
    }

    /// The parameter `name` of shape `shape`, in the type that the network computes in.
    pub(crate) fn get(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<Tensor, ModelError> {
        let exact = self.exact(name, shape, init)?;
        self.compute_in(name, exact)
    }

    /// The parameter `name` in f32, for any type that the network computes in.
    pub(crate) fn exact(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<Tensor, ModelError> {
        let tensor = match &mut self.source {
            ParamSource::Fresh { rng, vars } => {
                let var = draw(rng, shape, init).map_err(ModelError::compute(name))?;
                let tensor = var.as_tensor().clone();
                vars.insert(name.to_owned(), var);
                tensor
            }
            ParamSource::File {
                file,
                tensors,
                device,
                ..
            } => {
                let values = take(file, tensors, name, shape)?;
                Tensor::from_vec(values, shape, device).map_err(ModelError::compute(name))?
            }
        };
        self.count += tensor.elem_count() as u64;
        Ok(tensor)
    }

    /// A tensor made of parameters such as `name`, in the type that the network computes in.
    pub(crate) fn compute_in(&mut self, name: &str, full: Tensor) -> Result<Tensor, ModelError> {
        if full.dtype() == self.compute {
            return Ok(full);
        }
        let narrowed = || {
            too_large(&full, self.precision)?;
            full.to_dtype(self.compute)
        };
        let narrowed = narrowed().map_err(ModelError::compute(name))?;
        let bytes = |tensor: &Tensor| tensor.elem_count() * tensor.dtype().size_in_bytes();
        self.saved_bytes += bytes(&full).saturating_sub(bytes(&narrowed)) as u64;
        Ok(narrowed)
    }

    /// The parameter `name`, the weights of a product.
    pub(crate) fn weights(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<ProductWeights, ModelError> {
        let full = self.get(name, shape, init)?;
        self.narrow(name, full)
    }

    /// Weights of a product, made of parameters handed out before, such as `name`.
    pub(crate) fn narrow(
        &mut self,
        name: &str,
        full: Tensor,
    ) -> Result<ProductWeights, ModelError> {
        // A network in half precision keeps nothing wider, and widens nothing.
        let full = self.compute_in(name, full)?;
        let precision = match self.compute {
            DType::F32 => self.precision,
            _ => Precision::F32,
        };
        let full_bytes = (full.elem_count() * full.dtype().size_in_bytes()) as u64;
        let weights =
            ProductWeights::new(full, precision, self.mode()).map_err(ModelError::compute(name))?;
        self.saved_bytes += full_bytes.saturating_sub(weights.bytes());
        Ok(weights)
    }

    /// The values of parameter `name` in a file, for a constructor that changes their layout.
    pub(crate) fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let values = self.statistics(name, shape)?;
        self.count += values.len() as u64;
        Ok(values)
    }

    /// As [`values`](Self::values) for values that were measured, not trained, and that
    /// [`count`](Self::count) leaves out.
    pub(crate) fn statistics(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<f32>, ModelError> {
        match &mut self.source {
            ParamSource::File { file, tensors, .. } => take(file, tensors, name, shape),
            ParamSource::Fresh { .. } => Err(ModelError::Training(format!(
                "tensor `{name}` can only come from a public weights file"
            ))),
        }
    }

    /// Whether the file has a tensor of this name that was not handed out yet.
    pub(crate) fn holds(&self, name: &str) -> bool {
        match &self.source {
            ParamSource::Fresh { .. } => false,
            ParamSource::File { tensors, .. } => tensors.contains_key(name),
        }
    }

    /// Drops the remaining tensors that the architecture does not need.
    pub(crate) fn ignore(&mut self, unneeded: impl Fn(&str) -> bool) {
        if let ParamSource::File { tensors, .. } = &mut self.source {
            tensors.retain(|name, _| !unneeded(name));
        }
    }

    /// The file `name` in the folder of the weights.
    ///
    /// # Errors
    /// The parameters do not come from a file.
    pub(crate) fn sibling(&self, name: &str) -> Result<PathBuf, ModelError> {
        match &self.source {
            ParamSource::File { file, .. } => Ok(file.with_file_name(name)),
            ParamSource::Fresh { .. } => Err(ModelError::Training(format!(
                "an architecture that reads {name} cannot be trained here"
            ))),
        }
    }

    /// The error that tensor `name` of this source was refused for `reason`.
    pub(crate) fn refused(&self, name: &str, reason: String) -> ModelError {
        match &self.source {
            ParamSource::File { file, .. } => ModelError::tensor(file, name, reason),
            ParamSource::Fresh { .. } => ModelError::Training(format!("tensor `{name}`: {reason}")),
        }
    }

    /// How a network of these parameters computes.
    pub(crate) fn mode(&self) -> ComputeMode {
        match &self.source {
            ParamSource::Fresh { .. } => ComputeMode::Graph,
            ParamSource::File { mode, .. } => *mode,
        }
    }

    /// Where parameters are placed.
    pub(crate) fn device(&self) -> &Device {
        match &self.source {
            ParamSource::File { device, .. } => device,
            ParamSource::Fresh { .. } => &Device::Cpu,
        }
    }

    /// Parameters handed out so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes saved compared with full precision.
    pub(crate) fn saved_bytes(&self) -> u64 {
        self.saved_bytes
    }

    /// Refuses a file that holds more tensors than the architecture asked for.
    pub(crate) fn finish(self) -> Result<(), ModelError> {
        if let ParamSource::File { file, tensors, .. } = &self.source
            && let Some(name) = tensors.keys().next()
        {
            return Err(ModelError::tensor(
                file,
                name,
                "not part of the architecture",
            ));
        }
        Ok(())
    }

    /// The trainable variables by name; empty when the parameters came from a file.
    pub(crate) fn into_vars(self) -> BTreeMap<String, Var> {
        match self.source {
            ParamSource::Fresh { vars, .. } => vars,
            ParamSource::File { .. } => BTreeMap::new(),
        }
    }
}

/// Takes tensor `name` out of `tensors`.
fn take(
    file: &Path,
    tensors: &mut RawTensors,
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>, ModelError> {
    let Some((found, values)) = tensors.remove(name) else {
        return Err(ModelError::tensor(file, name, "missing"));
    };
    if found != shape {
        let reason = format!("shape {found:?}, the architecture needs {shape:?}");
        return Err(ModelError::tensor(file, name, reason));
    }
    values.map_err(|reason| ModelError::tensor(file, name, reason))
}

fn draw(rng: &mut Pcg64, shape: &[usize], init: Init) -> candle_core::Result<Var> {
    let deviation = match init {
        Init::Zero => return Var::zeros(shape, DType::F32, &Device::Cpu),
        Init::Normal(deviation) => deviation,
    };
    let normal = Normal::new(0.0, deviation).map_err(candle_core::Error::wrap)?;
    let values: Vec<f32> = normal
        .sample_iter(rng)
        .take(shape.iter().product())
        .map(|value: f64| value as f32)
        .collect();
    Var::from_vec(values, shape, &Device::Cpu)
}
