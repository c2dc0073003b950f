//! The shipped networks keep the promises of `StagedModel`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use switchyard_models::{LoadedVariant, Zoo, load_variant};
use switchyard_training::data::stratified;
use switchyard_training::heart::{CLASSES, Heart, SAMPLES};

fn zoo_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo")
}

fn shipped() -> Vec<LoadedVariant> {
    let zoo = Zoo::open(&zoo_dir()).unwrap();
    let variants = &zoo.app("heart").unwrap().variants;
    variants
        .iter()
        .map(|variant| load_variant(&variant.dir, &Device::Cpu).unwrap())
        .collect()
}

/// 35 beats: more than one slice of every variant, and no multiple of a slice.
fn batch() -> Tensor {
    let values: Vec<f32> = stratified(&Heart, 21, 5)
        .into_iter()
        .flat_map(|beat| beat.values)
        .collect();
    Tensor::from_vec(values, (5 * CLASSES, SAMPLES), &Device::Cpu).unwrap()
}

fn assert_close(a: &Tensor, b: &Tensor, name: &str) {
    assert_eq!(a.dims(), b.dims(), "{name}");
    let a: Vec<f32> = a.flatten_all().unwrap().to_vec1().unwrap();
    let b: Vec<f32> = b.flatten_all().unwrap().to_vec1().unwrap();
    for (x, y) in a.iter().zip(&b) {
        assert!((x - y).abs() < 1e-4, "{name}: {x} {y}");
    }
}

#[test]
fn three_variants_are_shipped_and_small() {
    let variants = shipped();
    let names: Vec<&str> = variants.iter().map(|v| v.card.name.as_str()).collect();
    assert_eq!(names, ["cnn", "cnn-small", "resnet"]);
    let exits: Vec<usize> = variants.iter().map(|v| v.card.exits.len()).collect();
    assert_eq!(exits, [1, 1, 3]);
    let bytes: u64 = variants.iter().map(|v| v.bytes).sum();
    assert!(bytes < 2_000_000, "{bytes}");
}

#[test]
fn stages_then_head_equal_the_whole_run() {
    let x = batch();
    for variant in shipped() {
        let model = variant.model;
        for (exit, &after) in model.exits().iter().enumerate() {
            // Activations are kept after every stage, as if a run were preempted there.
            let mut activations = vec![x.clone()];
            for stage in 0..after {
                activations.push(model.run_stage(stage, &activations[stage]).unwrap());
            }
            let staged = model.head(exit, &activations[after]).unwrap();
            let whole = model.forward(exit, &x).unwrap();
            assert_close(&staged, &whole, &variant.card.name);
        }
    }
}

#[test]
fn a_batch_equals_its_inputs_one_by_one() {
    let x = batch();
    for variant in shipped() {
        for exit in 0..variant.model.exits().len() {
            let together = variant.model.forward(exit, &x).unwrap();
            for i in 0..x.dim(0).unwrap() {
                let alone = variant.model.forward(exit, &x.narrow(0, i, 1).unwrap());
                let row = together.narrow(0, i, 1).unwrap();
                assert_close(&alone.unwrap(), &row, &variant.card.name);
            }
        }
    }
}

#[test]
fn batches_may_be_split_between_stages() {
    let x = batch();
    for variant in shipped().into_iter().filter(|v| v.card.stages > 1) {
        let model = variant.model;
        let last = model.exits().len() - 1;
        let half = model.run_stage(0, &x).unwrap();
        let mut rest = half.narrow(0, 3, 4).unwrap();
        for stage in 1..model.stages() {
            rest = model.run_stage(stage, &rest).unwrap();
        }
        let whole = model.forward(last, &x.narrow(0, 3, 4).unwrap()).unwrap();
        assert_close(
            &model.head(last, &rest).unwrap(),
            &whole,
            &variant.card.name,
        );
    }
}

#[test]
fn probabilities_sum_to_one() {
    for variant in shipped() {
        let rows = variant.model.forward(0, &batch()).unwrap();
        for row in rows.to_vec2::<f32>().unwrap() {
            assert_eq!(row.len(), CLASSES);
            assert!(row.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn wrong_calls_are_errors() {
    let x = batch();
    let narrow = x.narrow(1, 0, 100).unwrap();
    for variant in shipped() {
        let model = variant.model;
        let text = model.run_stage(0, &narrow).unwrap_err().to_string();
        assert!(text.contains("100 samples"), "{text}");
        assert!(model.run_stage(model.stages(), &x).is_err());
        assert!(model.forward(model.exits().len(), &x).is_err());
        // Activations of stage 0 are no input, and an input is no activations.
        assert!(model.head(0, &x).is_err());
    }
}
