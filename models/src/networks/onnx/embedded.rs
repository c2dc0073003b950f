//! The engine inside this program: rten, which needs no library of the machine.
//!
//! It computes in 32 bits. Integers of 64 bits that do not fit are refused, and so are graphs of
//! doubles, halves and strings.
//!
//! - `values` are tensors in rten's types
//! - `pool` lends the threads

mod pool;
mod values;

use std::path::Path;
use std::sync::Arc;

use candle_core::{Error, Result};
use rten::{Model, ModelOptions, NodeId, ValueOrView};

pub(super) use self::pool::BorrowedPool;
pub(super) use self::values::{NAME, Numbers, WAY_OUT, raw};
use super::engine::Engine;
use super::sketch;
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{NamedTensor, Port, RawTensor};

/// A graph that rten runs.
pub(super) struct EmbeddedGraph {
    model: Model,
    outputs: Vec<(Port, NodeId)>,
}

/// Reads the graph in the `bytes` of `file`, for these inputs and outputs. Packed weights make encoders a fifth
/// faster, and convolutions no faster; they take memory.
///
/// # Errors
/// The graph has an operator or a type that rten does not know; the text names it.
pub(super) fn read(
    file: &Path,
    bytes: Vec<u8>,
    inputs: &[Port],
    outputs: &[Port],
    packs: bool,
) -> std::result::Result<EmbeddedGraph, ModelError> {
    check(file, inputs.iter().chain(outputs))?;
    let model = load(file, bytes, packs)?;
    let outputs = outputs.iter().map(|port| {
        let id = node_id(file, &model, &port.name)?;
        Ok((port.clone(), id))
    });
    Ok(EmbeddedGraph {
        outputs: outputs.collect::<std::result::Result<_, ModelError>>()?,
        model,
    })
}

/// Refuses inputs and outputs of types that rten does not know.
pub(super) fn check<'a>(
    file: &Path,
    mut ports: impl Iterator<Item = &'a Port>,
) -> std::result::Result<(), ModelError> {
    match ports.find(|port| !is_known(port.datatype)) {
        None => Ok(()),
        Some(port) => {
            let (name, datatype) = (&port.name, port.datatype.name());
            let reason = "which the engine in this program does not compute";
            Err(refusal(file, format!("`{name}` is {datatype}, {reason}")))
        }
    }
}

/// The model in the `bytes` of `file`, or of a part of it.
pub(super) fn load(
    file: &Path,
    bytes: Vec<u8>,
    packs: bool,
) -> std::result::Result<Model, ModelError> {
    let sketch = sketch::read(&bytes).map_err(|reason| refusal(file, reason))?;
    if let Some(operator) = sketch.padded_lower() {
        let reason = "SAME_LOWER, which the engine in this program does not compute";
        let reason = format!("auto_pad of operator {operator} is {reason}");
        return Err(refusal(file, reason));
    }
    let loaded = ModelOptions::with_all_ops()
        .prepack_weights(packs)
        .load(bytes);
    loaded.map_err(|error| {
        let reason = format!("the engine in this program cannot run it: {error}");
        refusal(file, reason)
    })
}

/// The node of a tensor in a file's model.
pub(super) fn node_id(
    file: &Path,
    model: &Model,
    name: &str,
) -> std::result::Result<NodeId, ModelError> {
    let id = model.node_id(name);
    id.map_err(|error| refusal(file, format!("tensor `{name}`: {error}")))
}

fn refusal(file: &Path, reason: String) -> ModelError {
    ModelError::weights(file, format!("{reason}; {WAY_OUT}"))
}

const fn is_known(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::Fp32
            | Datatype::Int64
            | Datatype::Int32
            | Datatype::Int8
            | Datatype::Uint8
            | Datatype::Bool
    )
}

// === impl EmbeddedGraph ===

impl Engine for EmbeddedGraph {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let numbers = inputs.iter().map(|(_, tensor)| Numbers::of(tensor));
        let numbers: Vec<Numbers<'_>> = numbers.collect::<Result<_>>()?;
        let values = inputs
            .iter()
            .zip(&numbers)
            .map(|((name, tensor), numbers)| {
                let id = self.model.node_id(name).map_err(Error::wrap)?;
                Ok((id, ValueOrView::View(numbers.view(&tensor.shape)?)))
            });
        let values = values.collect::<Result<Vec<_>>>()?;
        let outputs = self.outputs.iter();
        let outputs = outputs.filter(|(port, _)| wanted.is_none_or(|name| *port.name == *name));
        let outputs: Vec<&(Port, NodeId)> = outputs.collect();
        let ids: Vec<NodeId> = outputs.iter().map(|(_, id)| *id).collect();
        let pool = BorrowedPool::new(rayon::current_num_threads());
        let made = self
            .model
            .run(values, &ids, Some(pool.options()))
            .map_err(Error::wrap)?;
        let named = outputs
            .into_iter()
            .zip(made)
            .map(|((port, _), value)| Ok((Arc::clone(&port.name), raw(port, value)?)));
        named.collect()
    }
}
