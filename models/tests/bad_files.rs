//! Damaged cards and weights are refused with the file, the field or tensor, and the reason.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use switchyard_models::features::Features;
use switchyard_models::{SneakPeek, Zoo, load_variant};
use tempfile::TempDir;

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/heart")
}

/// A copy of the heart application with one variant, `cnn-small`.
fn copy() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("heart");
    let variant = app.join("cnn-small");
    std::fs::create_dir_all(&variant).unwrap();
    for file in [
        "app.toml",
        "sneakpeek.safetensors",
        "cnn-small/model.toml",
        "cnn-small/weights.safetensors",
    ] {
        std::fs::copy(shipped().join(file), app.join(file)).unwrap();
    }
    (dir, variant)
}

/// Loads the variant and returns the refusal, which must name `file`.
fn refusal(variant: &Path, file: &str) -> String {
    let Err(error) = load_variant(variant, &Device::Cpu) else {
        panic!("a damaged {file} was loaded");
    };
    let text = error.to_string();
    assert!(text.contains(file), "{text}");
    text
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "`{from}` not in {}", file.display());
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

fn rewrite(file: &Path, change: impl FnOnce(&mut HashMap<String, Tensor>)) {
    let mut tensors = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
    change(&mut tensors);
    candle_core::safetensors::save(&tensors, file).unwrap();
}

#[test]
fn a_missing_file_is_named() {
    let (_dir, variant) = copy();
    std::fs::remove_file(variant.join("weights.safetensors")).unwrap();
    refusal(&variant, "weights.safetensors");
    std::fs::remove_file(variant.join("model.toml")).unwrap();
    refusal(&variant, "model.toml");
}

#[test]
fn a_weights_file_cut_anywhere_is_refused() {
    let (_dir, variant) = copy();
    let file = variant.join("weights.safetensors");
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 4, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        refusal(&variant, "weights.safetensors");
    }
}

#[test]
fn a_weights_file_of_noise_is_refused() {
    let (_dir, variant) = copy();
    let file = variant.join("weights.safetensors");
    let noise: Vec<u8> = (0..5000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&file, noise).unwrap();
    refusal(&variant, "weights.safetensors");
}

#[test]
fn weights_that_are_all_zero_are_refused() {
    let (_dir, variant) = copy();
    let file = variant.join("weights.safetensors");
    let zeros = |tensor: &Tensor| tensor.zeros_like().unwrap();
    rewrite(&file, |tensors| {
        let biases = tensors.iter_mut().filter(|(name, _)| name.contains("bias"));
        biases.for_each(|(_, bias)| *bias = zeros(bias));
    });
    load_variant(&variant, &Device::Cpu).unwrap();
    rewrite(&file, |tensors| {
        tensors
            .values_mut()
            .for_each(|tensor| *tensor = zeros(tensor));
    });
    let said = refusal(&variant, "weights.safetensors");
    assert!(said.contains("every value of every tensor is 0"), "{said}");
}

#[test]
fn a_missing_tensor_is_named() {
    let (_dir, variant) = copy();
    rewrite(&variant.join("weights.safetensors"), |tensors| {
        tensors.remove("layer1.weight").unwrap();
    });
    let text = refusal(&variant, "weights.safetensors");
    assert!(text.contains("`layer1.weight`: missing"), "{text}");
}

#[test]
fn a_left_over_tensor_is_named() {
    let (_dir, variant) = copy();
    rewrite(&variant.join("weights.safetensors"), |tensors| {
        let extra = tensors["head.bias"].clone();
        tensors.insert("extra".to_owned(), extra);
    });
    let text = refusal(&variant, "weights.safetensors");
    assert!(text.contains("`extra`: not part"), "{text}");
}

#[test]
fn a_tensor_of_another_shape_is_named() {
    let (_dir, variant) = copy();
    rewrite(&variant.join("weights.safetensors"), |tensors| {
        let short = tensors["head.bias"].narrow(0, 0, 3).unwrap();
        tensors.insert("head.bias".to_owned(), short.contiguous().unwrap());
    });
    let text = refusal(&variant, "weights.safetensors");
    assert!(
        text.contains("`head.bias`: shape [3], the architecture needs [7]"),
        "{text}"
    );
}

