//! An operator that is ready to run.

use candle_core::Result;

use super::value::{Element, Tensor, Value};

/// The inputs of a node, `None` for one that is left out.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a>(pub(super) &'a [Option<&'a Value>]);

/// A node's operator with its attributes. Closures are operators too.
pub(super) trait Operator: Send + Sync {
    /// The outputs, in the order of the specification.
    ///
    /// # Errors
    /// An input does not fit.
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>>;

    /// Memory of the attributes that it keeps.
    fn bytes(&self) -> usize {
        0
    }
}

impl<F: Fn(Inputs<'_>) -> Result<Vec<Value>> + Send + Sync> Operator for F {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        self(inputs)
    }
}

/// An operator of one output.
pub(super) fn single(
    run: impl Fn(Inputs<'_>) -> Result<Value> + Send + Sync + 'static,
) -> Box<dyn Operator> {
    Box::new(move |inputs: Inputs<'_>| Ok(vec![run(inputs)?]))
}

// === impl Inputs ===

impl<'a> Inputs<'a> {
    /// An input that may be left out.
    pub(super) fn optional(self, at: usize) -> Option<&'a Value> {
        self.0.get(at).copied().flatten()
    }

    pub(super) fn at(self, at: usize) -> Result<&'a Value> {
        match self.optional(at) {
            Some(value) => Ok(value),
            None => candle_core::bail!("input {at} is missing"),
        }
    }

    pub(super) fn tensor<T: Element>(self, at: usize) -> Result<&'a Tensor<T>> {
        self.at(at)?.tensor()
    }

    /// All inputs, none of which may be left out.
    pub(super) fn all(self) -> Result<Vec<&'a Value>> {
        (0..self.0.len()).map(|at| self.at(at)).collect()
    }
}
