//! A graph as a list of steps.
//!
//! Steps are in an order in which inputs are made before they are read. Steps whose inputs are all
//! constants run once, when the plan is made. A value is dropped after the last step that reads it.

use std::collections::HashMap;

use candle_core::Result;

use super::constant::constant;
use super::definition::Definition;
use super::operator::{Inputs, Operator};
use super::registry;
use super::value::{Tensor, Value};
use crate::networks::onnx::proto::{GraphProto, ModelProto, NodeProto};

/// The version of `ai.onnx` for files that import none.
const FIRST_OPSET: i64 = 1;

/// The steps from a graph's inputs to outputs.
pub(super) struct Plan {
    /// Names of the inputs, which are in the first slots.
    inputs: Vec<String>,
    constants: Vec<Value>,
    steps: Vec<Step>,
    /// Slots for values that are made.
    slots: usize,
    outputs: Vec<Place>,
}

/// A node.
struct Step {
    /// Its operator's name, for errors.
    name: String,
    operator: Box<dyn Operator>,
    inputs: Vec<Option<Place>>,
    /// The slot of each output, `None` for one that nothing reads.
    outputs: Vec<Option<usize>>,
    /// Slots that no later step reads.
    last_read: Vec<usize>,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Constant(usize),
    Slot(usize),
}

// === impl Plan ===

impl Plan {
    /// Plans the nodes that `outputs` need; others are left out.
    ///
    /// # Errors
    /// An operator or one of its attributes is unknown, or the nodes make no graph.
    pub(super) fn new(model: &ModelProto, outputs: &[&str]) -> Result<Self> {
        let Some(graph) = &model.graph else {
            candle_core::bail!("the file has no graph");
        };
        let general = |domain: &str| matches!(domain, "" | "ai.onnx");
        let opsets = model.opset_import.iter();
        let opsets = opsets.filter(|opset| general(&opset.domain));
        let opset = opsets.map(|opset| opset.version).max();
        let opset = opset.unwrap_or(FIRST_OPSET);
        let mut building = Building::new(graph)?;
        for node in order(graph, outputs)? {
            building.add(Definition { node, opset })?;
        }
        let outputs: Result<Vec<Place>> = outputs.iter().map(|name| building.place(name)).collect();
        Ok(building.finish(outputs?))
    }

    /// Computes outputs, by their positions in the list that the plan was made for.
    pub(super) fn run(
        &self,
        mut input: impl FnMut(&str) -> Result<Value>,
        wanted: &[usize],
    ) -> Result<Vec<Value>> {
        let mut slots: Vec<Option<Value>> = vec![None; self.slots];
        for (slot, name) in slots.iter_mut().zip(&self.inputs) {
            *slot = Some(input(name)?);
        }
        for step in &self.steps {
            let inputs = step.inputs.iter();
            let inputs = inputs.map(|place| self.value(&slots, (*place)?));
            let inputs: Vec<Option<&Value>> = inputs.collect();
            let made = step.operator.run(Inputs(&inputs));
            let made = made.map_err(|error| in_operator(&step.name, &error))?;
            for (slot, value) in step.outputs.iter().zip(made) {
                if let Some(slot) = slot {
                    slots[*slot] = Some(value);
                }
            }
            for &slot in &step.last_read {
                slots[slot] = None;
            }
        }
        let output = |&at: &usize| match self.outputs.get(at) {
            Some(&place) => match self.value(&slots, place) {
                Some(value) => Ok(value.clone()),
                None => candle_core::bail!("output {at} was not made"),
            },
            None => candle_core::bail!("output {at} is not in the plan"),
        };
        wanted.iter().map(output).collect()
    }

    fn value<'a>(&'a self, slots: &'a [Option<Value>], place: Place) -> Option<&'a Value> {
        match place {
            Place::Constant(at) => self.constants.get(at),
            Place::Slot(at) => slots.get(at).and_then(Option::as_ref),
        }
    }

    /// Memory of constants and attributes.
    pub(super) fn bytes(&self) -> usize {
        let constants = self.constants.iter().map(Value::bytes).sum::<usize>();
        constants
            + self
                .steps
                .iter()
                .map(|step| step.operator.bytes())
                .sum::<usize>()
    }
}

fn in_operator(name: &str, error: &candle_core::Error) -> candle_core::Error {
    candle_core::Error::msg(format!("operator {name}: {error}"))
}

/// A plan that grows.
struct Building {
    plan: Plan,
    places: HashMap<String, Place>,
}

impl Building {
    fn new(graph: &GraphProto) -> Result<Self> {
        let mut places = HashMap::new();
        let mut constants = Vec::with_capacity(graph.initializer.len());
        for initializer in &graph.initializer {
            places.insert(initializer.name.clone(), Place::Constant(constants.len()));
            constants.push(constant(initializer)?);
        }
        // Before version 4 of the format, constants are listed among the inputs too.
        let names = graph.input.iter().map(|input| &input.name);
        let inputs: Vec<String> = names
            .filter(|name| !places.contains_key(*name))
            .cloned()
            .collect();
        for (at, name) in inputs.iter().enumerate() {
            places.insert(name.clone(), Place::Slot(at));
        }
        Ok(Self {
            plan: Plan {
                slots: inputs.len(),
                inputs,
                constants,
                steps: Vec::new(),
                outputs: Vec::new(),
            },
            places,
        })
    }

