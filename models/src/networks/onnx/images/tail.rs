//! The nodes that this engine does not run, as a graph of their own. Its inputs are images, by name.

use std::collections::HashSet;

use super::draft::Draft;
use crate::networks::graph::Port;
use crate::networks::onnx::cut::Cut;
use crate::networks::onnx::proto::{
    DimensionProto, ModelProto, ShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

/// Element type of real numbers.
const FLOAT: i32 = 1;

/// The nodes of a model that a draft lacks, up to the outputs that they make.
pub(super) fn tail(draft: &Draft<'_>, model: &ModelProto, outputs: &[Port]) -> Cut {
    let nodes = model.graph.iter().flat_map(|graph| &graph.node).enumerate();
    let nodes = nodes.filter(|(at, _)| draft.others.contains(at));
    let read: HashSet<&str> = nodes
        .flat_map(|(_, node)| node.input.iter().map(String::as_str))
        .collect();
    let inputs = draft.given.iter().filter(|(name, _)| read.contains(name));
    let made = |info: &&ValueInfoProto| outputs.iter().any(|port| *port.name == *info.name);
    let declared = model.graph.iter().flat_map(|graph| &graph.output);
    Cut {
        nodes: draft.others.clone(),
        inputs: inputs.map(|(name, at)| info(name, draft, *at)).collect(),
        outputs: declared.filter(made).cloned().collect(),
    }
}

/// An image as an input; its batch is open.
fn info(name: &str, draft: &Draft<'_>, image: usize) -> ValueInfoProto {
    let [channels, height, width] = draft.extents[image];
    let sizes = match draft.rank {
        3 => vec![channels, width],
        _ => vec![channels, height, width],
    };
    let sizes = sizes.into_iter().map(|size| i64::try_from(size).ok());
    let dimensions = std::iter::once(None).chain(sizes);
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: FLOAT,
                shape: Some(ShapeProto {
                    dim: dimensions.map(|value| DimensionProto { value }).collect(),
                }),
            }),
        }),
    }
}
