//! The engine of classic models: operators of `ai.onnx.ml`, which exports of scikit-learn, LightGBM
//! and XGBoost have, and the ordinary operators between them.
//!
//! It computes as onnxruntime does, also where the specification leaves the answer open. All sizes
//! that a file or a request asks for are bounded.
//!
//! - `plan` orders the nodes and runs them; `registry` has the operators by name, `definition` their
//!   attributes, `value` the tensors between them, `wire` those of requests
//! - `trees` are decision trees as flat arrays, `ensemble` sums over them; `tree_attributes` and
//!   `tree_ensemble` read them from a file, `tree_classifier` and `tree_regressor` finish the scores
//! - `linear`, `svm` and `svm_classifier` are the other models; `transform` is their last step
//! - `scale`, `encode` and `features` prepare features
//! - `matmul`, `pairs`, `unary`, `cast`, `reduce`, `lanes`, `layout` and `select` are the ordinary
//!   operators; these share `shape` and `strided`
//! - `zip_map` finds outputs that are maps

mod cast;
mod constant;
mod definition;
mod encode;
mod ensemble;
mod features;
mod labels;
mod lanes;
mod layout;
mod linear;
mod matmul;
mod operator;
mod pairs;
mod plan;
mod reduce;
mod registry;
mod scale;
mod select;
mod shape;
mod strided;
mod svm;
mod svm_classifier;
mod transform;
mod tree_attributes;
mod tree_classifier;
mod tree_ensemble;
mod tree_regressor;
mod trees;
mod unary;
mod value;
mod wire;
mod zip_map;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use candle_core::{Error, Result};
use prost::Message;

use self::plan::Plan;
pub(super) use self::zip_map::{ZippedOutput, appended_outputs, zipped_outputs};
use super::engine::Engine;
use super::proto::{GraphOutline, ModelProto};
use crate::networks::graph::{NamedTensor, Port, RawTensor};

/// Its name.
pub(super) const NAME: &str = "switchyard's ai.onnx.ml";

/// A graph that this engine runs.
pub(super) struct ClassicGraph {
    plan: Plan,
    outputs: Vec<Port>,
}

/// Whether a graph has an operator of `ai.onnx.ml`.
pub(super) fn is_classic(graph: &GraphOutline) -> bool {
    graph.node.iter().any(|node| node.domain == registry::ML)
}

/// Reads the graph of a file that gives these outputs. An output of the graph that is a map is the
/// tensor that the map is made from.
///
/// # Errors
/// An operator, an attribute or a type is unknown; the text names it.
pub(super) fn read(file: Bytes, inputs: &[Port], outputs: &[Port]) -> Result<ClassicGraph> {
    let unknown = |port: &&Port| !wire::is_known(port.datatype);
    if let Some(port) = inputs.iter().chain(outputs).find(unknown) {
        let (name, datatype) = (&port.name, port.datatype.name());
        candle_core::bail!("`{name}` is {datatype}, which is not computed for classic models");
    }
    let model = ModelProto::decode(file).map_err(Error::wrap)?;
    let names: Vec<&str> = outputs.iter().map(|port| &*port.name).collect();
    Ok(ClassicGraph {
        plan: Plan::new(&model, &names)?,
        outputs: outputs.to_vec(),
    })
}

// === impl ClassicGraph ===

impl ClassicGraph {
    /// Memory that the graph takes, without that of batches.
    pub(super) fn bytes(&self) -> usize {
        self.plan.bytes()
    }
}

impl Engine for ClassicGraph {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let is_wanted = |port: &Port| wanted.is_none_or(|name| *port.name == *name);
        let outputs = self.outputs.iter().enumerate();
        let wanted: Vec<usize> = outputs
            .filter(|(_, port)| is_wanted(port))
            .map(|(at, _)| at)
            .collect();
        let input = |name: &str| match inputs.iter().find(|(of, _)| *of == name) {
            Some((_, tensor)) => wire::value(tensor),
            None => candle_core::bail!("no input `{name}`"),
        };
        let values = self.plan.run(input, &wanted)?;
        let named = wanted.iter().zip(values).map(|(&at, value)| {
            let port = &self.outputs[at];
            let tensor = wire::raw(value);
            if tensor.datatype != port.datatype {
                let (found, said) = (tensor.datatype.name(), port.datatype.name());
                candle_core::bail!("output `{}` is {found}, the graph says {said}", port.name);
            }
            Ok((Arc::clone(&port.name), tensor))
        });
        named.collect()
    }
}
