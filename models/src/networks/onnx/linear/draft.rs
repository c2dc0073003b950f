//! The linear maps of a graph, and the nodes between them, in phases.
//!
//! A phase has the maps whose inputs earlier phases make, then the other nodes that need no later map.

use std::collections::{HashMap, HashSet};

use super::copies::Copies;
use super::map::{Constants, LinearMap};
use crate::networks::graph::Port;
use crate::networks::onnx::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

/// Operators whose graphs may read any value.
const WITH_GRAPHS: [&str; 4] = ["If", "Loop", "Scan", "SequenceMap"];

/// Operators that answer differently each time.
const RANDOM: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// Most phases: each is read from the file on its own.
const PHASES_MAX: usize = 2048;

/// The phases of a graph.
pub(super) struct Draft<'a> {
    pub(super) phases: Vec<Phase<'a>>,
    /// The graph's inputs.
    pub(super) inputs: Vec<&'a ValueInfoProto>,
}

/// Maps, then nodes.
#[derive(Default)]
pub(super) struct Phase<'a> {
    pub(super) maps: Vec<PlacedMap<'a>>,
    /// The nodes by their places in the graph, with those that make their constants.
    pub(super) nodes: HashSet<usize>,
    /// Values of other phases, or of this one's maps, that the nodes read.
    pub(super) reads: Vec<&'a str>,
    /// Values of the nodes that others read, or that are outputs.
    pub(super) makes: Vec<&'a str>,
}

/// A map between two values.
pub(super) struct PlacedMap<'a> {
    pub(super) map: LinearMap<'a>,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
}

/// A graph while its nodes are placed.
struct Placing<'a> {
    graph: &'a GraphProto,
    constants: Constants<'a>,
    /// Nodes that make constants, by the constant.
    makers: HashMap<&'a str, usize>,
    /// By value: the phase that makes it.
    phase_of: HashMap<&'a str, usize>,
    phases: Vec<Phase<'a>>,
    copies: Copies,
}

// === impl Draft ===

impl<'a> Draft<'a> {
    /// Of the nodes that some outputs need, or all. None: the graph has no large linear maps, or is of a kind that
    /// this engine does not cut.
    pub(super) fn new(model: &'a ModelProto, wanted: Option<&[Port]>) -> Option<Self> {
        let graph = model.graph.as_ref()?;
        let outputs = graph.output.iter().map(|info| &*info.name);
        let is_wanted = |name: &&str| {
            wanted.is_none_or(|wanted| wanted.iter().any(|port| *port.name == **name))
        };
        let outputs: Vec<&str> = outputs.filter(is_wanted).collect();
        let mut placing = Placing::new(graph)?;
        let inputs = graph.input.iter();
        let inputs = inputs.filter(|info| placing.phase_of.contains_key(&*info.name));
        let inputs: Vec<&ValueInfoProto> = inputs.collect();
        placing.place(&needed(graph, &outputs))?;
        let is_input = |name: &str| inputs.iter().any(|info| info.name == name);
        let is_made = |name: &&str| placing.is_made(name) && !is_input(name);
        if !outputs.iter().all(is_made) {
            return None;
        }
        let phases = &placing.phases;
        if phases.len() > PHASES_MAX || phases.iter().all(|phase| phase.maps.is_empty()) {
            return None;
        }
        placing.connect(&outputs)?;
        Some(Self {
            phases: placing.phases,
            inputs,
        })
    }
}

// === impl Placing ===

impl<'a> Placing<'a> {
    fn new(graph: &'a GraphProto) -> Option<Self> {
        let mut constants = HashMap::new();
        for constant in &graph.initializer {
            if constants.insert(&*constant.name, constant).is_some() {
                return None;
            }
        }
        // Before version 4 of the format, constants are listed among the inputs too.
        let inputs = graph.input.iter().map(|input| &*input.name);
        let inputs = inputs.filter(|name| !constants.contains_key(name));
        let phase_of = inputs.map(|name| (name, 0)).collect();
        Some(Self {
            graph,
            constants,
            makers: HashMap::new(),
            phase_of,
            phases: vec![Phase::default()],
            copies: Copies::of(graph),
        })
    }

    /// Whether a value is an input, or made by a node.
    fn is_made(&self, name: &str) -> bool {
        self.phase_of.contains_key(name) || self.makers.contains_key(name)
    }

    fn is_constant(&self, name: &str) -> bool {
        self.constants.contains_key(name) || self.makers.contains_key(name)
    }

    /// Gives each node its phase.
    fn place(&mut self, needed: &[bool]) -> Option<()> {
        let readers = readers(self.graph);
        let mut joined = HashSet::new();
        for (at, node) in self.graph.node.iter().enumerate() {
            if WITH_GRAPHS.contains(&&*node.op_type) {
                return None;
            }
            if joined.contains(&at) || !needed[at] {
                continue;
            }
            if !RANDOM.contains(&&*node.op_type) && read(node).all(|name| self.is_constant(name)) {
                for name in made(node) {
                    self.add_constant(name, at)?;
                }
                continue;
            }
            let phase = self.first_phase(node)?;
            match self.map(node) {
                Some(mut placed) => {
                    joined.extend(self.join_bias(&mut placed, &readers));
                    self.add(placed.to, phase + 1)?;
                    self.phase(phase + 1).maps.push(placed);
                }
                None => {
                    self.phase(phase).nodes.insert(at);
                    for name in made(node) {
                        self.add(name, phase)?;
                    }
                }
            }
        }
        Some(())
    }

