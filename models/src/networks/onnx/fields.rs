//! The fields of a file's messages, as slices of the file.

use prost::encoding::{WireType, decode_key, decode_varint};

/// A message whose fields are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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

/// A field of a message.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    is_delimited: bool,
    /// With its key and length.
    pub(super) whole: &'a [u8],
    pub(super) content: &'a [u8],
}

// === impl Kind ===

impl Kind {
    /// The message in a field; none for a text, bytes or packed numbers.
    pub(super) fn inside(self, field: u32) -> Option<Self> {
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

// === impl Field ===

impl Field<'_> {
    /// The message in this field of a message.
    pub(super) fn message(&self, of: Kind) -> Option<Kind> {
        of.inside(self.number).filter(|_| self.is_delimited)
    }
}

/// The fields of a message; the last one is an error if it does not fit.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field<'_>, String>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(message.len(), rest);
        rest = match &field {
            Ok((_, after)) => after,
            Err(_) => &[],
        };
        Some(field.map(|(field, _)| field))
    })
}

/// The first field, and the bytes after it.
fn next(message: usize, bytes: &[u8]) -> Result<(Field<'_>, &[u8]), String> {
    let cut = || format!("a field is longer than its message of {message} bytes");
    let mut rest = bytes;
    let (number, wire_type) = decode_key(&mut rest).map_err(|error| error.to_string())?;
    let length = match wire_type {
        WireType::Varint => {
            decode_varint(&mut rest).map_err(|error| error.to_string())?;
            0
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => decode_varint(&mut rest).map_err(|error| error.to_string())?,
        WireType::StartGroup | WireType::EndGroup => {
            return Err("it has a group, which no ONNX file has".to_owned());
        }
    };
    let length = usize::try_from(length).map_err(|_| cut())?;
    let (content, after) = rest.split_at_checked(length).ok_or_else(cut)?;
    let field = Field {
        number,
        is_delimited: wire_type == WireType::LengthDelimited,
        whole: &bytes[..bytes.len() - after.len()],
        content,
    };
    Ok((field, after))
}
