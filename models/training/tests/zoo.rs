//! The shipped zoo keeps the promises of its cards.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use candle_core::{D, Device, Tensor};
use switchyard_models::zoo::ZooApp;
use switchyard_models::{StagedModel, Zoo, load_variant};
use switchyard_training::Confusion;
use switchyard_training::data::{Sample, stratified};
use switchyard_training::heart::{Heart, SAMPLES, workload_mix};

/// Not a seed of the training run: its streams are derived from seed 1.
const FRESH_SEED: u64 = 987_654_321;

fn heart() -> ZooApp {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo");
    let zoo = Zoo::open(&dir).unwrap();
    zoo.app("heart").unwrap().clone()
}

fn classify(model: &dyn StagedModel, exit: usize, beats: &[Sample]) -> Confusion {
    let mut confusion = Confusion::new(model.classes());
    for batch in beats.chunks(32) {
        let values: Vec<f32> = batch.iter().flat_map(|b| b.values.clone()).collect();
        let x = Tensor::from_vec(values, (batch.len(), SAMPLES), &Device::Cpu).unwrap();
        let probabilities = model.forward(exit, &x).unwrap();
        let labels: Vec<u32> = probabilities.argmax(D::Minus1).unwrap().to_vec1().unwrap();
        for (beat, label) in batch.iter().zip(labels) {
            confusion.record(beat.label, label as usize);
        }
    }
    confusion
}

#[test]
fn every_exit_reaches_its_card_on_fresh_beats() {
    let beats = stratified(&Heart, FRESH_SEED, 300);
    for variant in heart().variants {
        let loaded = load_variant(&variant.dir, &Device::Cpu).unwrap();
        for (exit, card) in loaded.card.exits.iter().enumerate() {
            let accuracy = classify(loaded.model.as_ref(), exit, &beats).accuracy();
            let (name, stated) = (&variant.card.name, card.accuracy);
            assert!(
                (accuracy - stated).abs() < 0.02,
                "{name} {}: {accuracy}, the card says {stated}",
                card.name
            );
        }
    }
}

#[test]
fn the_evidence_reaches_its_card_on_fresh_beats() {
    let app = heart();
    let sneakpeek = app.sneakpeek().unwrap().unwrap();
    let card = app.card.sneakpeek.unwrap();
    let mut confusion = Confusion::new(sneakpeek.classes());
    let mut counts = Vec::new();
    for beat in stratified(&Heart, FRESH_SEED, 300) {
        sneakpeek.counts(&beat.values, card.k, &mut counts);
        assert_eq!(counts.iter().sum::<u32>() as usize, card.k);
        let weight = |i: &usize| card.prior[*i] + f64::from(counts[*i]);
        let best = (0..counts.len())
            .rev()
            .max_by(|a, b| weight(a).total_cmp(&weight(b)))
            .unwrap();
        confusion.record(beat.label, best);
    }
    let accuracy = confusion.accuracy();
    assert!(
        (accuracy - card.accuracy).abs() < 0.03,
        "{accuracy}, the card says {}",
        card.accuracy
    );
}

/// The conditions under which scheduling by data pays: more time buys accuracy, and variants differ
/// in the classes they get wrong.
#[test]
fn variants_differ_in_accuracy_and_in_classes() {
    let app = heart();
    let last = |name: &str| {
        app.variant(name)
            .unwrap()
            .card
            .exits
            .last()
            .unwrap()
            .clone()
    };
    let (small, cnn, resnet) = (last("cnn-small"), last("cnn"), last("resnet"));
    assert!(small.accuracy + 0.05 < cnn.accuracy && cnn.accuracy + 0.01 < resnet.accuracy);
    // Also on the mix of a monitor, although most of it is normal beats.
    let seen = |recall: &[f64]| -> f64 {
        let shares = workload_mix().into_iter().zip(recall);
        shares.map(|(share, recall)| share * recall).sum()
    };
    let [small_seen, cnn_seen, resnet_seen] =
        [&small, &cnn, &resnet].map(|exit| seen(&exit.recall));
    assert!(small_seen < cnn_seen && cnn_seen < resnet_seen);
    let evidence = app.card.sneakpeek.as_ref().unwrap().accuracy;
    // An answer from evidence is never the most accurate (SneakPeek section 6.3.1).
    assert!((0.5..cnn.accuracy).contains(&evidence));
    let gap: Vec<f64> = resnet
        .recall
        .iter()
        .zip(&small.recall)
        .map(|(a, b)| a - b)
        .collect();
    let most = gap.iter().copied().fold(f64::MIN, f64::max);
    let least = gap.iter().copied().fold(f64::MAX, f64::min);
    assert!(most - least > 0.2, "{gap:?}");
    let exits = &app.variant("resnet").unwrap().card.exits;
    assert!(exits.is_sorted_by(|a, b| a.accuracy < b.accuracy));
}

#[test]
fn the_card_states_the_generators_mix() {
    let app = heart();
    for (stated, share) in app.card.workload_mix.iter().zip(workload_mix()) {
        assert!((stated - share).abs() < 1e-3);
    }
    assert_eq!(app.card.inputs[0].fixed_shape(), Some(vec![SAMPLES]));
}
