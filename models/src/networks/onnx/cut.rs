//! Some nodes of a graph, as a file of their own.
//!
//! Their messages are copied as they are, with those of the weights that they read.

use std::collections::HashSet;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::fields::fields;
use super::proto::{NodeOutline, TensorOutline, ValueInfoProto};

/// Fields of a model and of a graph.
const GRAPH: u32 = 7;
const NODE: u32 = 1;
const INITIALIZER: u32 = 5;
const INPUT: u32 = 11;
const OUTPUT: u32 = 12;
const VALUE_INFO: u32 = 13;

/// A part of a graph.
pub(super) struct Cut {
    /// By their places in the file.
    pub(super) nodes: HashSet<usize>,
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<ValueInfoProto>,
}

// === impl Cut ===

impl Cut {
    /// The file of this part of the graph in `file`.
    ///
    /// # Errors
    /// It is no ONNX file.
    pub(super) fn of(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        let mut cut = Vec::new();
        for field in fields(file) {
            let field = field?;
            match field.number {
                GRAPH => append(GRAPH, &self.graph(field.content)?, &mut cut),
                _ => cut.extend_from_slice(field.whole),
            }
        }
        Ok(cut)
    }

    fn graph(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let text = |error: prost::DecodeError| error.to_string();
        let (mut cut, mut read) = (Vec::new(), HashSet::new());
        let mut at = 0;
        for field in fields(bytes) {
            let field = field?;
            if field.number == NODE {
                if self.nodes.contains(&at) {
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
                NODE | INPUT | OUTPUT | VALUE_INFO => false,
                _ => true,
            };
            if is_kept {
                cut.extend_from_slice(field.whole);
            }
        }
        for info in &self.inputs {
            append(INPUT, &info.encode_to_vec(), &mut cut);
        }
        for info in &self.outputs {
            append(OUTPUT, &info.encode_to_vec(), &mut cut);
        }
        Ok(cut)
    }
}

/// Appends a field.
fn append(number: u32, content: &[u8], to: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, to);
    encode_varint(content.len() as u64, to);
    to.extend_from_slice(content);
}
