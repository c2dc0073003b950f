#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::{layout, meta, network};

#[test]
fn a_forward_pass_follows_the_formula() {
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

/// Pinned: trained weights must decide the same on every machine.
#[test]
fn the_bits_are_the_same_on_every_machine() {
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
