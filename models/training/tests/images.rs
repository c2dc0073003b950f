//! The shipped image networks: the figures of their cards, and the promises of `StagedModel`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_models::{LoadedVariant, Zoo, load_variant};
use switchyard_training::data::stratified;
use switchyard_training::images::{CLASSES, Images, SAMPLES};
use switchyard_training::train::USEFUL_SHARE;

/// Fastest first.
const NAMES: [&str; 3] = ["resnet20", "resnet32", "resnet56"];

fn shipped() -> Vec<LoadedVariant> {
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo")).unwrap();
    let app = zoo.app("images").unwrap();
    NAMES
        .iter()
        .map(|name| load_variant(&app.variant(name).unwrap().dir, &Device::Cpu).unwrap())
        .collect()
}

/// Images that no card was measured on.
fn images(per_class: usize) -> (Tensor, Vec<usize>) {
    let samples = stratified(&Images, 77, per_class);
    let labels = samples.iter().map(|sample| sample.label).collect();
    let values: Vec<f32> = samples.into_iter().flat_map(|s| s.values).collect();
    let shape = (per_class * CLASSES, SAMPLES);
    (
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap(),
        labels,
    )
}

#[test]
fn depth_pays() {
    let variants = shipped();
    let bytes: u64 = variants.iter().map(|variant| variant.bytes).sum();
    assert!(bytes < 8_000_000, "{bytes}");
    for variant in &variants {
        let exits = variant.card.exits.iter().map(|exit| exit.accuracy);
        let exits: Vec<f64> = exits.collect();
        // Exits differ in accuracy, and each is worth taking.
        assert!(exits.len() >= 2, "{exits:?}");
        assert!(exits.is_sorted_by(|a, b| a < b), "{exits:?}");
        let last = exits[exits.len() - 1];
        assert!(exits[0] >= USEFUL_SHARE * last && last > 0.95, "{exits:?}");
        assert!(variant.card.stages >= 6);
    }
    let finals = variants
        .iter()
        .map(|v| v.card.exits.last().unwrap().accuracy);
    assert!(finals.is_sorted_by(|a, b| a < b));
}

#[test]
fn every_exit_reaches_its_card_on_fresh_images() {
    let (x, labels) = images(10);
    for variant in shipped() {
        let mut x = x.clone();
        for stage in 0..variant.model.stages() {
            x = variant.model.run_stage(stage, &x).unwrap();
            let exits = variant.model.exits().iter();
            for (exit, _) in exits.enumerate().filter(|(_, after)| **after == stage + 1) {
                let answers = variant.model.logits(exit, &x).unwrap().argmax(1).unwrap();
                let answers: Vec<u32> = answers.to_vec1().unwrap();
                let pairs = answers.iter().zip(&labels);
                let right = pairs.filter(|(a, b)| **a as usize == **b).count();
                let share = right as f64 / labels.len() as f64;
                let card = variant.card.exits[exit].accuracy;
                // Three standard deviations of a share of 240 images.
                assert!(
                    (share - card).abs() < 0.1,
                    "{} {exit}: {share} {card}",
                    variant.card.name
                );
            }
        }
    }
}

#[test]
fn batches_may_be_cut_between_stages() {
    let (x, _) = images(1);
    for variant in shipped() {
        let model = variant.model;
        let last = model.exits().len() - 1;
        let whole = model.forward(last, &x).unwrap();
        let cut = model.stages() / 2;
        let mut parked = x.clone();
        for stage in 0..cut {
            parked = model.run_stage(stage, &parked).unwrap();
        }
        let mut rest = parked.narrow(0, 5, 3).unwrap();
        for stage in cut..model.stages() {
            rest = model.run_stage(stage, &rest).unwrap();
        }
        let rest = model.head(last, &rest).unwrap().to_vec2::<f32>().unwrap();
        let want = whole.narrow(0, 5, 3).unwrap().to_vec2::<f32>().unwrap();
        for (a, b) in rest.concat().iter().zip(want.concat()) {
            assert!((a - b).abs() < 1e-4, "{}: {a} {b}", variant.card.name);
        }
    }
}

#[test]
fn images_of_another_size_are_an_error() {
    let x = Tensor::zeros((1, SAMPLES - 3), candle_core::DType::F32, &Device::Cpu).unwrap();
    for variant in shipped() {
        let text = variant.model.run_stage(0, &x).unwrap_err().to_string();
        assert!(text.contains("3069 samples"), "{text}");
        assert!(variant.model.run_stage(variant.card.stages, &x).is_err());
        let exits = variant.card.exits.len();
        assert!(variant.model.logits(exits, &x).is_err());
    }
}
