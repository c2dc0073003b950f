//! Where an architecture gets its tensors: a weights file, or a seeded start for training.
//!
//! Both ways run the same constructor, so what training writes is what loading expects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor, Var};
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::error::ModelError;
use crate::flow::Mode;
use crate::mapped::FileBytes;
use crate::precision::{Precision, Weights, too_large};

/// How a parameter starts when there is no file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Init {
    /// All zeros.
    Zero,
    /// Normal with this standard deviation.
    Normal(f64),
}

/// Hands out named parameters and remembers how many it gave.
pub(crate) struct Params {
    source: Source,
    count: u64,
    /// What weights of products are kept in.
    precision: Precision,
    /// What the network computes in, and its other parameters are kept in.
    compute: DType,
    /// Bytes that parameters take less than at full precision.
    saved_bytes: u64,
}

enum Source {
    Fresh {
        rng: Pcg64,
        vars: BTreeMap<String, Var>,
    },
    File {
        file: PathBuf,
        tensors: RawTensors,
        device: Device,
        mode: Mode,
    },
}

// === impl Params ===

impl Params {
    /// Trainable variables drawn from `rng`, on the CPU.
    pub(crate) fn fresh(rng: Pcg64) -> Self {
        let vars = BTreeMap::new();
        Self::new(Source::Fresh { rng, vars }, Precision::F32, DType::F32)
    }

    fn new(source: Source, precision: Precision, compute: DType) -> Self {
        Self {
            source,
            count: 0,
            precision,
            compute,
            saved_bytes: 0,
        }
    }

    /// The tensors of a safetensors file, placed on `device` as they are asked for.
    ///
    /// The whole file is checked before anything is allocated on the device.
    pub(crate) fn open(
        file: &Path,
        device: &Device,
        precision: Precision,
        compute: DType,
        mode: Mode,
    ) -> Result<Self, ModelError> {
        let source = Source::File {
            file: file.to_path_buf(),
            tensors: read_tensors(file)?,
            device: device.clone(),
            mode,
        };
        Ok(Self::new(source, precision, compute))
    }

