//! Weights and evidence as safetensors.

use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_models::features::Features;
use switchyard_models::{SneakPeek, load_variant};
use tempfile::TempDir;

use super::mutate::Form;
use super::target::{BACKTRACE_BYTES, Target, root, seeds};

const VARIANT: &str = "models/zoo/heart/cnn-small";

/// A folder with the card of the variant.
pub(crate) fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let card = root().join(VARIANT).join("model.toml");
    std::fs::copy(card, folder.path().join("model.toml")).unwrap();
    folder
}

pub(crate) fn read(folder: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(folder.join("weights.safetensors"), bytes).unwrap();
    let loaded = load_variant(folder, &Device::Cpu).map_err(|error| error.to_string())?;
    let x = Tensor::ones((2, 187), candle_core::DType::F32, &Device::Cpu).unwrap();
    let answer = loaded
        .model
        .forward(0, &x)
        .map_err(|error| error.to_string())?;
    assert_eq!(answer.dims(), [2, 7]);
    Ok(())
}

#[test]
fn weights() {
    let folder = folder();
    let target = Target {
        name: "safetensors weights",
        seeds: seeds(&["models/zoo/heart/cnn-small/weights.safetensors"]),
        form: Form::Binary,
        executions: 1_000,
        accepted_min: 0.1,
        memory_max: (BACKTRACE_BYTES, 64),
    };
    target.run(|bytes| read(folder.path(), bytes));
}

pub(crate) fn read_evidence(folder: &Path, bytes: &[u8]) -> Result<(), String> {
    let file = folder.join("sneakpeek.safetensors");
    std::fs::write(&file, bytes).unwrap();
    let peek = SneakPeek::open(&file, Features::Raw, 187, 7).map_err(|error| error.to_string())?;
    let mut counts = Vec::new();
    peek.counts(&[0.5; 187], 5, &mut counts);
    assert_eq!(counts.len(), 7);
    if peek.votes() {
        peek.vote(&[0.5; 187], &mut counts);
    }
    Ok(())
}

#[test]
fn evidence() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "safetensors evidence",
        seeds: seeds(&["models/zoo/heart/sneakpeek.safetensors"]),
        form: Form::Binary,
        executions: 600,
        accepted_min: 0.1,
        memory_max: (BACKTRACE_BYTES, 64),
    };
    target.run(|bytes| read_evidence(folder.path(), bytes));
}
