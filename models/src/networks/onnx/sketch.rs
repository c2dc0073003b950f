//! A file without its large weights.

use prost::Message;

use super::fields::fields;
use super::proto::{
    GraphProto, ModelProto, NodeProto, OpsetProto, TensorOutline, TensorProto, ValueInfoProto,
};

/// Values up to which a weight is read: those of shapes, axes and scales.
const READ_MAX: i64 = 64;

/// Reads a file; large weights have a shape and no values.
///
/// # Errors
/// It is no ONNX file.
pub(super) fn read(file: &[u8]) -> Result<ModelProto, String> {
    let mut model = ModelProto::default();
    for field in fields(file) {
        let field = field?;
        match field.number {
            7 => model.graph = Some(graph(field.content)?),
            8 => model
                .opset_import
                .push(decoded::<OpsetProto>(field.content)?),
            _ => {}
        }
    }
    Ok(model)
}

fn graph(bytes: &[u8]) -> Result<GraphProto, String> {
    let mut graph = GraphProto::default();
    for field in fields(bytes) {
        let field = field?;
        match field.number {
            1 => graph.node.push(decoded::<NodeProto>(field.content)?),
            5 => graph.initializer.push(weight(field.content)?),
            11 => graph.input.push(decoded::<ValueInfoProto>(field.content)?),
            12 => graph.output.push(decoded::<ValueInfoProto>(field.content)?),
            _ => {}
        }
    }
    Ok(graph)
}

fn weight(bytes: &[u8]) -> Result<TensorProto, String> {
    let outline = decoded::<TensorOutline>(bytes)?;
    let count = outline.dims.iter();
    let count = count.fold(1i64, |all, &size| all.saturating_mul(size.max(0)));
    if count <= READ_MAX {
        return decoded(bytes);
    }
    Ok(TensorProto {
        dims: outline.dims,
        data_type: outline.data_type,
        name: outline.name,
        data_location: outline.data_location,
        ..TensorProto::default()
    })
}

fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    M::decode(bytes).map_err(|error| error.to_string())
}

// === impl ModelProto ===

impl ModelProto {
    /// The first operator whose odd zeros are before an image.
    pub(super) fn padded_lower(&self) -> Option<&str> {
        let mut nodes = self.graph.iter().flat_map(|graph| &graph.node);
        let is_lower = |node: &&NodeProto| {
            let mut attributes = node.attribute.iter();
            attributes.any(|one| one.name == "auto_pad" && &*one.s == b"SAME_LOWER")
        };
        nodes.find(is_lower).map(|node| node.op_type.as_str())
    }
}