#[test]
fn a_tensor_of_another_type_is_named() {
    let (_dir, variant) = copy();
    rewrite(&variant.join("weights.safetensors"), |tensors| {
        let double = tensors["head.bias"].to_dtype(DType::F64).unwrap();
        tensors.insert("head.bias".to_owned(), double);
    });
    let text = refusal(&variant, "weights.safetensors");
    assert!(
        text.contains("`head.bias`: type F64, must be F32"),
        "{text}"
    );
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    let (_dir, variant) = copy();
    rewrite(&variant.join("weights.safetensors"), |tensors| {
        let nan = Tensor::full(f32::NAN, 7, &Device::Cpu).unwrap();
        tensors.insert("head.bias".to_owned(), nan.contiguous().unwrap());
    });
    let text = refusal(&variant, "weights.safetensors");
    assert!(text.contains("`head.bias`: value 0 is NaN"), "{text}");
}

#[test]
fn an_unknown_or_impossible_field_of_a_model_card_is_named() {
    for (from, to, named) in [
        (
            "max_batch = 32",
            "max_batch = 32\nmax_batches = 1",
            "max_batches",
        ),
        ("max_batch = 32", "", "max_batch"),
        ("max_batch = 32", "max_batch = 0", "`max_batch`"),
        ("max_batch = 32", "max_batch = \"32\"", "max_batch"),
        ("kind = \"cnn1d\"", "kind = \"transformer\"", "transformer"),
        ("stages = 2", "stages = 3", "`stages`"),
        ("after_stage = 2", "after_stage = 1", "`exits`"),
        ("samples = 187", "samples = 0", "`architecture.samples`"),
        (
            "channels = 24",
            "channels = 99999999999",
            "`architecture.layers[0].channels`",
        ),
        (
            "stride = 1",
            "stride = 0",
            "`architecture.layers[0].stride`",
        ),
        (
            "stride = 1",
            "stride = 2",
            "`architecture.layers[0].kernel`",
        ),
        ("weights = \"", "weights = \"../", "`weights`"),
        ("accuracy = 0.", "accuracy = 1.", "`exits[0].accuracy`"),
        ("recall = [0.", "recall = [1.", "`exits[0].recall`"),
    ] {
        let (_dir, variant) = copy();
        edit(&variant.join("model.toml"), from, to);
        let text = refusal(&variant, "model.toml");
        assert!(text.contains(named), "{to}: {text}");
    }
}

#[test]
fn an_impossible_application_card_is_refused_with_its_field() {
    for (from, to, named) in [
        ("name = \"heart\"", "name = \"lungs\"", "`name`"),
        ("slo_ms = ", "slo_ms = -", "`slo_ms`"),
        ("penalty = \"", "penalty = \"very-", "penalty"),
        (
            "workload_mix = [0.8",
            "workload_mix = [0.9",
            "`workload_mix`",
        ),
        ("k = 5", "k = 0", "`sneakpeek.k`"),
        ("prior = [0.5", "prior = [0.0", "`sneakpeek.prior`"),
        ("classes = [\"N\", ", "classes = [", "`workload_mix`"),
        ("datatype = \"FP32\"", "datatype = \"FP31\"", "FP31"),
    ] {
        let (dir, _variant) = copy();
        edit(&dir.path().join("heart/app.toml"), from, to);
        let Err(error) = Zoo::open(dir.path()) else {
            panic!("{to} was accepted");
        };
        let text = error.to_string();
        assert!(
            text.contains("app.toml") && text.contains(named),
            "{to}: {text}"
        );
    }
}

#[test]
fn a_variant_must_fit_its_application() {
    let (dir, variant) = copy();
    edit(
        &variant.join("model.toml"),
        "samples = 187",
        "samples = 188",
    );
    let text = Zoo::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("`architecture.samples`"), "{text}");
}

#[test]
fn damaged_evidence_is_refused_with_its_tensor() {
    let (dir, _variant) = copy();
    let file = dir.path().join("heart/sneakpeek.safetensors");
    assert!(SneakPeek::open(&file, Features::Raw, 187, 7).is_ok());
    let refused = |samples, classes, named: &str| {
        let text = SneakPeek::open(&file, Features::Raw, samples, classes)
            .unwrap_err()
            .to_string();
        assert!(text.contains(named), "{text}");
    };
    refused(186, 7, "`hidden.weight`");
    refused(187, 6, "`labels`");
    rewrite(&file, |tensors| {
        tensors.remove("points").unwrap();
    });
    refused(187, 7, "`points`: missing");
    std::fs::write(&file, b"short").unwrap();
    refused(187, 7, "sneakpeek.safetensors");
}
