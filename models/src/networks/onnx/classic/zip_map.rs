//! Outputs made by `ZipMap` of `ai.onnx.ml`.
//!
//! Converters of scikit-learn end classifiers with it by default. It gives a map from class names
//! to probabilities for each row. Maps cannot be sent, so the tensor that it reads takes the place
//! of the output.

use candle_core::{Error, Result};
use prost::Message;

use super::definition::Definition;
use super::labels::Labels;
use super::registry::ML;
use crate::networks::onnx::proto::{
    DimensionProto, GraphOutline, ModelOutline, ModelProto, ShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};

/// FLOAT of `TensorProto.DataType`.
const FLOAT: i32 = 1;

/// An output that is made by `ZipMap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::networks::onnx) struct ZippedOutput {
    /// Name of the output.
    pub(in crate::networks::onnx) output: String,
    /// The tensor that it is made from: `[rows, classes]` of FLOAT.
    pub(in crate::networks::onnx) tensor: String,
    /// Names of the classes; integers are written out.
    pub(in crate::networks::onnx) classes: Vec<String>,
    /// Whether the tensor is an output of the graph already.
    pub(in crate::networks::onnx) is_listed: bool,
}

/// The outputs of a file that `ZipMap` makes.
///
/// # Errors
/// The file is not ONNX, or a `ZipMap` has no classes.
pub(in crate::networks::onnx) fn zipped_outputs(file: &[u8]) -> Result<Vec<ZippedOutput>> {
    let model = ModelProto::decode(file).map_err(Error::wrap)?;
    let graph = model.graph.unwrap_or_default();
    let mut zipped = Vec::new();
    for output in &graph.output {
        let makes = |made: &String| *made == output.name;
        let node = graph.node.iter().find(|node| node.output.iter().any(makes));
        let Some(node) = node.filter(|node| node.op_type == "ZipMap" && node.domain == ML) else {
            continue;
        };
        let Some(tensor) = node.input.first() else {
            candle_core::bail!("ZipMap of output `{}` reads nothing", output.name);
        };
        let definition = Definition { node, opset: 0 };
        let classes = match Labels::read(definition, "classlabels_int64s")? {
            Labels::Ints(ints) => ints.iter().map(i64::to_string).collect(),
            Labels::Texts(texts) => texts.iter().map(|text| String::from(&**text)).collect(),
        };
        zipped.push(ZippedOutput {
            output: output.name.clone(),
            tensor: tensor.clone(),
            classes,
            is_listed: graph.output.iter().any(|one| one.name == *tensor),
        });
    }
    Ok(zipped)
}

// === impl ZippedOutput ===

impl ZippedOutput {
    /// The tensor as an output of the graph.
    pub(in crate::networks::onnx) fn info(&self) -> ValueInfoProto {
        let open = DimensionProto { value: None };
        let classes = DimensionProto {
            value: i64::try_from(self.classes.len()).ok(),
        };
        ValueInfoProto {
            name: self.tensor.clone(),
            r#type: Some(TypeProto {
                tensor_type: Some(TensorTypeProto {
                    elem_type: FLOAT,
                    shape: Some(ShapeProto {
                        dim: vec![open, classes],
                    }),
                }),
            }),
        }
    }
}

/// Bytes that, appended to a file, make these tensors outputs of its graph too: messages that are
/// concatenated are merged. None if there is nothing to add.
pub(in crate::networks::onnx) fn appended_outputs(zipped: &[ZippedOutput]) -> Vec<u8> {
    let mut output: Vec<ValueInfoProto> = Vec::new();
    for one in zipped.iter().filter(|one| !one.is_listed) {
        // Two maps may read the same tensor.
        if output.iter().all(|known| known.name != one.tensor) {
            output.push(one.info());
        }
    }
    if output.is_empty() {
        return Vec::new();
    }
    let graph = GraphOutline {
        output,
        ..GraphOutline::default()
    };
    ModelOutline { graph: Some(graph) }.encode_to_vec()
}
