//! A graph as a network of one stage and one exit.

use std::path::Path;

use candle_core::{CpuStorage, DType, Device, Result, Storage, Tensor};

use super::elements;
use super::engine::Engine;
use super::spec::{OnnxScores, OnnxSpec};
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{Graph, GraphAnswer, NamedTensor, Port, RawTensor};
use crate::networks::staged::{StagedModel, no_stage};
use crate::networks::task::Task;

/// A graph and its part of a card.
pub(crate) struct OnnxModel {
    engine: Box<dyn Engine>,
    /// Completed from the graph.
    spec: OnnxSpec,
}

// === impl OnnxModel ===

impl OnnxModel {
    pub(super) fn new(engine: Box<dyn Engine>, spec: OnnxSpec) -> Self {
        Self { engine, spec }
    }

    /// Runs a batch whose tensors are in the order of the graph's inputs.
    fn outputs(&self, inputs: &[(&str, &RawTensor)]) -> Result<Vec<NamedTensor>> {
        self.engine.run(inputs, self.spec.output.as_deref())
    }

    /// The scores of the classes as they are, `[rows, classes]`.
    fn scores(&self, rows: usize, outputs: Vec<NamedTensor>) -> Result<Tensor> {
        let classes = self.spec.classes.unwrap_or_default();
        let Some((name, output)) = outputs.into_iter().next() else {
            candle_core::bail!("no output");
        };
        let values: usize = output.shape.iter().product();
        if output.rows() != rows || values != rows * classes {
            let shape = &output.shape;
            candle_core::bail!(
                "output `{name}` is {shape:?} for {rows} inputs, not {classes} values for each"
            );
        }
        Tensor::from_vec(elements::floats(&output)?, (rows, classes), &Device::Cpu)
    }

    fn probabilities(&self, scores: &Tensor) -> Result<Tensor> {
        match self.spec.scores {
            Some(OnnxScores::Probabilities) => Ok(scores.clone()),
            _ => candle_nn::ops::softmax_last_dim(scores),
        }
    }

    /// The tensor of one request's shape as the application has it, in that of the graph.
    fn shaped(&self, tensor: &RawTensor) -> RawTensor {
        let mut shaped = tensor.clone();
        if let Some(shape) = &self.spec.shape {
            shaped.shape = [&[tensor.rows()], shape.as_slice()].concat();
        }
        shaped
    }
}

impl Graph for OnnxModel {
    fn run(&self, inputs: &[NamedTensor]) -> Result<GraphAnswer> {
        let rows = inputs.first().map_or(0, |(_, tensor)| tensor.rows());
        let outputs = match (self.spec.only_input(), inputs) {
            (Some(port), [(_, tensor)]) => self.outputs(&[(&port.name, &self.shaped(tensor))])?,
            _ => {
                let named = |port: &'_ Port| {
                    let found = inputs.iter().find(|(name, _)| *name == port.name);
                    found
                        .ok_or_else(|| candle_core::Error::msg(format!("no input `{}`", port.name)))
                };
                let mut ordered = Vec::with_capacity(inputs.len());
                for port in &self.spec.inputs {
                    ordered.push((&*port.name, &named(port)?.1));
                }
                self.outputs(&ordered)?
            }
        };
        match self.spec.task {
            Task::Classify => {
                let scores = self.scores(rows, outputs)?;
                self.probabilities(&scores).map(GraphAnswer::Scores)
            }
            _ => Ok(GraphAnswer::Tensors(outputs)),
        }
    }
}

/// For classifiers of one input.
impl StagedModel for OnnxModel {
    fn stages(&self) -> usize {
        1
    }

    fn exits(&self) -> &[usize] {
        &[1]
    }

    fn classes(&self) -> usize {
        match self.spec.task {
            Task::Classify => self.spec.classes.unwrap_or_default(),
            _ => 1,
        }
    }

    fn graph(&self) -> Option<&dyn Graph> {
        Some(self)
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        if stage != 0 {
            return no_stage(stage, 1);
        }
        let (Some(port), Task::Classify) = (self.spec.only_input(), self.spec.task) else {
            candle_core::bail!("the graph takes named tensors");
        };
        let (rows, width) = x.dims2()?;
        let row = self.spec.shape.clone().unwrap_or_default();
        let samples: usize = row.iter().product();
        if width != samples {
            candle_core::bail!("input has {width} samples, the model takes {samples}");
        }
        let shape = [&[rows], row.as_slice()].concat();
        let raw = raw(x, port.datatype, shape)?;
        self.scores(rows, self.outputs(&[(&port.name, &raw)])?)
    }

    fn logits(&self, _: usize, x: &Tensor) -> Result<Tensor> {
        match self.spec.scores {
            Some(OnnxScores::Probabilities) => x.log(),
            _ => Ok(x.clone()),
        }
    }

    fn head(&self, _: usize, x: &Tensor) -> Result<Tensor> {
        self.probabilities(x)
    }
}

/// The numbers of a tensor of candle, which must be of that type.
fn raw(x: &Tensor, datatype: Datatype, shape: Vec<usize>) -> Result<RawTensor> {
    let x = x.contiguous()?;
    let (storage, layout) = x.storage_and_layout();
    let Some((from, to)) = layout.contiguous_offsets() else {
        candle_core::bail!("input is not contiguous");
    };
    match (&*storage, datatype) {
        (Storage::Cpu(CpuStorage::F32(values)), Datatype::Fp32) => {
            Ok(elements::tensor(datatype, shape, &values[from..to]))
        }
        (Storage::Cpu(CpuStorage::F64(values)), Datatype::Fp64) => {
            Ok(elements::tensor(datatype, shape, &values[from..to]))
        }
        (Storage::Cpu(CpuStorage::I64(values)), Datatype::Int64) => {
            Ok(elements::tensor(datatype, shape, &values[from..to]))
        }
        (Storage::Cpu(CpuStorage::U8(values)), Datatype::Uint8) => {
            Ok(elements::tensor(datatype, shape, &values[from..to]))
        }
        _ => {
            let (found, wanted): (DType, _) = (x.dtype(), datatype.name());
            candle_core::bail!("input is {found:?}, the graph takes {wanted}")
        }
    }
}

/// Opens the graph in `file` as a network; `card` is the file that `spec` was read from.
///
/// # Errors
/// No engine takes the graph.
pub(crate) fn open(
    file: &Path,
    card: &Path,
    spec: &OnnxSpec,
) -> std::result::Result<OnnxModel, ModelError> {
    let engine = super::runtime::engine(file, card, spec)?;
    Ok(OnnxModel::new(engine, spec.clone()))
}
