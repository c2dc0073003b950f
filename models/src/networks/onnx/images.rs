//! The engine of networks of images and sequences: convolutions on this project's kernels, channels last.
//!
//! It runs the nodes from the graph's input up to the first that it does not know, on every path. The other
//! nodes, usually a small head, are a graph of their own for `linear` or `embedded`. A graph of which this would be
//! less than half of the products is left to the other engines as a whole.
//!
//! - `node` has the attributes of a node, `known` the values that its inputs may be
//! - `operation` is an operation on images, with a `convolution` or a `function` in it
//! - `operators` makes operations of nodes, with `convolutions`, `pools` and `elementwise`
//! - `draft` finds the nodes that it runs, `fuse` joins operations, `plan` packs the weights and runs
//! - `tail` is the graph of the other nodes

mod convolution;
mod convolutions;
mod draft;
mod elementwise;
mod function;
mod fuse;
mod known;
mod node;
mod operation;
mod operators;
mod plan;
mod pools;
mod step;
mod tail;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use candle_core::{Error, Result};
use prost::Message;

use self::draft::Draft;
use self::plan::Plan;
use super::embedded;
use super::engine::Engine;
use super::linear;
use super::proto::ModelProto;
use super::sketch;
use crate::error::ModelError;
use crate::networks::graph::{NamedTensor, Port, RawTensor};

/// Its name.
pub(super) const NAME: &str = "switchyard's kernels";

/// A graph that this engine runs.
pub(super) struct ImageGraph {
    plan: Plan,
    tail: Option<Tail>,
    outputs: Vec<Port>,
}

/// The nodes that the plan lacks.
struct Tail {
    engine: Box<dyn Engine>,
    /// Names of the images that they read.
    reads: HashSet<String>,
}

/// Whether this engine runs most of a graph. Large weights are not looked at.
///
/// # Errors
/// The file is no graph.
pub(super) fn suits(file: &[u8]) -> std::result::Result<bool, String> {
    let model = sketch::read(file)?;
    Ok(Draft::new(&model).is_some())
}

/// Reads the graph in the bytes of `file`; none if [`suits`] says so.
///
/// # Errors
/// A weight has not the values of its shape, or `embedded` refuses the nodes that this engine does not know.
pub(super) fn read(
    file: &Path,
    bytes: &Bytes,
    outputs: &[Port],
) -> std::result::Result<Option<ImageGraph>, ModelError> {
    let refuse = |error: Error| ModelError::weights(file, error.to_string());
    let model = ModelProto::decode(bytes.clone()).map_err(|error| refuse(Error::wrap(error)))?;
    let Some(draft) = Draft::new(&model) else {
        return Ok(None);
    };
    let others = outputs.iter().filter(|port| !draft.makes(&port.name));
    let others: Vec<Port> = others.cloned().collect();
    let tail = match others.is_empty() {
        true => None,
        false => {
            let tail = tail::tail(&draft, &model, &others);
            let bytes = tail.of(bytes).map_err(|error| refuse(Error::msg(error)))?;
            let reads = tail.inputs.into_iter().map(|info| info.name).collect();
            let engine = read_tail(file, Bytes::from(bytes), &others)?;
            Some(Tail { engine, reads })
        }
    };
    Ok(Some(ImageGraph {
        plan: Plan::new(draft).map_err(refuse)?,
        tail,
        outputs: outputs.to_vec(),
    }))
}

fn read_tail(
    file: &Path,
    bytes: Bytes,
    outputs: &[Port],
) -> std::result::Result<Box<dyn Engine>, ModelError> {
    Ok(match linear::read(file, &bytes, &[], outputs, false)? {
        Some(graph) => Box::new(graph),
        None => Box::new(embedded::read(file, bytes.into(), &[], outputs, false)?),
    })
}

// === impl ImageGraph ===

impl Engine for ImageGraph {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let [(_, input)] = inputs else {
            candle_core::bail!("{} inputs, the graph takes one", inputs.len());
        };
        let made = self.plan.run(input)?;
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted == name);
        let is_made = |port: &Port| made.iter().any(|(name, _)| *name == port.name);
        let mut ports = self.outputs.iter();
        let lacks = ports.any(|port| is_wanted(&port.name) && !is_made(port));
        let mut others = match &self.tail {
            Some(tail) if lacks => {
                let made = made.iter().map(|(name, tensor)| (&**name, tensor));
                let made: Vec<_> = made
                    .filter(|(name, _)| tail.reads.contains(*name))
                    .collect();
                tail.engine.run(&made, wanted)?
            }
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        for port in self.outputs.iter().filter(|port| is_wanted(&port.name)) {
            let of_plan = made.iter().find(|(name, _)| *name == port.name);
            match others.iter().position(|(name, _)| *name == port.name) {
                Some(at) => found.push(others.swap_remove(at)),
                None => match of_plan {
                    Some((_, tensor)) => found.push((Arc::clone(&port.name), tensor.clone())),
                    None => candle_core::bail!("output `{}` was not made", port.name),
                },
            }
        }
        Ok(found)
    }
}
