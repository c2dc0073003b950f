//! The nodes that this engine does not run, as a file of their own.
//!
//! Their messages are copied as they are: nodes, the weights that they read, and the outputs that they make. Their
//! inputs are images, by name.

use std::collections::HashSet;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::draft::Draft;
use crate::networks::onnx::fields::fields;
use crate::networks::onnx::proto::{
    DimensionProto, NodeOutline, ShapeProto, TensorOutline, TensorTypeProto, TypeProto,
    ValueInfoProto,
};

/// Fields of a model and of a graph.
const GRAPH: u32 = 7;
const NODE: u32 = 1;
const INITIALIZER: u32 = 5;
const INPUT: u32 = 11;
const OUTPUT: u32 = 12;
const VALUE_INFO: u32 = 13;

/// Element type of real numbers.
const FLOAT: i32 = 1;

/// The file of the nodes that a draft lacks.
///
/// # Errors
/// It is no ONNX file.
pub(super) fn cut(file: &[u8], draft: &Draft<'_>) -> Result<Vec<u8>, String> {
    let mut cut = Vec::new();
    for field in fields(file) {
        let field = field?;
        match field.number {
            GRAPH => {
                let graph = graph(field.content, draft)?;
                append(GRAPH, &graph, &mut cut);
            }
            _ => cut.extend_from_slice(field.whole),
        }
    }
    Ok(cut)
}

fn graph(bytes: &[u8], draft: &Draft<'_>) -> Result<Vec<u8>, String> {
    let text = |error: prost::DecodeError| error.to_string();
    let (mut cut, mut read) = (Vec::new(), HashSet::new());
    let mut at = 0;
    for field in fields(bytes) {
        let field = field?;
        if field.number == NODE {
            if draft.others.contains(&at) {
                let node = NodeOutline::decode(field.content).map_err(text)?;
                read.extend(node.input);
                cut.extend_from_slice(field.whole);
            }
            at += 1;
        }
    }
    for field in fields(bytes) {
        let field = field?;
        let is_kept = match field.number {
            INITIALIZER => {
                let weight = TensorOutline::decode(field.content).map_err(text)?;
                read.contains(&weight.name)
            }
            OUTPUT => {
                let output = ValueInfoProto::decode(field.content).map_err(text)?;
                !draft.makes(&output.name)
            }
            NODE | INPUT | VALUE_INFO => false,
            _ => true,
        };
        if is_kept {
            cut.extend_from_slice(field.whole);
        }
    }
    for (name, image) in &draft.given {
        if read.contains(*name) {
            let info = info(name, draft, *image);
            append(INPUT, &info.encode_to_vec(), &mut cut);
        }
    }
    Ok(cut)
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

/// Appends a field.
fn append(number: u32, content: &[u8], to: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, to);
    encode_varint(content.len() as u64, to);
    to.extend_from_slice(content);
}
