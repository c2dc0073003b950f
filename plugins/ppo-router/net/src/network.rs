//! The policy network: layers of tanh, the last one linear.
//!
//! Its outputs are one number per instance, whose softmax is the shares of the arrivals (eq. 8
//! with the noise at 0), and in the batching variant for each model one number per pair of
//! minimum and maximum batch, of which the largest counts.

use crate::math::{argmax, softmax, tanh};
use crate::observation::Kind;
use crate::weights::Meta;

/// A network with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub(crate) meta: Meta,
    pub(crate) layers: Vec<Layer>,
    /// What the batch heads choose from.
    pairs: Vec<(u32, u32)>,
}

/// One layer. Weights are kept input by input, so that the inner loop runs over outputs that
/// lie side by side.
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

/// What a network decides for a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Share of the arrivals of each instance; they sum to 1.
    pub shares: Vec<f64>,
    /// Minimum and maximum batch of each model; empty where all batches are of one request.
    pub batches: Vec<(u32, u32)>,
}

/// All pairs of a minimum and a maximum that is no less, in the order of the batch heads'
/// outputs: (1, 1), (1, 3), (1, 5), (3, 3), (3, 5), (5, 5).
#[must_use]
pub fn batch_pairs(sizes: &[u32]) -> Vec<(u32, u32)> {
    let from = |(i, &min): (usize, &u32)| sizes[i..].iter().map(move |&max| (min, max));
    sizes.iter().enumerate().flat_map(from).collect()
}

// === impl Network ===

impl Network {
    /// From parts that fit: see [`crate::weights`].
    pub(crate) fn new(meta: Meta, layers: Vec<Layer>) -> Self {
        Self {
            pairs: batch_pairs(&meta.batches),
            meta,
            layers,
        }
    }

    /// What it was trained for, and how.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether it needs the phase, which only a simulator knows.
    #[must_use]
    pub fn needs_phase(&self) -> bool {
        self.meta.layout.kind == Kind::Full
    }

    /// The last layer's outputs for one observation. Inputs that are missing are 0.
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
    /// `to = biases + from * weights`, each output summed in the order of the inputs: whether
    /// four outputs are computed at once or one, the bits are the same. Inputs that are 0 are
    /// passed over: most of an observation is.
    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn forward(&self, from: &[f32], to: &mut Vec<f32>) {
        to.clear();
        to.extend_from_slice(&self.biases);
        let rows = self.weights.chunks_exact(self.outputs);
        for (&x, row) in from.iter().zip(rows) {
            if x != 0.0 {
                for (sum, &weight) in to.iter_mut().zip(row) {
                    *sum += x * weight;
                }
            }
        }
    }
}

/// The tangent of each, four at a time in wasm too.
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
fn activate(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x = tanh(*x));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::observation::tests::layout;
    use crate::weights::tests::{meta, network};

    #[test]
    fn a_forward_pass_is_what_the_formula_says() {
        let layers = vec![
            Layer {
                outputs: 2,
                weights: vec![1.0, -1.0, 0.5, 0.25],
                biases: vec![0.1, 0.2],
            },
            Layer {
                outputs: 1,
                weights: vec![2.0, 3.0],
                biases: vec![-1.0],
            },
        ];
        let network = Network::new(meta(layout(Kind::Paper), &[]), layers);
        let mut scratch = Scratch::default();
        let got = network.forward(&[2.0, 4.0], &mut scratch);
        let hidden = [tanh(0.1 + 2.0 + 2.0), tanh(0.2 - 2.0 + 1.0)];
        assert_eq!(got, [-1.0 + hidden[0] * 2.0 + hidden[1] * 3.0]);
    }

    #[test]
    fn batches_are_chosen_per_model() {
        let network = network(Kind::Paper, &[1, 3, 5]);
        let width = network.meta().layout.width();
        let mut decision = Decision::default();
        network.decide(&vec![0.5; width], &mut Scratch::default(), &mut decision);
        assert_eq!((decision.shares.len(), decision.batches.len()), (2, 2));
        let pairs = batch_pairs(&[1, 3, 5]);
        assert_eq!(pairs, [(1, 1), (1, 3), (1, 5), (3, 3), (3, 5), (5, 5)]);
        assert!(decision.batches.iter().all(|pair| pairs.contains(pair)));
        assert!((decision.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// Pinned: what was trained here must decide the same elsewhere.
    #[test]
    fn the_bits_are_the_same_everywhere() {
        let network = network(Kind::Extended, &[]);
        let width = network.meta().layout.width();
        let observation: Vec<f32> = (0..width).map(|i| (i % 7) as f32 / 7.0).collect();
        let mut scratch = Scratch::default();
        let bits: Vec<u32> = network
            .forward(&observation, &mut scratch)
            .iter()
            .map(|x| x.to_bits())
            .collect();
        assert_eq!(bits, PINNED);
    }

    const PINNED: [u32; 2] = [3201059903, 1046241080];
}
