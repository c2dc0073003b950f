//! The header of an ONNX file: inputs, outputs, and the size of its weights.
//!
//! Attributes and the weights themselves are skipped without being copied. Engines check the graph.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use prost::Message;

use super::classic::{self, ZippedOutput};
use super::engine::OwnEngine;
use super::proto::{DimensionProto, ModelOutline, NodeOutline, ValueInfoProto};
use super::{images, lengths, library, linear};
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::weights::mapped_file::FileBytes;

/// The interface of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphHeader {
    pub(crate) inputs: Vec<GraphTensor>,
    pub(crate) outputs: Vec<GraphTensor>,
    /// For each output the operator that makes its values.
    pub(crate) makers: Vec<Option<String>>,
    pub(crate) engine: OwnEngine,
    /// Its outputs that are maps; the tensors that the maps are made from are among `outputs`.
    pub(super) zipped: Vec<ZippedOutput>,
    /// Whether it has convolutions.
    pub(crate) convolves: bool,
    /// Values in its weights.
    pub(crate) parameters: u64,
    /// Bytes of these values.
    pub(crate) weight_bytes: u64,
    /// A weight whose values are in another file.
    elsewhere: Option<String>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphTensor {
    pub(crate) name: String,
    pub(crate) element: ElementType,
    /// Dimensions, `None` for one that is left open; no shape if the file has none.
    pub(crate) shape: Option<Vec<Option<usize>>>,
}

/// Type of a tensor's values, as `TensorProto.DataType` numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElementType(pub(crate) i32);

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

/// Memory of a classic model in onnxruntime, in times of its file: 435 MB for a forest of 44.8 MB.
/// The engine in this program takes less than the file.
const ONNXRUNTIME_TIMES: u64 = 10;

/// Types newer than [`ELEMENTS`] have 8 bits or fewer.
const NEWER_BITS: u64 = 8;

// === impl ElementType ===

impl ElementType {
    /// The type on the wire; `None` for one that cannot be sent.
    pub(crate) fn datatype(self) -> Option<Datatype> {
        let datatype = match self.0 {
            1 => Datatype::Fp32,
            2 => Datatype::Uint8,
            3 => Datatype::Int8,
            4 => Datatype::Uint16,
            5 => Datatype::Int16,
            6 => Datatype::Int32,
            7 => Datatype::Int64,
            8 => Datatype::Bytes,
            9 => Datatype::Bool,
            10 => Datatype::Fp16,
            11 => Datatype::Fp64,
            12 => Datatype::Uint32,
            13 => Datatype::Uint64,
            16 => Datatype::Bf16,
            _ => return None,
        };
        Some(datatype)
    }

    fn known(self) -> Option<(&'static str, u64)> {
        let at = usize::try_from(self.0).ok()?;
        ELEMENTS.get(at).copied()
    }

    /// The bits of a number of this type; none for texts and types that are not known.
    pub(super) fn number_bits(self) -> Option<u64> {
        let (_, bits) = self.known()?;
        (bits > 0).then_some(bits)
    }

    fn bits(self) -> u64 {
        self.known().map_or(NEWER_BITS, |(_, bits)| bits)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "element type {}", self.0),
        }
    }
}

impl fmt::Display for GraphTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.name)?;
        let Some(shape) = &self.shape else {
            return f.write_str("of unknown shape");
        };
        let sizes = shape.iter().map(|size| match size {
            Some(size) => size.to_string(),
            None => "?".to_owned(),
        });
        write!(f, "[{}]", sizes.collect::<Vec<_>>().join(", "))
    }
}

// === impl GraphHeader ===

impl GraphHeader {
    /// The header of a graph that can be run: with all weights in the file.
    pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Self, ModelError> {
        let header = Self::parse_outline(file, bytes)?;
        match &header.elsewhere {
            None => Ok(header),
            Some(weight) => {
                let reason =
                    "has its values in another file: `switchyard add` makes one file of both";
                Err(ModelError::tensor(file, weight, reason))
            }
        }
    }

