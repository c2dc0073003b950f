//! What an ONNX file says of itself: inputs, outputs, and how large its weights are.
//!
//! Only the fields below are looked at, with the numbers that `onnx.proto` gives them; what is not
//! named here, such as the weights themselves, is passed over without being copied. The whole graph
//! is for onnxruntime to check.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use prost::Message;

use crate::error::ModelError;

/// The interface of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
    /// Numbers in its weights.
    pub(crate) parameters: u64,
    /// Bytes that these take.
    pub(crate) weight_bytes: u64,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) element: Element,
    /// Dimensions, none for one that is left open; no shape where the file has none.
    pub(crate) shape: Option<Vec<Option<usize>>>,
}

/// Type of a tensor's numbers, as `TensorProto.DataType` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element(i32);

/// Names and bits of the types, by number.
const ELEMENTS: [(&str, u64); 17] = [
    ("UNDEFINED", 0),
    ("FLOAT", 32),
    ("UINT8", 8),
    ("INT8", 8),
    ("UINT16", 16),
    ("INT16", 16),
    ("INT32", 32),
    ("INT64", 64),
    ("STRING", 0),
    ("BOOL", 8),
    ("FLOAT16", 16),
    ("DOUBLE", 64),
    ("UINT32", 32),
    ("UINT64", 64),
    ("COMPLEX64", 64),
    ("COMPLEX128", 128),
    ("BFLOAT16", 16),
];

/// What is newer than [`ELEMENTS`] has 8 bits or fewer.
const NEWER_BITS: u64 = 8;

// === impl Element ===

impl Element {
    pub(crate) const FLOAT: Self = Self(1);
    pub(crate) const INT64: Self = Self(7);

    fn known(self) -> Option<(&'static str, u64)> {
        let at = usize::try_from(self.0).ok()?;
        ELEMENTS.get(at).copied()
    }

    fn bits(self) -> u64 {
        self.known().map_or(NEWER_BITS, |(_, bits)| bits)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "element type {}", self.0),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.name)?;
        let Some(shape) = &self.shape else {
            return f.write_str("of a shape that is not said");
        };
        let sizes = shape.iter().map(|size| match size {
            Some(size) => size.to_string(),
            None => "?".to_owned(),
        });
        write!(f, "[{}]", sizes.collect::<Vec<_>>().join(", "))
    }
}

// === impl Header ===

impl Header {
    pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Self, ModelError> {
        let model = ModelProto::decode(bytes)
            .map_err(|error| ModelError::weights(file, format!("no ONNX file: {error}")))?;
        let Some(graph) = model.graph else {
            return Err(ModelError::weights(file, "no ONNX file: it has no graph"));
        };
        let (mut parameters, mut bits) = (0u64, 0u64);
        for weight in &graph.initializer {
            if weight.data_location != 0 {
                let reason = "keeps its numbers in another file: save the graph as one file";
                return Err(ModelError::tensor(file, &weight.name, reason));
            }
            let sizes = weight.dims.iter().map(|&size| u64::try_from(size));
            let count = sizes.fold(1, |all: u64, size| all.saturating_mul(size.unwrap_or(0)));
            parameters = parameters.saturating_add(count);
            bits = bits.saturating_add(count.saturating_mul(Element(weight.data_type).bits()));
        }
        // Before version 4 of the format, weights are listed among the inputs too.
        let weights: HashSet<&str> = graph.initializer.iter().map(|w| w.name.as_str()).collect();
        let inputs = graph.input.iter();
        let inputs = inputs.filter(|input| !weights.contains(input.name.as_str()));
        Ok(Self {
            inputs: inputs
                .map(|one| tensor(file, one))
                .collect::<Result<_, _>>()?,
            outputs: graph
                .output
                .iter()
                .map(|one| tensor(file, one))
                .collect::<Result<_, _>>()?,
            parameters,
            weight_bytes: bits.div_ceil(8),
        })
    }
}

fn tensor(file: &Path, info: &ValueInfoProto) -> Result<Tensor, ModelError> {
    let of_tensor = info
        .r#type
        .as_ref()
        .and_then(|kind| kind.tensor_type.as_ref());
    let Some(kind) = of_tensor else {
        let reason = "is no tensor: sequences, maps and optional values cannot be served";
        return Err(ModelError::tensor(file, &info.name, reason));
    };
    // Some exporters write 0 or -1 where a dimension is open.
    let size = |dimension: &DimensionProto| {
        let size = dimension.value.filter(|&size| size > 0)?;
        usize::try_from(size).ok()
    };
    Ok(Tensor {
        name: info.name.clone(),
        element: Element(kind.elem_type),
        shape: kind
            .shape
            .as_ref()
            .map(|shape| shape.dim.iter().map(size).collect()),
    })
}

// === onnx.proto ===

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    /// 1: in another file.
    #[prost(int32, tag = "14")]
    data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    r#type: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor_type: Option<TensorTypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<ShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<DimensionProto>,
}

#[derive(Clone, PartialEq, Message)]
struct DimensionProto {
    /// None where the dimension has a name or nothing.
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
}
