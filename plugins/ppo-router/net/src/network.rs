//! The policy network: tanh layers, then a linear one.
//!
//! It has one output per instance, whose softmax is the shares of the arrivals (eq. 8 with sigma =
//! 0). With batch bounds it also has, per model, one output per pair of minimum and maximum batch;
//! the largest selects the pair.

use crate::math::{argmax, softmax, tanh};
use crate::meta::{Meta, batch_pairs};
use crate::observation::Kind;

/// A network with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub(crate) meta: Meta,
    pub(crate) layers: Vec<Layer>,
    /// The pairs of the batch heads.
    pairs: Vec<(u32, u32)>,
}

/// One layer. Weights are stored input by input, so that the inner loop runs over adjacent outputs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) outputs: usize,
    pub(crate) weights: Vec<f32>,
    pub(crate) biases: Vec<f32>,
}

/// Buffers of a forward pass.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    from: Vec<f32>,
    to: Vec<f32>,
}

/// The decision for a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Share of the arrivals per instance; the sum is 1.
    pub shares: Vec<f64>,
    /// Minimum and maximum batch per model; empty if all batches have one request.
    pub batches: Vec<(u32, u32)>,
}

// === impl Network ===

impl Network {
    /// A network from checked parts: see [`crate::weights`].
    pub(crate) fn new(meta: Meta, layers: Vec<Layer>) -> Self {
        Self {
            pairs: batch_pairs(&meta.batches),
            meta,
            layers,
        }
    }

    /// Its metadata.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether it observes the phase of the workload, which only a simulator knows.
    #[must_use]
    pub fn needs_phase(&self) -> bool {
        self.meta.layout.kind == Kind::Full
    }

    /// The outputs for one observation. Missing inputs are 0.
    pub fn forward<'s>(&self, observation: &[f32], scratch: &'s mut Scratch) -> &'s [f32] {
        scratch.from.clear();
        scratch.from.extend_from_slice(observation);
        let last = self.layers.len() - 1;
        for (l, layer) in self.layers.iter().enumerate() {
            layer.forward(&scratch.from, &mut scratch.to);
            if l < last {
                activate(&mut scratch.to);
            }
            std::mem::swap(&mut scratch.from, &mut scratch.to);
        }
        &scratch.from
    }

    /// Decides a slot.
    pub fn decide(&self, observation: &[f32], scratch: &mut Scratch, decision: &mut Decision) {
        let instances = self.meta.layout.instances;
        let outputs = self.forward(observation, scratch);
        let (logits, heads) = outputs.split_at(instances);
        softmax(logits, &mut decision.shares);
        decision.batches.clear();
        if !self.pairs.is_empty() {
            let heads = heads.chunks_exact(self.pairs.len());
            let chosen = heads.map(|head| self.pairs[argmax(head)]);
            decision.batches.extend(chosen);
        }
    }
}

// === impl Layer ===

impl Layer {
    /// `to = biases + from * weights`, each output summed in the order of the inputs, so that
    /// vector instructions give the same bits. Inputs of 0 are skipped: most of an observation.
    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn forward(&self, from: &[f32], to: &mut Vec<f32>) {
        to.clear();
        to.extend_from_slice(&self.biases);
        let rows = self.weights.chunks_exact(self.outputs);
        let mut inputs = from.iter().copied().zip(rows).filter(|&(x, _)| x != 0.0);
        // Four inputs at a time: the sums are loaded and stored once for all four.
        while let Some(one) = inputs.next() {
            match (inputs.next(), inputs.next(), inputs.next()) {
                (Some(two), Some(three), Some(four)) => add(to, [one, two, three, four]),
                (two, three, _) => {
                    add(to, [one]);
                    two.into_iter()
                        .chain(three)
                        .for_each(|input| add(to, [input]));
                }
            }
        }
    }
}

/// Adds the products of inputs and their weights, one input after the other.
#[inline]
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
fn add<const N: usize>(to: &mut [f32], inputs: [(f32, &[f32]); N]) {
    let count = to.len();
    let inputs = inputs.map(|(x, row)| (x, &row[..count]));
    for at in 0..count {
        to[at] = inputs
            .iter()
            .fold(to[at], |sum, (x, row)| sum + x * row[at]);
    }
}

/// tanh of each number, with vector instructions in WebAssembly.
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
fn activate(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = tanh(*x));
}

#[cfg(test)]
mod tests;
