//! A quick training run goes through every step and writes a zoo that loads.
#![allow(clippy::unwrap_used)]

use candle_core::Device;
use switchyard_models::{Zoo, load_variant};
use switchyard_training::train::{Silent, TrainOptions, train};

fn options(out: &std::path::Path, variants: &[&str]) -> TrainOptions {
    TrainOptions {
        out: out.to_path_buf(),
        seed: 3,
        quick: true,
        variants: Some(variants.iter().map(|&name| name.to_owned()).collect()),
    }
}

#[test]
fn a_quick_run_lowers_the_loss_and_writes_a_zoo() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("heart");
    let report = train(
        "heart",
        &options(&out, &["cnn-small", "sneakpeek"]),
        &Silent,
    )
    .unwrap();
    let [small] = &report.variants[..] else {
        panic!("{report:?}");
    };
    assert!(small.last_loss < small.first_loss - 0.02, "{small:?}");
    assert!(report.sneakpeek_accuracy.unwrap() > 1.0 / 7.0, "{report:?}");

    let zoo = Zoo::open(dir.path()).unwrap();
    let app = zoo.app("heart").unwrap();
    let loaded = load_variant(&app.variant("cnn-small").unwrap().dir, &Device::Cpu).unwrap();
    assert_eq!(loaded.card.parameters, small.parameters);
    assert!((loaded.card.exits[0].accuracy - small.exit_accuracies[0]).abs() < 1e-3);
    assert!(app.sneakpeek().unwrap().is_some());

    // A later run without the evidence keeps it in the card.
    let before = app.card.sneakpeek.clone();
    train("heart", &options(&out, &["cnn-small"]), &Silent).unwrap();
    let again = Zoo::open(dir.path()).unwrap();
    assert_eq!(again.app("heart").unwrap().card.sneakpeek, before);
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let read = || {
        let dir = tempfile::tempdir().unwrap();
        train("heart", &options(dir.path(), &["cnn-small"]), &Silent).unwrap();
        let file = |name: &str| std::fs::read(dir.path().join("cnn-small").join(name)).unwrap();
        (file("model.toml"), file("weights.safetensors"))
    };
    assert_eq!(read(), read());
}

#[test]
fn an_unknown_variant_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("heart");
    let text = train("heart", &options(&out, &["cnn-large"]), &Silent)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("`cnn-large`") && text.contains("resnet"),
        "{text}"
    );
    assert!(!out.exists());
}
