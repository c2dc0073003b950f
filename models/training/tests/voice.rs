//! The voice application, from its data to its shipped networks.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_models::{LoadedVariant, Zoo, load_variant};
use switchyard_training::data::stratified;
use switchyard_training::train::{Silent, TrainOptions, train};
use switchyard_training::voice::{CLASSES, SAMPLES, Voice};

fn zoo() -> Zoo {
    Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo")).unwrap()
}

fn shipped() -> Vec<LoadedVariant> {
    let zoo = zoo();
    let variants = &zoo.app("voice").unwrap().variants;
    variants
        .iter()
        .map(|variant| load_variant(&variant.dir, &Device::Cpu).unwrap())
        .collect()
}

/// 18 clips: more than one slice of every variant, and no multiple of a slice.
fn batch() -> Tensor {
    let values: Vec<f32> = stratified(&Voice, 21, 3)
        .into_iter()
        .flat_map(|sample| sample.values)
        .collect();
    Tensor::from_vec(values, (3 * CLASSES, SAMPLES), &Device::Cpu).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f32> {
    x.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn three_variants_of_different_accuracy_are_shipped() {
    let variants = shipped();
    let finals: Vec<(&str, f64)> = variants
        .iter()
        .map(|variant| {
            let exits = &variant.card.exits;
            (variant.card.name.as_str(), exits[exits.len() - 1].accuracy)
        })
        .collect();
    let [lstm, large, small] = finals[..] else {
        panic!("{finals:?}");
    };
    assert_eq!(
        [lstm.0, large.0, small.0],
        ["lstm", "mobilenet", "mobilenet-s"]
    );
    assert!(
        large.1 > small.1 + 0.02 && large.1 > lstm.1 + 0.02,
        "{finals:?}"
    );
    assert!(
        finals
            .iter()
            .all(|(_, accuracy)| (0.7..0.99).contains(accuracy))
    );
    assert!(variants.iter().all(|variant| variant.card.stages > 1));
    let bytes: u64 = variants.iter().map(|variant| variant.bytes).sum();
    assert!(bytes < 3_000_000, "{bytes}");
}

#[test]
fn shipped_networks_are_as_good_as_their_cards_say() {
    let samples = stratified(&Voice, 77, 20);
    let values: Vec<f32> = samples.iter().flat_map(|s| s.values.clone()).collect();
    let x = Tensor::from_vec(values, (samples.len(), SAMPLES), &Device::Cpu).unwrap();
    for variant in shipped() {
        for (exit, card) in variant.card.exits.iter().enumerate() {
            let labels = variant.model.forward(exit, &x).unwrap().argmax(1).unwrap();
            let labels = labels.to_vec1::<u32>().unwrap();
            let right = labels.iter().zip(&samples);
            let right = right
                .filter(|(label, s)| **label as usize == s.label)
                .count();
            let share = right as f64 / samples.len() as f64;
            // Three standard deviations of a share of 120.
            let gap = (share - card.accuracy).abs();
            assert!(gap < 0.12, "{} {}: {share}", variant.card.name, card.name);
        }
    }
}

#[test]
fn stages_then_head_equal_the_whole_run() {
    let x = batch();
    for variant in shipped() {
        let model = variant.model;
        for (exit, &after) in model.exits().iter().enumerate() {
            let mut activations = x.clone();
            for stage in 0..after {
                activations = model.run_stage(stage, &activations).unwrap();
            }
            let staged = model.head(exit, &activations).unwrap();
            let whole = model.forward(exit, &x).unwrap();
            assert_eq!(numbers(&staged), numbers(&whole), "{}", variant.card.name);
        }
    }
}

#[test]
fn a_clip_is_answered_alike_in_any_batch() {
    let x = batch();
    for variant in shipped() {
        let model = variant.model;
        let last = model.exits().len() - 1;
        let together = model.forward(last, &x).unwrap();
        for i in 0..x.dim(0).unwrap() {
            let alone = model.forward(last, &x.narrow(0, i, 1).unwrap()).unwrap();
            let row = numbers(&together.narrow(0, i, 1).unwrap());
            for (a, b) in numbers(&alone).iter().zip(row) {
                assert!((a - b).abs() < 1e-4, "{} {i}: {a} {b}", variant.card.name);
            }
        }
        // Split after the first stage, as if part of a batch were preempted.
        let half = model.run_stage(0, &x).unwrap();
        let mut rest = half.narrow(0, 3, 4).unwrap();
        for stage in 1..model.stages() {
            rest = model.run_stage(stage, &rest).unwrap();
        }
        let rest = numbers(&model.head(last, &rest).unwrap());
        for (a, b) in rest.iter().zip(numbers(&together.narrow(0, 3, 4).unwrap())) {
            assert!((a - b).abs() < 1e-4, "{}: {a} {b}", variant.card.name);
        }
    }
}

#[test]
fn wrong_calls_are_errors() {
    let x = batch();
    for variant in shipped() {
        let model = variant.model;
        let narrow = x.narrow(1, 0, 100).unwrap();
        let text = model.run_stage(0, &narrow).unwrap_err().to_string();
        assert!(text.contains("100 samples"), "{text}");
        assert!(model.run_stage(model.stages(), &x).is_err());
        assert!(model.forward(model.exits().len(), &x).is_err());
        assert!(model.head(0, &x).is_err());
    }
}

#[test]
fn evidence_beats_chance_and_does_not_replace_a_network() {
    let zoo = zoo();
    let app = zoo.app("voice").unwrap();
    let card = app.card.sneakpeek.as_ref().unwrap();
    assert!((0.35..0.9).contains(&card.accuracy), "{}", card.accuracy);
    assert!(app.sneakpeek().unwrap().is_some());
}

#[test]
fn a_quick_run_lowers_the_loss_and_writes_a_zoo() {
    let dir = tempfile::tempdir().unwrap();
    let options = TrainOptions {
        out: dir.path().join("voice"),
        seed: 3,
        quick: true,
        variants: Some(vec!["lstm".to_owned(), "mobilenet-s".to_owned()]),
    };
    let report = train("voice", &options, &Silent).unwrap();
    assert_eq!(report.variants.len(), 2);
    for variant in &report.variants {
        assert!(variant.last_loss < variant.first_loss - 0.02, "{variant:?}");
    }
    let zoo = Zoo::open(dir.path()).unwrap();
    let app = zoo.app("voice").unwrap();
    for variant in &app.variants {
        load_variant(&variant.dir, &Device::Cpu).unwrap();
    }
}
