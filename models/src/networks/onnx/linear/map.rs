//! A product with a weight of the file, and the bias behind it.

use std::collections::HashMap;

use candle_core::Result;
use switchyard_kernels::PackedLinear;

use crate::networks::onnx::elements;
use crate::networks::onnx::proto::{NodeProto, TensorProto};

/// Element type of real numbers.
const FLOAT: i32 = 1;

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
        if !matches!(&*node.domain, "" | "ai.onnx") {
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

    /// Values of the weight.
    pub(super) fn weights(&self) -> usize {
        self.input.saturating_mul(self.output)
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
        let weight = numbers(self.weight, self.weights())?;
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
            Some(bias) => rows.extend(numbers(bias, output)?),
            None => rows.resize(rows.len() + output, 0.0),
        }
        Ok(PackedLinear::new(&rows, [input, output]))
    }
}

/// A constant of real numbers in this file.
fn real<'a>(constants: &Constants<'a>, name: &str) -> Option<&'a TensorProto> {
    let constant = constants.get(name).copied();
    constant.filter(|one| one.data_type == FLOAT && one.data_location == 0)
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

fn numbers(constant: &TensorProto, count: usize) -> Result<Vec<f32>> {
    let numbers: Vec<f32> = elements::constants(&constant.raw_data, &constant.float_data)?;
    if numbers.len() != count {
        let (name, dims, found) = (&constant.name, &constant.dims, numbers.len());
        candle_core::bail!("constant `{name}` of shape {dims:?} has {found} values");
    }
    Ok(numbers)
}