    /// The header of a graph whose weights may be in other files.
    fn parse_outline(file: &Path, bytes: &[u8]) -> Result<Self, ModelError> {
        let no_onnx = |error: &dyn fmt::Display| {
            ModelError::weights(file, format!("not an ONNX file: {error}"))
        };
        lengths::check(bytes).map_err(|error| no_onnx(&error))?;
        let model = ModelOutline::decode(bytes).map_err(|error| no_onnx(&error))?;
        let Some(mut graph) = model.graph else {
            return Err(ModelError::weights(
                file,
                "not an ONNX file: it has no graph",
            ));
        };
        let (mut parameters, mut bits) = (0u64, 0u64);
        for weight in &graph.initializer {
            let sizes = weight.dims.iter().map(|&size| u64::try_from(size));
            let count = sizes.fold(1, |all: u64, size| all.saturating_mul(size.unwrap_or(0)));
            parameters = parameters.saturating_add(count);
            bits = bits.saturating_add(count.saturating_mul(ElementType(weight.data_type).bits()));
        }
        let mut weights = graph.initializer.iter();
        let elsewhere = weights.find(|weight| weight.data_location != 0);
        let elsewhere = elsewhere.map(|weight| weight.name.clone());
        let classic = classic::is_classic(&graph);
        let convolves = graph.node.iter().any(|node| node.op_type == "Conv");
        let has_maps = graph.output.iter().any(is_map);
        let zipped = match classic && has_maps {
            true => classic::zipped_outputs(bytes).map_err(|error| no_onnx(&error))?,
            false => Vec::new(),
        };
        replace_maps(&mut graph.output, &zipped);
        // Before version 4 of the format, weights are listed among the inputs too.
        let weights: HashSet<&str> = graph.initializer.iter().map(|w| w.name.as_str()).collect();
        let inputs = graph.input.iter();
        let inputs = inputs.filter(|input| !weights.contains(input.name.as_str()));
        let suits = |found: Result<bool, String>| found.map_err(|error| no_onnx(&error));
        let engine = match classic {
            true => OwnEngine::Classic,
            false if convolves && suits(images::suits(bytes))? => OwnEngine::Images,
            false if suits(linear::suits(bytes, &graph))? => OwnEngine::Linear,
            false => OwnEngine::Embedded,
        };
        Ok(Self {
            engine,
            zipped,
            inputs: inputs
                .map(|one| graph_tensor(file, one))
                .collect::<Result<_, _>>()?,
            outputs: graph
                .output
                .iter()
                .map(|one| graph_tensor(file, one))
                .collect::<Result<_, _>>()?,
            makers: graph
                .output
                .iter()
                .map(|output| maker(&graph.node, &output.name))
                .collect(),
            convolves,
            parameters,
            weight_bytes: match classic {
                // Its numbers are attributes, which onnxruntime spreads out.
                true => (bytes.len() as u64).saturating_mul(match library::environment() {
                    Ok(_) => ONNXRUNTIME_TIMES,
                    Err(_) => 1,
                }),
                false => bits.div_ceil(8),
            },
            elsewhere,
        })
    }
}

fn is_map(output: &ValueInfoProto) -> bool {
    let kind = output.r#type.as_ref();
    kind.is_none_or(|kind| kind.tensor_type.is_none())
}

/// Replaces maps by the tensors that they are made from.
fn replace_maps(outputs: &mut Vec<ValueInfoProto>, zipped: &[ZippedOutput]) {
    let found = |output: &ValueInfoProto| zipped.iter().find(|zip| zip.output == output.name);
    outputs.retain(|output| found(output).is_none_or(|zip| !zip.is_listed));
    for output in outputs {
        if let Some(zip) = found(output) {
            *output = zip.info();
        }
    }
}

/// The operator that makes a tensor's values; those that only rename or reshape it are passed over.
fn maker(nodes: &[NodeOutline], output: &str) -> Option<String> {
    let mut name = output;
    // A graph has no circles; a file may.
    for _ in 0..nodes.len() {
        let makes = |node: &&NodeOutline| node.output.iter().any(|made| made == name);
        let node = nodes.iter().rev().find(makes)?;
        let passes = PASSING.contains(&node.op_type.as_str());
        match node.input.first().filter(|_| passes) {
            Some(input) => name = input,
            None => return Some(node.op_type.clone()),
        }
    }
    None
}

/// Operators that change the type or shape of values, not their meaning.
const PASSING: [&str; 6] = [
    "Identity",
    "Cast",
    "Flatten",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
];

/// Reads the header of a card's graph; its file is next to the card.
pub(crate) fn read_header(card: &Path, weights: &str) -> Result<GraphHeader, ModelError> {
    read(&card.with_file_name(weights), GraphHeader::parse)
}

/// Reads the header of a graph whose weights may be in other files.
pub(crate) fn read_outline(file: &Path) -> Result<GraphHeader, ModelError> {
    read(file, GraphHeader::parse_outline)
}

fn read(
    file: &Path,
    parse: impl Fn(&Path, &[u8]) -> Result<GraphHeader, ModelError>,
) -> Result<GraphHeader, ModelError> {
    let (bytes, before) = FileBytes::open(file)?;
    let header = parse(file, &bytes)?;
    before.unchanged(file)?;
    Ok(header)
}

fn graph_tensor(file: &Path, info: &ValueInfoProto) -> Result<GraphTensor, ModelError> {
    let of_tensor = info
        .r#type
        .as_ref()
        .and_then(|kind| kind.tensor_type.as_ref());
    let Some(kind) = of_tensor else {
        let reason = "is no tensor: sequences, maps and optional values cannot be served";
        return Err(ModelError::tensor(file, &info.name, reason));
    };
    // Some exporters write 0 or -1 for an open dimension.
    let size = |dimension: &DimensionProto| {
        let size = dimension.value.filter(|&size| size > 0)?;
        usize::try_from(size).ok()
    };
    Ok(GraphTensor {
        name: info.name.clone(),
        element: ElementType(kind.elem_type),
        shape: kind
            .shape
            .as_ref()
            .map(|shape| shape.dim.iter().map(size).collect()),
    })
}
