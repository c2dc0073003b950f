//! The nodes that this engine runs: those from the graph's input up to the first that it does not know, on every
//! path.

use std::collections::HashSet;

use super::fuse::fuse;
use super::known::Known;
use super::node::{Extent, Node};
use super::operation::Operation;
use super::operators::{operations, renamed};
use crate::networks::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};

/// Operators whose graphs may read any value.
const WITH_GRAPHS: [&str; 4] = ["If", "Loop", "Scan", "SequenceMap"];

/// Operators that take most of the time.
const PRODUCTS: [&str; 4] = ["Conv", "ConvTranspose", "Gemm", "MatMul"];

/// The operations of a graph.
pub(super) struct Draft<'a> {
    /// Each after those that make its inputs. Image 0 is the graph's input.
    pub(super) operations: Vec<Operation<'a>>,
    pub(super) extents: Vec<Extent>,
    /// Of the graph's images: 4, or 3 for sequences.
    pub(super) rank: usize,
    /// The images that the graph's outputs or other nodes are, by name.
    pub(super) given: Vec<(&'a str, usize)>,
    /// The nodes that are not among the operations.
    pub(super) others: HashSet<usize>,
}

// === impl Draft ===

impl<'a> Draft<'a> {
    /// None: it would have less than half of the graph's products.
    pub(super) fn new(model: &'a ModelProto) -> Option<Self> {
        let graph = model.graph.as_ref()?;
        let mut known = Known::new(graph)?;
        let (mut found, mut others) = (Vec::new(), HashSet::new());
        let (mut products, mut of_others) = (0, 0);
        for (at, proto) in graph.node.iter().enumerate() {
            if WITH_GRAPHS.contains(&&*proto.op_type) {
                return None;
            }
            let rank = known.rank;
            let node = Node { proto, rank };
            let is_product = usize::from(PRODUCTS.contains(&&*proto.op_type));
            products += is_product;
            if let Some(image) = renamed(node, &known) {
                known.name(node.output()?, image)?;
            } else if let Some(made) = operations(node, &known) {
                for (kind, inputs, extent, name) in made {
                    let output = known.add(name, extent)?;
                    found.push(Operation {
                        kind,
                        inputs,
                        output,
                    });
                }
            } else {
                if let Some((name, value)) = constant(proto) {
                    known.add_constant(name, value)?;
                }
                of_others += is_product;
                others.insert(at);
            }
        }
        if products == 0 || 2 * of_others > products {
            return None;
        }
        let given = given(graph, &known, &others);
        Some(Self {
            operations: fuse(needed(found, &given), &given),
            extents: known.extents,
            rank: known.rank,
            given,
            others,
        })
    }

    /// Whether an output of the graph is among its images.
    pub(super) fn makes(&self, output: &str) -> bool {
        self.given.iter().any(|(name, _)| *name == output)
    }
}

/// The tensor of a `Constant`, with its name.
fn constant(node: &NodeProto) -> Option<(&str, &TensorProto)> {
    let is_constant = node.op_type == "Constant";
    let value = node.attribute.iter().filter(|_| is_constant);
    let value = value.filter_map(|one| one.t.as_ref()).next()?;
    Some((node.output.first()?, value))
}

/// The images that are outputs, or that other nodes read.
fn given<'a>(
    graph: &'a GraphProto,
    known: &Known<'a>,
    others: &HashSet<usize>,
) -> Vec<(&'a str, usize)> {
    let outputs = graph.output.iter().map(|output| output.name.as_str());
    let nodes = graph.node.iter().enumerate();
    let nodes = nodes.filter(|(at, _)| others.contains(at));
    let read = nodes.flat_map(|(_, node)| node.input.iter().map(String::as_str));
    let mut seen = HashSet::new();
    outputs
        .chain(read)
        .filter(|name| seen.insert(*name))
        .filter_map(|name| Some((name, known.find(name)?)))
        .collect()
}

/// The operations whose results something reads.
fn needed<'a>(operations: Vec<Operation<'a>>, given: &[(&str, usize)]) -> Vec<Operation<'a>> {
    let mut read: HashSet<usize> = given.iter().map(|(_, image)| *image).collect();
    let mut kept: Vec<Operation<'a>> = Vec::new();
    for operation in operations.into_iter().rev() {
        if read.contains(&operation.output) {
            read.extend(&operation.inputs);
            kept.push(operation);
        }
    }
    kept.reverse();
    kept
}
