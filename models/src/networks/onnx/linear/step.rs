//! A part of a graph: a linear map, or the nodes between some.

use std::path::Path;
use std::sync::Arc;

use candle_core::{Error, Result};
use rten::{Model, NodeId, Value, ValueOrView, ValueView};
use rten_tensor::{Layout, Tensor};
use switchyard_kernels::PackedLinear;

use super::draft::Phase;
use crate::error::ModelError;
use crate::networks::onnx::cut::Cut;
use crate::networks::onnx::embedded::{self, BorrowedPool};
use crate::networks::onnx::proto::ValueInfoProto;
use crate::ops::tensors::kernel_error;

/// The values that are there, by number.
pub(super) type Slots<'a> = Vec<Option<ValueOrView<'a>>>;

/// A step from values to values.
pub(super) struct Step {
    pub(super) kind: Kind,
    /// With whether nothing reads it later.
    pub(super) reads: Vec<(usize, bool)>,
    makes: Vec<usize>,
}

/// The work of a step.
pub(super) enum Kind {
    /// With the rank of its input, unless any will do.
    Map(Arc<PackedLinear>, Option<usize>),
    Nodes(Box<Nodes>),
}

/// Nodes of a graph in rten, with those of its tensors that a step reads and makes.
pub(super) struct Nodes {
    model: Model,
    reads: Vec<NodeId>,
    makes: Vec<NodeId>,
}

/// Finds the values that nothing reads after a step; outputs are kept.
pub(super) fn end(steps: &mut [Step], outputs: impl Iterator<Item = usize>) {
    let mut read: std::collections::HashSet<usize> = outputs.collect();
    for step in steps.iter_mut().rev() {
        for (at, is_last) in &mut step.reads {
            *is_last = read.insert(*at);
        }
    }
}

// === impl Step ===

impl Step {
    pub(super) fn new(
        kind: Kind,
        reads: impl IntoIterator<Item = usize>,
        makes: impl IntoIterator<Item = usize>,
    ) -> Self {
        Self {
            kind,
            reads: reads.into_iter().map(|at| (at, false)).collect(),
            makes: makes.into_iter().collect(),
        }
    }

    /// # Errors
    /// A value has not the shape that the step needs.
    pub(super) fn run(&self, slots: &mut Slots<'_>, pool: &BorrowedPool) -> Result<()> {
        // Those that nothing reads later are taken: rten computes in their memory.
        let mut own: Vec<Option<ValueOrView<'_>>> = Vec::with_capacity(self.reads.len());
        for &(at, is_last) in &self.reads {
            own.push(match is_last {
                true => slots[at].take(),
                false => None,
            });
        }
        let values = self.reads.iter().zip(own).map(|(&(at, _), own)| {
            let view = || {
                slots[at]
                    .as_ref()
                    .map(|value| ValueOrView::View(value.as_view()))
            };
            let value = own.or_else(view);
            value.ok_or_else(|| Error::msg("a step lacks a value"))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let made = match (&self.kind, values.as_slice()) {
            (Kind::Map(weights, rank), [x]) => vec![multiplied(weights, *rank, &x.as_view())?],
            (Kind::Map(..), _) => candle_core::bail!("a linear map of several values"),
            (Kind::Nodes(nodes), _) => nodes.run(values, pool)?,
        };
        for (&at, value) in self.makes.iter().zip(made) {
            slots[at] = Some(ValueOrView::Value(value));
        }
        Ok(())
    }
}

/// The linear map of the last axis of `x`.
fn multiplied(weights: &PackedLinear, rank: Option<usize>, x: &ValueView<'_>) -> Result<Value> {
    let ValueView::FloatTensor(x) = x else {
        candle_core::bail!("a product of {} with real numbers", x.dtype());
    };
    let [input, output] = weights.sizes();
    let mut shape = x.shape().to_vec();
    let fits = rank.is_none_or(|rank| rank == shape.len()) && shape.last() == Some(&input);
    let Some(last) = shape.last_mut().filter(|_| fits) else {
        candle_core::bail!("a product of {:?} with [{input}, {output}]", x.shape());
    };
    *last = output;
    let mut made = vec![0.0; shape.iter().product()];
    let rows = x.to_contiguous();
    weights
        .forward(rows.data(), &mut made)
        .map_err(kernel_error)?;
    Ok(Value::FloatTensor(Tensor::from_data(&shape, made)))
}

// === impl Nodes ===

impl Nodes {
    /// The nodes of a phase of the graph in the `bytes` of `file`, which has these inputs.
    ///
    /// # Errors
    /// `embedded` refuses them.
    pub(super) fn load(
        file: &Path,
        bytes: &[u8],
        phase: &Phase<'_>,
        inputs: &[&ValueInfoProto],
        packs: bool,
    ) -> std::result::Result<Self, ModelError> {
        let info = |name: &&str| ValueInfoProto {
            name: (*name).to_owned(),
            r#type: None,
        };
        let declared = |name: &&str| {
            let input = inputs.iter().find(|info| info.name == **name);
            input.map_or_else(|| info(name), |input| (*input).clone())
        };
        let cut = Cut {
            nodes: phase.nodes.clone(),
            inputs: phase.reads.iter().map(declared).collect(),
            outputs: phase.makes.iter().map(info).collect(),
        };
        let cut = cut
            .of(bytes)
            .map_err(|reason| ModelError::weights(file, reason))?;
        let model = embedded::load(file, cut, packs)?;
        let id = |name: &&str| embedded::node_id(file, &model, name);
        let reads = phase.reads.iter().map(id);
        let reads = reads.collect::<std::result::Result<_, _>>()?;
        // Not by name: where rten folds a node into a constant, the output is that constant.
        let makes = model.output_ids().to_vec();
        if makes.len() != phase.makes.len() {
            let reason = "its parts have not the outputs that it has";
            return Err(ModelError::weights(file, reason));
        }
        Ok(Self {
            model,
            reads,
            makes,
        })
    }

    fn run(&self, values: Vec<ValueOrView<'_>>, pool: &BorrowedPool) -> Result<Vec<Value>> {
        let values = self.reads.iter().copied().zip(values).collect();
        let made = self.model.run(values, &self.makes, Some(pool.options()));
        made.map_err(Error::wrap)
    }
}
