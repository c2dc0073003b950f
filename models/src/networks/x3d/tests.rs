#![allow(clippy::unwrap_used)]
use candle_core::Device;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::networks::architecture::Architecture;

fn spec() -> X3dSpec {
    let stage = |channels, blocks, stride| TrunkStage {
        channels,
        inner: 2 * channels,
        blocks,
        stride,
    };
    X3dSpec {
        classes: 3,
        exits: vec![1, 2],
        trunk: TrunkSpec {
            frames: 6,
            side: 12,
            every: 2,
            shrink: 2,
            segments: 3,
            stem: 4,
            stages: vec![stage(4, 1, 1), stage(6, 2, 2)],
        },
    }
}

fn model(spec: &X3dSpec) -> Box<dyn StagedModel> {
    spec.check().unwrap();
    let mut params = Params::fresh(Pcg64::seed_from_u64(1));
    spec.build(&mut params).unwrap()
}

/// Random clips.
fn clips(count: usize) -> Tensor {
    let mut rng = Pcg64::seed_from_u64(2);
    let values: Vec<f32> = (0..count * 6 * 144).map(|_| rng.random()).collect();
    Tensor::from_vec(values, (count, 6 * 144), &Device::Cpu).unwrap()
}

fn rows(x: &Tensor) -> Vec<Vec<f32>> {
    x.to_vec2().unwrap()
}

#[test]
fn stages_have_the_announced_shapes_and_exits() {
    let spec = spec();
    let model = model(&spec);
    assert_eq!((model.stages(), model.exits()), (2, &[1, 2][..]));
    let trunk = Trunk::new(&mut Params::fresh(Pcg64::seed_from_u64(1)), "", &spec.trunk);
    let trunk = trunk.unwrap();
    let mut x = clips(2);
    for stage in 0..2 {
        x = model.run_stage(stage, &x).unwrap();
        assert_eq!(x.dims()[1..], trunk.shape_after(stage), "stage {stage}");
        assert_eq!(model.logits(stage, &x).unwrap().dims(), [2, 3]);
    }
    assert_eq!(x.dims(), [2, 3, 2, 2, 6]);
}

#[test]
fn rows_do_not_depend_on_the_batch() {
    let model = model(&spec());
    let x = clips(5);
    let together = rows(&model.forward(1, &x).unwrap());
    for (i, row) in together.iter().enumerate() {
        let alone = rows(&model.forward(1, &x.narrow(0, i, 1).unwrap()).unwrap());
        let close = alone[0].iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close, "row {i}: {alone:?} {row:?}");
    }
    assert_ne!(together[0], together[1]);
}

#[test]
fn only_the_last_frame_of_every_group_is_read() {
    let model = model(&spec());
    let x = clips(1);
    let zero = |frame: usize| {
        let mut values = x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        values[frame * 144..][..144].fill(0.0);
        let x = Tensor::from_vec(values, (1, 6 * 144), &Device::Cpu).unwrap();
        rows(&model.forward(1, &x).unwrap())
    };
    let whole = rows(&model.forward(1, &x).unwrap());
    assert_eq!(zero(2), whole);
    assert_ne!(zero(3), whole);
}

#[test]
fn a_head_tells_segments_and_lines_apart() {
    let trunk = Trunk::new(
        &mut Params::fresh(Pcg64::seed_from_u64(1)),
        "",
        &spec().trunk,
    );
    // 3 frames of 2 x 2, one channel, numbered.
    let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
    let x = Tensor::from_vec(values, (1, 3, 2, 2, 1), &Device::Cpu).unwrap();
    let pooled = rows(&trunk.unwrap().pool(&x).unwrap());
    assert_eq!(pooled, [[0.5, 2.5, 4.5, 6.5, 8.5, 10.5]]);
}

/// The order of a clip's frames must matter: a fall played backwards is not a fall.
#[test]
fn the_order_of_frames_matters() {
    let model = model(&spec());
    let x = clips(1).reshape((6, 144)).unwrap();
    let frames: Vec<Tensor> = (0..6).rev().map(|i| x.narrow(0, i, 1).unwrap()).collect();
    // Pairs are kept in order, so that the same frames are read.
    let swapped: Vec<&Tensor> = [1, 0, 3, 2, 5, 4].iter().map(|&i| &frames[i]).collect();
    let reversed = Tensor::cat(&swapped, 0)
        .unwrap()
        .reshape((1, 6 * 144))
        .unwrap();
    let forth = rows(&model.forward(1, &clips(1)).unwrap());
    let back = rows(&model.forward(1, &reversed).unwrap());
    let apart = forth[0]
        .iter()
        .zip(&back[0])
        .any(|(a, b)| (a - b).abs() > 1e-6);
    assert!(apart, "{forth:?} {back:?}");
}

#[test]
fn bad_hyper_parameters_are_named() {
    let field = |change: fn(&mut X3dSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Architecture::X3d(spec).check().unwrap_err().field
    };
    assert_eq!(field(|s| s.trunk.every = 4), "trunk.every");
    assert_eq!(field(|s| s.trunk.shrink = 0), "trunk.shrink");
    assert_eq!(field(|s| s.trunk.segments = 2), "trunk.segments");
    assert_eq!(
        field(|s| s.trunk.stages[1].stride = 0),
        "trunk.stages[1].stride"
    );
    assert_eq!(field(|s| s.trunk.stages.clear()), "trunk.stages");
    assert_eq!(field(|s| s.exits = vec![1]), "exits");
    assert_eq!(field(|s| s.exits = vec![0, 2]), "exits");
    assert_eq!(field(|s| s.trunk.side = 1 << 13), "samples");
}