    /// The parameter `name` of shape `shape`, in what the network computes in.
    pub(crate) fn get(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<Tensor, ModelError> {
        let exact = self.exact(name, shape, init)?;
        self.compute_in(name, exact)
    }

    /// The parameter `name`, in f32 whatever the network computes in.
    pub(crate) fn exact(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<Tensor, ModelError> {
        let tensor = match &mut self.source {
            Source::Fresh { rng, vars } => {
                let var = draw(rng, shape, init).map_err(ModelError::compute(name))?;
                let tensor = var.as_tensor().clone();
                vars.insert(name.to_owned(), var);
                tensor
            }
            Source::File {
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

    /// A tensor made of parameters such as `name`, in what the network computes in.
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

    /// The parameter `name`, which is the weights of a product.
    pub(crate) fn weights(
        &mut self,
        name: &str,
        shape: &[usize],
        init: Init,
    ) -> Result<Weights, ModelError> {
        let full = self.get(name, shape, init)?;
        self.narrow(name, full)
    }

    /// Weights of a product that were made of parameters handed out before, such as `name`.
    pub(crate) fn narrow(&mut self, name: &str, full: Tensor) -> Result<Weights, ModelError> {
        // What computes in half precision keeps nothing wider, and widens nothing.
        let full = self.compute_in(name, full)?;
        let precision = match self.compute {
            DType::F32 => self.precision,
            _ => Precision::F32,
        };
        let full_bytes = (full.elem_count() * full.dtype().size_in_bytes()) as u64;
        let weights =
            Weights::new(full, precision, self.mode()).map_err(ModelError::compute(name))?;
        self.saved_bytes += full_bytes.saturating_sub(weights.bytes());
        Ok(weights)
    }

    /// The numbers of parameter `name` in a file, to be turned into another layout.
    pub(crate) fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let values = self.statistics(name, shape)?;
        self.count += values.len() as u64;
        Ok(values)
    }

    /// As [`values`](Self::values) for numbers that were measured, not trained, and that
    /// [`count`](Self::count) leaves out.
    pub(crate) fn statistics(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<f32>, ModelError> {
        match &mut self.source {
            Source::File { file, tensors, .. } => take(file, tensors, name, shape),
            Source::Fresh { .. } => Err(ModelError::Training(format!(
                "tensor `{name}` can only come from a public weights file"
            ))),
        }
    }

    /// Whether the file has a tensor of this name that was not yet handed out.
    pub(crate) fn holds(&self, name: &str) -> bool {
        match &self.source {
            Source::Fresh { .. } => false,
            Source::File { tensors, .. } => tensors.contains_key(name),
        }
    }

    /// Lets go of tensors that are left over and not needed, whatever they hold.
    pub(crate) fn ignore(&mut self, unneeded: impl Fn(&str) -> bool) {
        if let Source::File { tensors, .. } = &mut self.source {
            tensors.retain(|name, _| !unneeded(name));
        }
    }

    /// The file `name` in the folder of the weights.
    ///
    /// # Errors
    /// The parameters do not come from a file.
    pub(crate) fn beside(&self, name: &str) -> Result<PathBuf, ModelError> {
        match &self.source {
            Source::File { file, .. } => Ok(file.with_file_name(name)),
            Source::Fresh { .. } => Err(ModelError::Training(format!(
                "an architecture that reads {name} cannot be trained here"
            ))),
        }
    }

    /// The error that tensor `name` of this source was refused for `reason`.
    pub(crate) fn refused(&self, name: &str, reason: String) -> ModelError {
        match &self.source {
            Source::File { file, .. } => ModelError::tensor(file, name, reason),
            Source::Fresh { .. } => ModelError::Training(format!("tensor `{name}`: {reason}")),
        }
    }

    /// How what these parameters make computes.
    pub(crate) fn mode(&self) -> Mode {
        match &self.source {
            Source::Fresh { .. } => Mode::Graph,
            Source::File { mode, .. } => *mode,
        }
    }

    /// Where parameters are placed.
    pub(crate) fn device(&self) -> &Device {
        match &self.source {
            Source::File { device, .. } => device,
            Source::Fresh { .. } => &Device::Cpu,
        }
    }

    /// Parameters handed out so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes that parameters take less than at full precision.
    pub(crate) fn saved_bytes(&self) -> u64 {
        self.saved_bytes
    }

    /// Refuses a file that holds more than the architecture asked for.
    pub(crate) fn finish(self) -> Result<(), ModelError> {
        if let Source::File { file, tensors, .. } = &self.source
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
            Source::Fresh { vars, .. } => vars,
            Source::File { .. } => BTreeMap::new(),
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

// === tensor files ===

/// Shape and values by name; in the place of values, why there are none.
pub(crate) type RawTensors = BTreeMap<String, (Vec<usize>, Result<Vec<f32>, String>)>;

/// How PyTorch's batch normalisation names its counter of training batches, which inference does
/// not need.
const BATCH_COUNTER: &str = ".num_batches_tracked";

/// Reads every tensor of a safetensors file; counters of training batches are left out. A tensor
/// that is not of finite floats of at most 32 bits, which are widened to f32, is refused where it
/// is asked for: published files hold tables of other types that nobody needs.
pub(crate) fn read_tensors(file: &Path) -> Result<RawTensors, ModelError> {
    let (bytes, before) = FileBytes::open(file)?;
    let parsed = SafeTensors::deserialize(&bytes)
        .map_err(|error| ModelError::weights(file, format!("no safetensors file: {error}")))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in parsed.iter() {
        if view.dtype() == Dtype::I64 && name.ends_with(BATCH_COUNTER) {
            continue;
        }
        tensors.insert(name.to_owned(), (view.shape().to_vec(), finite(&view)));
    }
    before.unchanged(file)?;
    Ok(tensors)
}

/// The numbers of a tensor, or why there are none.
fn finite(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let values = match view.dtype() {
        Dtype::F32 => f32_values(view.data()),
        Dtype::F16 => widened(view.data(), DType::F16)?,
        Dtype::BF16 => widened(view.data(), DType::BF16)?,
        other => return Err(format!("type {other:?}, must be F32, F16 or BF16")),
    };
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(format!("value {at} is {}", values[at])),
        None => Ok(values),
    }
}

fn f32_values(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(size_of::<f32>())
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

fn widened(bytes: &[u8], dtype: DType) -> Result<Vec<f32>, String> {
    let length = bytes.len() / dtype.size_in_bytes();
    Tensor::from_raw_buffer(bytes, dtype, &[length], &Device::Cpu)
        .and_then(|narrow| narrow.to_dtype(DType::F32)?.to_vec1())
        .map_err(|error| format!("cannot be widened: {error}"))
}

/// Writes named f32 tensors as a safetensors file, whole or not at all.
pub(crate) fn write_tensors(
    file: &Path,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<(), ModelError> {
    // Written beside and renamed, so that a loader never sees half a file.
    let partial = file.with_extension("partial");
    let by_name: std::collections::HashMap<&str, Tensor> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.clone()))
        .collect();
    candle_core::safetensors::save(&by_name, &partial).map_err(ModelError::compute(format!(
        "writing {}",
        partial.display()
    )))?;
    std::fs::rename(&partial, file).map_err(|source| ModelError::io(file, source))
}