    fn place(&self, name: &str) -> Result<Place> {
        match self.places.get(name) {
            Some(&place) => Ok(place),
            None => candle_core::bail!("nothing makes `{name}`"),
        }
    }

    /// Adds a node whose inputs have places.
    fn add(&mut self, definition: Definition<'_>) -> Result<()> {
        let node = definition.node;
        let place = |name: &String| match name.is_empty() {
            true => Ok(None),
            false => self.place(name).map(Some),
        };
        let inputs = node.input.iter().map(place).collect::<Result<Vec<_>>>()?;
        let operator = registry::operator(definition)?;
        let is_constant = |place: &Option<Place>| !matches!(place, Some(Place::Slot(_)));
        if inputs.iter().all(is_constant) {
            let values = inputs.iter().map(|place| match place {
                Some(Place::Constant(at)) => self.plan.constants.get(*at),
                _ => None,
            });
            let values: Vec<Option<&Value>> = values.collect();
            let made = operator.run(Inputs(&values));
            let made = made.map_err(|error| in_operator(&node.op_type, &error))?;
            for (name, value) in node.output.iter().zip(made) {
                let at = self.plan.constants.len();
                self.plan.constants.push(value);
                self.name(name, Place::Constant(at))?;
            }
            return Ok(());
        }
        let mut outputs = Vec::with_capacity(node.output.len());
        for name in &node.output {
            if name.is_empty() {
                outputs.push(None);
                continue;
            }
            let slot = self.plan.slots;
            self.plan.slots += 1;
            self.name(name, Place::Slot(slot))?;
            outputs.push(Some(slot));
        }
        self.plan.steps.push(Step {
            name: node.op_type.clone(),
            operator,
            inputs,
            outputs,
            last_read: Vec::new(),
        });
        Ok(())
    }

    fn name(&mut self, name: &str, place: Place) -> Result<()> {
        if self.places.insert(name.to_owned(), place).is_some() {
            candle_core::bail!("`{name}` is made twice");
        }
        Ok(())
    }

    /// Finds the last reads, and drops constants that were only folded into others.
    fn finish(self, outputs: Vec<Place>) -> Plan {
        let mut plan = self.plan;
        let mut read = vec![false; plan.slots];
        for place in &outputs {
            if let Place::Slot(slot) = place {
                read[*slot] = true;
            }
        }
        for step in plan.steps.iter_mut().rev() {
            for place in step.inputs.iter().flatten() {
                if let Place::Slot(slot) = place
                    && !std::mem::replace(&mut read[*slot], true)
                {
                    step.last_read.push(*slot);
                }
            }
            for output in &mut step.outputs {
                *output = output.filter(|slot| read[*slot]);
            }
        }
        plan.outputs = outputs;
        plan.keep_used_constants();
        plan
    }
}

impl Plan {
    fn keep_used_constants(&mut self) {
        let inputs = self
            .steps
            .iter_mut()
            .flat_map(|step| step.inputs.iter_mut().flatten());
        let mut kept = Vec::new();
        let mut moved = HashMap::new();
        for place in inputs.chain(&mut self.outputs) {
            if let Place::Constant(at) = place {
                let constants = &mut self.constants;
                *at = *moved.entry(*at).or_insert_with_key(|&at| {
                    let empty = Value::Bool(Tensor::default());
                    kept.push(std::mem::replace(&mut constants[at], empty));
                    kept.len() - 1
                });
            }
        }
        self.constants = kept;
    }
}

/// The nodes that outputs need, each after those that make its inputs.
fn order<'a>(graph: &'a GraphProto, outputs: &[&str]) -> Result<Vec<&'a NodeProto>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        Open,
        Done,
    }
    let mut makers = HashMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            if makers.insert(name.as_str(), at).is_some() {
                candle_core::bail!("`{name}` is made twice");
            }
        }
    }
    let mut seen = vec![Seen::Never; graph.node.len()];
    let mut order = Vec::new();
    // A node, and how many of its inputs were followed.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for output in outputs {
        let Some(&last) = makers.get(output) else {
            continue;
        };
        if seen[last] == Seen::Never {
            seen[last] = Seen::Open;
            path.push((last, 0));
        }
        while let Some((node, followed)) = path.last_mut() {
            let at = *node;
            let Some(input) = graph.node[at].input.get(*followed) else {
                seen[at] = Seen::Done;
                order.push(&graph.node[at]);
                path.pop();
                continue;
            };
            *followed += 1;
            let Some(&maker) = makers.get(input.as_str()) else {
                continue;
            };
            match seen[maker] {
                Seen::Never => {
                    seen[maker] = Seen::Open;
                    path.push((maker, 0));
                }
                Seen::Done => {}
                Seen::Open => candle_core::bail!("`{input}` is computed from itself"),
            }
        }
    }
    Ok(order)
}
