//! The fall application: its training runs, and the shipped networks keep the promises of their
//! cards.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use switchyard_models::{LoadedVariant, Zoo, load_variant};
use switchyard_training::data::{Sample, stratified};
use switchyard_training::fall::{AXES, CLIP, Fall, SAMPLES, WIDTH};
use switchyard_training::train::{Silent, TrainOptions, train};

const ACCELERATION: Range<usize> = 0..SAMPLES * AXES;
const CLIP_AT: Range<usize> = WIDTH - CLIP..WIDTH;

fn shipped() -> Vec<LoadedVariant> {
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo");
    let zoo = Zoo::open(&dir).unwrap();
    let variants = &zoo.app("fall").unwrap().variants;
    variants
        .iter()
        .map(|variant| load_variant(&variant.dir, &Device::Cpu).unwrap())
        .collect()
}

fn shipped_variant(name: &str) -> LoadedVariant {
    shipped().into_iter().find(|v| v.card.name == name).unwrap()
}

/// The inputs of these samples that a variant reads.
fn inputs(variant: &LoadedVariant, samples: &[Sample]) -> Tensor {
    let range = match variant.card.inputs.as_deref() {
        None => 0..WIDTH,
        Some([name]) if name == "clip" => CLIP_AT,
        Some([name]) if name == "acceleration" => ACCELERATION,
        Some(other) => panic!("{other:?}"),
    };
    let read = samples
        .iter()
        .flat_map(|s| s.values[range.clone()].to_vec());
    let shape = (samples.len(), range.len());
    Tensor::from_vec(read.collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap()
}

/// Whether the last exit classifies each sample as a fall.
fn says_fall(variant: &LoadedVariant, samples: &[Sample]) -> Vec<bool> {
    let last = variant.model.exits().len() - 1;
    let x = inputs(variant, samples);
    let rows = variant.model.forward(last, &x).unwrap();
    let rows: Vec<Vec<f32>> = rows.to_vec2().unwrap();
    rows.iter().map(|row| row[1] > row[0]).collect()
}

#[test]
fn a_quick_run_learns_and_writes_a_zoo() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("fall");
    let names = ["minirocket", "video-s", "sneakpeek"];
    let options = TrainOptions {
        out: out.clone(),
        seed: 3,
        quick: true,
        variants: Some(names.map(str::to_owned).to_vec()),
    };
    let report = train("fall", &options, &Silent).unwrap();
    let rocket = report
        .variants
        .iter()
        .find(|v| v.name == "minirocket")
        .unwrap();
    assert!(rocket.last_loss < rocket.first_loss - 0.05, "{rocket:?}");
    assert!(rocket.exit_accuracies[0] > 0.6, "{rocket:?}");

    let zoo = Zoo::open(dir.path()).unwrap();
    let app = zoo.app("fall").unwrap();
    for (name, width) in [("minirocket", SAMPLES * AXES), ("video-s", CLIP)] {
        let loaded = load_variant(&app.variant(name).unwrap().dir, &Device::Cpu).unwrap();
        let x = Tensor::zeros((2, width), candle_core::DType::F32, &Device::Cpu).unwrap();
        assert_eq!(
            loaded.model.forward(0, &x).unwrap().dims(),
            [2, 2],
            "{name}"
        );
    }
    let sneakpeek = app.sneakpeek().unwrap().unwrap();
    let mut counts = Vec::new();
    sneakpeek.counts(&stratified(&Fall, 1, 1)[0].values, 5, &mut counts);
    assert_eq!(counts.iter().sum::<u32>(), 5);
}

#[test]
fn five_variants_are_shipped_small_and_apart() {
    let variants = shipped();
    let names: Vec<&str> = variants.iter().map(|v| v.card.name.as_str()).collect();
    assert_eq!(
        names,
        ["fusion", "minirocket", "video-l", "video-m", "video-s"]
    );
    let bytes: u64 = variants.iter().map(|v| v.bytes).sum();
    assert!(bytes < 4_000_000, "{bytes}");
    let accuracy = |name: &str| {
        let exits = &shipped_variant(name).card.exits;
        exits[exits.len() - 1].accuracy
    };
    assert!(accuracy("video-s") < accuracy("video-m"));
    assert!(accuracy("video-m") < accuracy("video-l"));
    for single in ["minirocket", "video-s", "video-m", "video-l"] {
        assert!(accuracy(single) < accuracy("fusion"), "{single}");
    }
}

/// Each modality misses falls that the other one shows; fusion uses both.
#[test]
fn modalities_miss_different_falls() {
    let falls: Vec<Sample> = stratified(&Fall, 77, 150).split_off(150);
    let felt = says_fall(&shipped_variant("minirocket"), &falls);
    let seen = says_fall(&shipped_variant("video-m"), &falls);
    let count = |felt_it: bool, saw_it: bool| {
        let pairs = felt.iter().zip(&seen);
        pairs
            .filter(|&(f, s)| (*f, *s) == (felt_it, saw_it))
            .count()
    };
    let (only_felt, only_seen) = (count(true, false), count(false, true));
    assert!(only_felt >= 5 && only_seen >= 5, "{only_felt} {only_seen}");
    let fused = says_fall(&shipped_variant("fusion"), &falls);
    let found = fused.iter().filter(|fall| **fall).count();
    let best = count(true, true) + only_felt.max(only_seen);
    assert!(found + 3 > best, "{found} fused, {best} by the better half");
}

#[test]
fn stages_then_head_equal_the_whole_run_and_rows_stand_alone() {
    let samples = stratified(&Fall, 5, 3);
    for variant in shipped() {
        let model = &variant.model;
        let x = inputs(&variant, &samples);
        for (exit, &after) in model.exits().iter().enumerate() {
            let whole: Vec<Vec<f32>> = model.forward(exit, &x).unwrap().to_vec2().unwrap();
            for (i, row) in whole.iter().enumerate() {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                // Split between stages, as when a batch is preempted and taken apart.
                let mut part = model.run_stage(0, &x).unwrap().narrow(0, i, 1).unwrap();
                for stage in 1..after {
                    part = model.run_stage(stage, &part).unwrap();
                }
                let alone: Vec<Vec<f32>> = model.head(exit, &part).unwrap().to_vec2().unwrap();
                let close = alone[0].iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(
                    close,
                    "{} exit {exit}: {alone:?} {row:?}",
                    variant.card.name
                );
            }
        }
    }
}
