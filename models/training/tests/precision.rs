//! Reduced precision: the departure of the shipped networks from full precision, in probabilities
//! and in accuracy, and the memory saved.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_models::zoo::{ZooApp, ZooVariant};
use switchyard_models::{Precision, Zoo, load_variant, load_variant_at};
use switchyard_training::data::stratified;
use switchyard_training::train::{recipe, validate};

/// Not a seed of a training run.
const SEED: u64 = 987_654_321;
/// Most classes with an input.
const CLASSES: usize = 8;

fn zoo() -> Zoo {
    Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo")).unwrap()
}

/// The requests of the app's clients: one input of each of its first classes, as the variant reads
/// it.
fn inputs(app: &ZooApp, variant: &ZooVariant) -> Tensor {
    let recipe = recipe(&app.card.name).unwrap();
    let ranges = app
        .card
        .input_ranges(variant.card.inputs.as_deref())
        .unwrap();
    let samples = stratified(recipe.data(), SEED, 1);
    let rows = samples.iter().take(CLASSES);
    let values: Vec<f32> = rows
        .flat_map(|sample| {
            ranges
                .iter()
                .flat_map(|range| &sample.values[range.clone()])
        })
        .copied()
        .collect();
    let width = variant.card.architecture.samples();
    Tensor::from_vec(values, ((), width), &Device::Cpu).unwrap()
}

/// The largest difference of a probability at any exit.
fn departure(app: &ZooApp, variant: &ZooVariant, precision: Precision) -> f32 {
    let full = load_variant(&variant.dir, &Device::Cpu).unwrap().model;
    let narrow = load_variant_at(&variant.dir, precision, &Device::Cpu).unwrap();
    let x = inputs(app, variant);
    let mut worst = 0f32;
    for exit in 0..full.exits().len() {
        let numbers = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let pairs = numbers(full.forward(exit, &x).unwrap());
        let narrow = numbers(narrow.model.forward(exit, &x).unwrap());
        for (a, b) in pairs.iter().zip(narrow) {
            worst = worst.max((a - b).abs());
        }
    }
    worst
}

fn shipped(zoo: &Zoo) -> impl Iterator<Item = (&ZooApp, &ZooVariant)> {
    let apps = zoo.apps.iter();
    apps.flat_map(|app| app.variants.iter().map(move |variant| (app, variant)))
}

#[test]
fn probabilities_depart_little() {
    let zoo = zoo();
    for (app, variant) in shipped(&zoo) {
        for (precision, bound) in [
            (Precision::F16, 0.01),
            (Precision::Bf16, 0.05),
            (Precision::Int8, 0.2),
        ] {
            let worst = departure(app, variant, precision);
            let name = &variant.card.name;
            assert!(worst > 0.0, "{name}@{precision} is {name}");
            assert!(worst < bound, "{name}@{precision}: {worst}");
        }
    }
}

#[test]
fn memory_is_that_of_the_bits() {
    let zoo = zoo();
    for (_, variant) in shipped(&zoo) {
        let full = load_variant(&variant.dir, &Device::Cpu).unwrap().bytes;
        // In the smallest networks, biases and depthwise convolutions are a large part, in
        // MiniRocket the kernels.
        for (precision, share) in [
            (Precision::F16, 0.5..0.9),
            (Precision::Bf16, 0.5..0.9),
            (Precision::Int8, 0.25..0.85),
        ] {
            let narrow = load_variant_at(&variant.dir, precision, &Device::Cpu).unwrap();
            let ratio = narrow.bytes as f64 / full as f64;
            let name = &variant.card.name;
            assert!(share.contains(&ratio), "{name}@{precision}: {ratio}");
        }
    }
}

#[test]
fn heart_beats_are_told_apart_as_well() {
    let zoo = zoo();
    let app = zoo.app("heart").unwrap();
    for variant in &app.variants {
        let accuracies = |precision| {
            let loaded = load_variant_at(&variant.dir, precision, &Device::Cpu).unwrap();
            let exits = validate(&app.card, &variant.card, loaded.model.as_ref(), 100).unwrap();
            let exits = exits.iter().map(switchyard_training::Confusion::accuracy);
            exits.collect::<Vec<f64>>()
        };
        let full = accuracies(Precision::F32);
        for (precision, bound) in [
            (Precision::F16, 0.003),
            (Precision::Bf16, 0.003),
            (Precision::Int8, 0.01),
        ] {
            for (full, narrow) in full.iter().zip(accuracies(precision)) {
                let name = &variant.card.name;
                assert!(
                    (full - narrow).abs() <= bound,
                    "{name}@{precision}: {narrow}, {full} at full precision"
                );
            }
        }
    }
}
