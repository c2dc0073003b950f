//! The engine of graphs with large linear maps, such as transformers: products with weights of the file run on this
//! project's kernels, the nodes between them in rten.
//!
//! - `map` is a linear map, `draft` finds those of a graph, and the nodes between them
//! - `copies` bounds the memory of constants that several parts read
//! - `step` runs a map, or some nodes

mod copies;
mod draft;
mod map;
mod step;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use candle_core::{Error, Result};
use prost::Message;
use rten::ValueOrView;

use self::draft::{Draft, PlacedMap};
use self::step::{Kind, Nodes, Slots, Step};
use super::embedded::{self, BorrowedPool, Numbers};
use super::engine::Engine;
use super::proto::{GraphOutline, ModelProto};
use super::sketch;
use crate::error::ModelError;
use crate::networks::graph::{NamedTensor, Port, RawTensor};

/// Its name.
pub(super) const NAME: &str = "rten with switchyard's kernels";

/// A graph that this engine runs.
pub(super) struct LinearGraph {
    steps: Vec<Step>,
    /// The number of values that pass between steps.
    slots: usize,
    /// Values of the graph's inputs and outputs.
    inputs: HashMap<String, usize>,
    outputs: Vec<(Port, usize)>,
}

/// Numbers of the values that pass between steps.
#[derive(Default)]
struct Numbering<'a>(HashMap<&'a str, usize>);

/// Whether a graph has large linear maps. Initializers of many values are not looked at.
///
/// # Errors
/// The file is no graph.
pub(super) fn suits(file: &[u8], outline: &GraphOutline) -> std::result::Result<bool, String> {
    if !map::may_have(outline) {
        return Ok(false);
    }
    let model = sketch::read(file)?;
    Ok(Draft::new(&model, None).is_some())
}

/// Reads the graph in the bytes of `file`, up to these outputs; none if they need no large linear maps, or
/// [`suits`] says so. `packs` is that of `embedded`.
///
/// # Errors
/// A weight has not the values of its shape, or `embedded` refuses the graph.
pub(super) fn read(
    file: &Path,
    bytes: &Bytes,
    inputs: &[Port],
    outputs: &[Port],
    packs: bool,
) -> std::result::Result<Option<LinearGraph>, ModelError> {
    let refuse = |error: Error| ModelError::weights(file, error.to_string());
    let model = ModelProto::decode(bytes.clone()).map_err(|error| refuse(Error::wrap(error)))?;
    let Some(draft) = Draft::new(&model, Some(outputs)) else {
        return Ok(None);
    };
    embedded::check(file, inputs.iter().chain(outputs))?;
    let mut numbers = Numbering::default();
    let inputs = draft.inputs.iter();
    let inputs = inputs.map(|info| (info.name.clone(), numbers.of(&info.name)));
    let inputs = inputs.collect();
    let (mut steps, mut packed) = (Vec::new(), HashMap::new());
    for phase in &draft.phases {
        for PlacedMap { map, from, to } in &phase.maps {
            let known = packed.get(&map.names()).cloned();
            let weights = match known {
                Some(weights) => weights,
                None => Arc::new(map.pack().map_err(refuse)?),
            };
            packed.insert(map.names(), Arc::clone(&weights));
            let kind = Kind::Map(weights, map.rank());
            steps.push(Step::new(kind, [numbers.of(from)], [numbers.of(to)]));
        }
        if !phase.nodes.is_empty() {
            let nodes = Nodes::load(file, bytes, phase, &draft.inputs, packs)?;
            let reads = phase.reads.iter().map(|name| numbers.of(name));
            let reads: Vec<usize> = reads.collect();
            let makes = phase.makes.iter().map(|name| numbers.of(name));
            steps.push(Step::new(Kind::Nodes(Box::new(nodes)), reads, makes));
        }
    }
    let outputs = outputs.iter().map(|port| match numbers.0.get(&*port.name) {
        Some(&at) => Ok((port.clone(), at)),
        None => Err(refuse(Error::msg(format!("no output `{}`", port.name)))),
    });
    let outputs = outputs.collect::<std::result::Result<Vec<_>, _>>()?;
    step::end(&mut steps, outputs.iter().map(|(_, at)| *at));
    Ok(Some(LinearGraph {
        steps,
        slots: numbers.0.len(),
        inputs,
        outputs,
    }))
}

// === impl LinearGraph ===

impl Engine for LinearGraph {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let numbers = inputs.iter().map(|(_, tensor)| Numbers::of(tensor));
        let numbers: Vec<Numbers<'_>> = numbers.collect::<Result<_>>()?;
        let mut slots: Slots<'_> = Vec::new();
        slots.resize_with(self.slots, || None);
        for ((name, tensor), numbers) in inputs.iter().zip(&numbers) {
            match self.inputs.get(*name) {
                Some(&at) => slots[at] = Some(ValueOrView::View(numbers.view(&tensor.shape)?)),
                None => candle_core::bail!("the graph has no input `{name}`"),
            }
        }
        let is_wanted = |port: &Port| wanted.is_none_or(|name| *port.name == *name);
        let outputs = self.outputs.iter().filter(|(port, _)| is_wanted(port));
        let pool = BorrowedPool::new(rayon::current_num_threads());
        pool.run(|| {
            let mut steps = self.steps.iter();
            steps.try_for_each(|step| step.run(&mut slots, &pool))
        })?;
        let made = outputs.map(|(port, at)| match slots[*at].take() {
            Some(ValueOrView::Value(value)) => {
                Ok((Arc::clone(&port.name), embedded::raw(port, value)?))
            }
            _ => candle_core::bail!("output `{}` was not made", port.name),
        });
        made.collect()
    }
}

// === impl Numbering ===

impl<'a> Numbering<'a> {
    fn of(&mut self, name: &'a str) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }
}
