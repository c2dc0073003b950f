//! A product with a weight of the file, and the bias behind it.

use std::collections::{HashMap, HashSet};

use candle_core::Result;
use switchyard_kernels::PackedLinear;

use crate::networks::onnx::elements;
use crate::networks::onnx::proto::{GraphOutline, NodeOutline, NodeProto, TensorProto};
use crate::ops::tensors::kernel_error;

/// Element type of real numbers.
const FLOAT: i32 = 1;

/// Fewest values of a weight.
const WEIGHT_MIN: usize = 16 * 1024;

/// Fewest values of a row's result.
const OUTPUT_MIN: usize = 16;

/// The constants of a file, by name.
pub(super) type Constants<'a> = HashMap<&'a str, &'a TensorProto>;

/// A linear map of rows of `input` values to rows of `output`.
#[derive(Clone, Copy)]
pub(super) struct LinearMap<'a> {
    weight: &'a TensorProto,
    /// Whether the weight is `[output, input]`.
    is_transposed: bool,
    is_gemm: bool,
    bias: Option<&'a TensorProto>,
    input: usize,
    output: usize,
}

// === impl LinearMap ===

impl<'a> LinearMap<'a> {
    /// That of a node's first input; none if the node is no product with a constant.
    pub(super) fn of(node: &NodeProto, constants: &Constants<'a>) -> Option<Self> {
        if !is_standard(node) {
            return None;
        }
        let constant = |at: usize| real(constants, node.input.get(at)?);
        let weight = constant(1)?;
        let &[first, second] = weight.dims.as_slice() else {
            return None;
        };
        let is_gemm = node.op_type == "Gemm";
        let is_transposed = is_gemm && int(node, "transB") != 0;
        let [input, output] = match is_transposed {
            true => [second, first],
            false => [first, second],
        };
        let map = Self {
            weight,
            is_transposed,
            is_gemm,
            bias: None,
            input: usize::try_from(input).ok()?,
            output: usize::try_from(output).ok()?,
        };
        match &*node.op_type {
            "MatMul" => Some(map),
            "Gemm" if int(node, "transA") != 0 || factor(node, "alpha") != 1.0 => None,
            "Gemm" if node.input.get(2).is_none_or(String::is_empty) => Some(map),
            "Gemm" if factor(node, "beta") != 1.0 => None,
            "Gemm" => map.plus(constant(2)?, 2),
            _ => None,
        }
    }

    /// With the bias that a node adds to the map's result, `of`.
    pub(super) fn with_bias(
        self,
        node: &NodeProto,
        of: &str,
        constants: &Constants<'a>,
    ) -> Option<Self> {
        // Version 6 has attributes for the axes of the sum.
        if !is_standard(node) || !node.attribute.is_empty() {
            return None;
        }
        match (&*node.op_type, node.input.as_slice()) {
            ("Add", [a, b]) if a == of => self.plus(real(constants, b)?, 1),
            ("Add", [a, b]) if b == of => self.plus(real(constants, a)?, 1),
            _ => None,
        }
    }

    /// With a bias of this rank at most: more axes could be axes of the sum.
    fn plus(self, bias: &'a TensorProto, rank_max: usize) -> Option<Self> {
        let (&last, others) = bias.dims.split_last()?;
        let is_row = usize::try_from(last) == Ok(self.output) && others.iter().all(|&d| d == 1);
        let fits = is_row && others.len() < rank_max && self.bias.is_none();
        fits.then_some(Self {
            bias: Some(bias),
            ..self
        })
    }

    /// Whether a product takes longer than a step of this engine, and its weights fill vectors.
    pub(super) fn is_large(&self) -> bool {
        is_large([self.input, self.output])
    }

    /// The rank of its input; none if any will do.
    pub(super) fn rank(&self) -> Option<usize> {
        self.is_gemm.then_some(2)
    }

    /// Its constants by name: maps of the same ones are equal.
    pub(super) fn names(&self) -> (&'a str, Option<&'a str>, bool) {
        let bias = self.bias.map(|bias| &*bias.name);
        (&self.weight.name, bias, self.is_transposed)
    }

    /// # Errors
    /// A constant has not the values of its shape.
    pub(super) fn pack(&self) -> Result<PackedLinear> {
        let (input, output) = (self.input, self.output);
        let weight = elements::weights(self.weight)?;
        let mut rows = match self.is_transposed {
            false => weight,
            true => {
                let mut rows = vec![0.0; weight.len()];
                for (column, weight) in weight.chunks_exact(input.max(1)).enumerate() {
                    for (row, value) in weight.iter().enumerate() {
                        rows[row * output + column] = *value;
                    }
                }
                rows
            }
        };
        match self.bias {
            Some(bias) => rows.extend(elements::weights(bias)?),
            None => rows.resize(rows.len() + output, 0.0),
        }
        PackedLinear::new(&rows, [input, output]).map_err(kernel_error)
    }
}

fn is_standard(node: &NodeProto) -> bool {
    matches!(&*node.domain, "" | "ai.onnx")
}

/// A constant of real numbers in this file.
fn real<'a>(constants: &Constants<'a>, name: &str) -> Option<&'a TensorProto> {
    let constant = constants.get(name).copied();
    constant.filter(|one| one.data_type == FLOAT && one.data_location == 0)
}

fn is_large([input, output]: [usize; 2]) -> bool {
    output >= OUTPUT_MIN && input.saturating_mul(output) >= WEIGHT_MIN
}

fn int(node: &NodeProto, name: &str) -> i64 {
    let mut attributes = node.attribute.iter();
    attributes
        .find(|one| one.name == name)
        .map_or(0, |one| one.i)
}

fn factor(node: &NodeProto, name: &str) -> f32 {
    let mut attributes = node.attribute.iter();
    attributes
        .find(|one| one.name == name)
        .map_or(1.0, |one| one.f)
}

/// Whether a graph may have a large map, without a look at attributes.
pub(super) fn may_have(graph: &GraphOutline) -> bool {
    let weights = graph.initializer.iter().filter(|weight| {
        let sizes = weight.dims.iter().map(|&size| usize::try_from(size).ok());
        let sizes: Option<Vec<usize>> = sizes.collect();
        let is_large =
            matches!(sizes.as_deref(), Some(&[a, b]) if is_large([a, b]) || is_large([b, a]));
        weight.data_type == FLOAT && is_large
    });
    let weights: HashSet<&str> = weights.map(|weight| &*weight.name).collect();
    let is_map = |node: &NodeOutline| {
        let is_product = matches!(&*node.op_type, "MatMul" | "Gemm");
        is_product
            && node
                .input
                .get(1)
                .is_some_and(|name| weights.contains(&**name))
    };
    graph.node.iter().any(is_map)
}