    /// The large linear map of a node.
    fn map(&self, node: &'a NodeProto) -> Option<PlacedMap<'a>> {
        let map = LinearMap::of(node, &self.constants)?;
        let from = node.input.first().map(String::as_str)?;
        let is_large = map.is_large() && self.phase_of.contains_key(from);
        let to = only_output(node).filter(|_| is_large)?;
        Some(PlacedMap { map, from, to })
    }

    /// Joins a map with the node that adds a bias to its result, if that alone reads it; returns the node's place.
    fn join_bias(
        &self,
        placed: &mut PlacedMap<'a>,
        readers: &HashMap<&str, Vec<Option<usize>>>,
    ) -> Option<usize> {
        let at = only(readers, placed.to)?;
        let node = &self.graph.node[at];
        let map = placed.map.with_bias(node, placed.to, &self.constants)?;
        (placed.map, placed.to) = (map, only_output(node)?);
        Some(at)
    }

    /// The first phase in which all inputs of a node are there; none if one is made nowhere before it.
    fn first_phase(&self, node: &NodeProto) -> Option<usize> {
        let mut first = 0;
        for name in read(node).filter(|name| !self.is_constant(name)) {
            first = first.max(*self.phase_of.get(name)?);
        }
        Some(first)
    }

    fn phase(&mut self, at: usize) -> &mut Phase<'a> {
        if self.phases.len() <= at {
            self.phases.resize_with(at + 1, Phase::default);
        }
        &mut self.phases[at]
    }

    /// Adds a value; none if its name is taken.
    fn add(&mut self, name: &'a str, phase: usize) -> Option<()> {
        let is_taken = self.is_constant(name) || self.phase_of.insert(name, phase).is_some();
        (!is_taken).then_some(())
    }

    fn add_constant(&mut self, name: &'a str, maker: usize) -> Option<()> {
        if self.is_constant(name) || self.phase_of.contains_key(name) {
            return None;
        }
        self.makers.insert(name, maker);
        Some(())
    }

    /// Finds the values that pass between phases; none if phases would hold too much more than once.
    fn connect(&mut self, outputs: &[&'a str]) -> Option<()> {
        let constant_outputs: Vec<usize> = outputs
            .iter()
            .filter_map(|name| self.makers.get(name).copied())
            .collect();
        self.phases[0].nodes.extend(constant_outputs);
        let mut passed: HashSet<&str> = outputs.iter().copied().collect();
        let mut phases = std::mem::take(&mut self.phases);
        for phase in &mut phases {
            self.add_makers(&mut phase.nodes)?;
            let nodes = || phase.nodes.iter().map(|&at| &self.graph.node[at]);
            let own: HashSet<&str> = nodes().flat_map(made).collect();
            let others = nodes().flat_map(read);
            let others =
                others.filter(|name| self.phase_of.contains_key(name) && !own.contains(name));
            let others: HashSet<&str> = others.collect();
            self.copies
                .constants(&self.constants, nodes().flat_map(read))?;
            phase.reads = others.into_iter().collect();
            phase.reads.sort_unstable();
            passed.extend(&phase.reads);
            passed.extend(phase.maps.iter().map(|placed| placed.from));
        }
        for (at, phase) in phases.iter_mut().enumerate() {
            let nodes = phase.nodes.iter().map(|&at| &self.graph.node[at]);
            // A constant that is an output is of the first phase.
            let is_own = |name: &&str| self.phase_of.contains_key(name) || at == 0;
            let makes = nodes.flat_map(made).filter(is_own);
            phase.makes = makes.filter(|name| passed.contains(name)).collect();
            phase.makes.sort_unstable();
        }
        self.phases = phases;
        Some(())
    }

    /// Adds the nodes that make the constants that nodes read.
    fn add_makers(&mut self, nodes: &mut HashSet<usize>) -> Option<()> {
        let mut open: Vec<usize> = nodes.iter().copied().collect();
        while let Some(at) = open.pop() {
            self.copies.node(at)?;
            for name in read(&self.graph.node[at]) {
                let maker = self.makers.get(name);
                open.extend(maker.filter(|&&maker| nodes.insert(maker)));
            }
        }
        Some(())
    }
}

/// The inputs that a node has.
fn read(node: &NodeProto) -> impl Iterator<Item = &str> {
    let inputs = node.input.iter().map(String::as_str);
    inputs.filter(|name| !name.is_empty())
}

/// The outputs that a node has.
fn made(node: &NodeProto) -> impl Iterator<Item = &str> {
    let outputs = node.output.iter().map(String::as_str);
    outputs.filter(|name| !name.is_empty())
}

fn only_output(node: &NodeProto) -> Option<&str> {
    let mut outputs = made(node);
    outputs.next().filter(|_| outputs.next().is_none())
}

/// Whether outputs need a node, by its place.
fn needed(graph: &GraphProto, outputs: &[&str]) -> Vec<bool> {
    let mut values: HashSet<&str> = outputs.iter().copied().collect();
    let mut needed = vec![false; graph.node.len()];
    for (node, needed) in graph.node.iter().zip(&mut needed).rev() {
        *needed = made(node).any(|name| values.contains(name));
        if *needed {
            values.extend(read(node));
        }
    }
    needed
}

/// By value: the nodes that read it, and a none if it is an output of the graph.
fn readers(graph: &GraphProto) -> HashMap<&str, Vec<Option<usize>>> {
    let mut readers: HashMap<&str, Vec<Option<usize>>> = HashMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        for name in read(node) {
            readers.entry(name).or_default().push(Some(at));
        }
    }
    for output in &graph.output {
        readers.entry(&output.name).or_default().push(None);
    }
    readers
}

/// The node that alone reads a value.
fn only(readers: &HashMap<&str, Vec<Option<usize>>>, value: &str) -> Option<usize> {
    match readers.get(value)?.as_slice() {
        &[Some(at)] => Some(at),
        _ => None,
    }
}
