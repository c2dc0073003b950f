//! Layouts, metadata and networks of the tests.

#![allow(clippy::unwrap_used)]

use crate::meta::{FORMAT, Meta};
use crate::network::Network;
use crate::observation::{Kind, Layout};

pub(crate) fn layout(kind: Kind) -> Layout {
    Layout {
        kind,
        instances: 2,
        capacity: 3,
        elapsed_scale_us: 100,
        age_scale_us: 1_000,
        rate_scale: 180.0,
        phases: 2,
        phase_scale_us: 10_000,
        largest_batch: 0,
    }
}

pub(crate) fn meta(mut layout: Layout, batches: &[u32]) -> Meta {
    layout.largest_batch = batches.last().copied().unwrap_or(0);
    let mut meta = Meta {
        format: FORMAT,
        layers: vec![layout.width(), 5, 3, 0],
        models: vec![0, 1],
        variants: vec!["heavy".to_owned(), "light".to_owned()],
        batches: batches.to_vec(),
        slot_us: 1_000_000,
        deadline_us: 300_000,
        workload: "mmpp:180,10,0.036,0.002".to_owned(),
        seed: 7,
        command: "switchyard prepare ppo-router".to_owned(),
        layout,
    };
    meta.layers[3] = meta.outputs();
    meta
}

/// A network with different weights.
pub(crate) fn network(kind: Kind, batches: &[u32]) -> Network {
    let meta = meta(layout(kind), batches);
    let number = |i: usize| (i * 37 % 101) as f32 / 101.0 - 0.5;
    let layers = meta.layers.windows(2).map(|shape| {
        let weights = (0..shape[0] * shape[1]).map(number).collect();
        (weights, (0..shape[1]).map(number).collect())
    });
    let layers = layers.collect();
    Network::try_new(meta, layers).unwrap()
}
