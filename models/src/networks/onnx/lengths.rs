//! The lengths in a file: each field ends within its message. The engine inside this program reserves
//! memory for a length before it looks for the bytes, which would end the process.

use prost::encoding::{WireType, decode_key, decode_varint};

/// Graphs inside of graphs, with the messages between them.
const DEPTH_MAX: u32 = 64;

/// A message whose fields are looked at.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Value,
    Type,
    TensorType,
    Sequence,
    Shape,
    /// Without messages inside.
    Plain,
}

// === impl Kind ===

impl Kind {
    /// The message in a field; none for a text, bytes or packed numbers.
    fn inside(self, field: u32) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Graph, 1) => Self::Node,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) => Self::Tensor,
            (Self::Graph, 11..=13) => Self::Value,
            (Self::Node, 5) => Self::Attribute,
            (Self::Value, 2) | (Self::Sequence, 1) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::Type, 4) => Self::Sequence,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Model, 8 | 14) | (Self::Tensor, 13) | (Self::Shape, 1) => Self::Plain,
            _ => return None,
        })
    }
}

/// # Errors
/// The first message with a field that does not fit.
pub(super) fn check(file: &[u8]) -> Result<(), String> {
    message(file, Kind::Model, 0)
}

fn message(bytes: &[u8], kind: Kind, depth: u32) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("messages are nested more than {DEPTH_MAX} deep"));
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut = || {
            format!(
                "a field is longer than its message of {} bytes",
                bytes.len()
            )
        };
        let (field, wire_type) = decode_key(&mut rest).map_err(|error| error.to_string())?;
        let length = match wire_type {
            WireType::Varint => {
                decode_varint(&mut rest).map_err(|error| error.to_string())?;
                0
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                decode_varint(&mut rest).map_err(|error| error.to_string())?
            }
            WireType::StartGroup | WireType::EndGroup => {
                return Err("it has a group, which no ONNX file has".to_owned());
            }
        };
        let length = usize::try_from(length).map_err(|_| cut())?;
        let (content, after) = rest.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        if let (WireType::LengthDelimited, Some(inside)) = (wire_type, kind.inside(field)) {
            message(content, inside, depth + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_ends_within_its_message() {
        // A model with a graph with a node with a name of 3 bytes.
        let file = [0x3a, 7, 0x0a, 5, 0x1a, 3, b'a', b'b', b'c'];
        assert_eq!(check(&file), Ok(()));
        for (at, length) in [(1, 8), (3, 6), (5, 4)] {
            let mut long = file.to_vec();
            long[at] = length;
            let error = check(&long).unwrap_err();
            assert!(error.contains("longer than its message"), "{at}: {error}");
        }
        let error = check(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f]).unwrap_err();
        assert!(error.contains("longer than its message"), "{error}");
    }

    #[test]
    fn graphs_are_not_nested_without_an_end() {
        let mut graph = Vec::new();
        for _ in 0..200 {
            for field in [0x32, 0x2a, 0x0a] {
                let mut around = vec![field];
                prost::encoding::encode_varint(graph.len() as u64, &mut around);
                around.extend(&graph);
                graph = around;
            }
        }
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(graph.len() as u64, &mut file);
        file.extend(graph);
        assert!(check(&file).unwrap_err().contains("nested"));
    }
}
