#![allow(clippy::unwrap_used)]
use candle_core::{DType, Device, Tensor};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::*;
use crate::networks::spec::Spec;
use crate::weights::params::Params;

fn group(channels: usize, blocks: usize, stride: usize) -> MobileNetGroup {
    MobileNetGroup {
        channels,
        blocks,
        stride,
    }
}

fn spec() -> MobileNetSpec {
    MobileNetSpec {
        samples: 16_000,
        classes: 3,
        stem: 24,
        expansion: 2,
        groups: vec![group(32, 2, 2), group(64, 2, 2), group(96, 2, 2)],
        exits: vec![2, 3],
        slices: 4,
    }
}

#[test]
fn images_shrink_from_group_to_group() {
    let spec = MobileNetSpec {
        samples: 1600,
        stem: 4,
        groups: vec![group(6, 1, 2), group(8, 2, 1), group(10, 1, 3)],
        exits: vec![2, 3],
        slices: 100,
        ..spec()
    };
    let mut params = Params::fresh(Pcg64::seed_from_u64(1));
    let model = spec.build(&mut params).unwrap();
    let mut x = Tensor::zeros((2, 1600), DType::F32, &Device::Cpu).unwrap();
    // 10 frames by 40 bands, half of that after the stem; every layer is a stage.
    let shapes = [
        [2, 5, 20, 4],
        [2, 3, 10, 6],
        [2, 3, 10, 6],
        [2, 3, 10, 8],
        [2, 3, 10, 8],
        [2, 3, 10, 8],
        [2, 1, 4, 10],
        [2, 1, 4, 10],
    ];
    assert_eq!(model.stages(), shapes.len());
    for (stage, shape) in shapes.iter().enumerate() {
        x = model.run_stage(stage, &x).unwrap();
        assert_eq!(x.dims(), shape);
    }
    assert_eq!(model.head(1, &x).unwrap().dims(), [2, 3]);
    assert_eq!(model.exits(), [6, 8]);
}

#[test]
fn stages_are_of_similar_cost_and_exits_end_them() {
    let spec = spec();
    let costs: Vec<f64> = spec.layer_plans().iter().map(|layer| layer.cost).collect();
    let total: f64 = costs.iter().sum();
    let mut first = 0;
    for end in spec.stage_ends() {
        let share = costs[first..end].iter().sum::<f64>() / total;
        assert!((0.1..0.45).contains(&share), "{first}..{end}: {share}");
        first = end;
    }
    let ends = spec.stage_ends();
    let exits = spec.exits_after();
    // Stem, then three layers per group.
    assert_eq!(ends[exits[0] - 1], 7);
    assert_eq!(exits[1], ends.len());
}

#[test]
fn impossible_hyper_parameters_are_named() {
    let field = |spec: MobileNetSpec| spec.check().unwrap_err().field;
    let exits = |exits| MobileNetSpec { exits, ..spec() };
    let second = |second| MobileNetSpec {
        groups: vec![group(6, 1, 2), second],
        exits: vec![2],
        ..spec()
    };
    assert!(spec().check().is_ok());
    for wrong in [vec![], vec![0, 3], vec![3, 3], vec![3, 2], vec![2], vec![4]] {
        assert_eq!(field(exits(wrong)), "exits");
    }
    assert_eq!(
        field(MobileNetSpec {
            slices: 0,
            ..spec()
        }),
        "slices"
    );
    assert_eq!(field(second(group(0, 1, 1))), "groups[1].channels");
    assert_eq!(field(second(group(6, 0, 1))), "groups[1].blocks");
    assert_eq!(field(second(group(6, 1, 0))), "groups[1].stride");
}
