//! The operations that a GPU computes with, on a CPU that stands in for it: for every shipped
//! network and one that is not shipped, the logits are those of the CPU's kernels; in half
//! precision the probabilities are nearly the same.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_models::{
    Precision, StagedModel, Zoo, load_variant, load_variant_at, load_variant_standing_in,
};

/// Largest difference of two logits, relative to the largest of them.
const TOLERANCE: f32 = 1e-4;

/// Largest difference of two probabilities in half precision.
const HALF: f32 = 0.02;

const BATCH: usize = 3;

/// Noise: `[BATCH, samples]`.
fn noise(samples: usize) -> Tensor {
    let mut rng = Pcg64::seed_from_u64(11);
    let values: Vec<f32> = (0..BATCH * samples)
        .map(|_| rng.random_range(-1.0..1.0))
        .collect();
    Tensor::from_vec(values, (BATCH, samples), &Device::Cpu).unwrap()
}

/// Logits of an exit, and the type of the last stage's result.
fn logits(model: &dyn StagedModel, exit: usize, x: &Tensor) -> (Vec<f32>, DType) {
    let mut x = x.clone();
    for stage in 0..model.exits()[exit] {
        x = model.run_stage(stage, &x).unwrap();
    }
    let logits = model.logits(exit, &x).unwrap();
    let logits = logits.to_dtype(DType::F32).unwrap();
    (logits.flatten_all().unwrap().to_vec1().unwrap(), x.dtype())
}

/// Compares the variant in `dir`, loaded as on a GPU, with itself on the CPU's kernels.
fn check(dir: &Path, samples: usize) {
    let name = dir.display();
    let ours = load_variant(dir, &Device::Cpu).unwrap();
    let full = load_variant_standing_in(dir, Precision::F32).unwrap();
    let half = load_variant_standing_in(dir, Precision::F16).unwrap();
    assert_eq!(full.bytes, ours.bytes);
    let x = noise(samples);
    for exit in 0..ours.model.exits().len() {
        let (want, _) = logits(&*ours.model, exit, &x);
        let (found, dtype) = logits(&*full.model, exit, &x);
        assert_eq!(dtype, DType::F32, "{name}");
        let scale = want.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (want, found) in want.iter().zip(&found) {
            let apart = (want - found).abs();
            assert!(apart <= TOLERANCE * scale, "{name} {exit}: {found} {want}");
        }
        let probabilities = |model: &dyn StagedModel| {
            let answer = model.forward(exit, &x).unwrap();
            assert_eq!(answer.dtype(), DType::F32, "{name}");
            answer.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        let pairs = probabilities(&*ours.model);
        let pairs = pairs.iter().zip(probabilities(&*half.model));
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(worst > 0.0, "{name} {exit}: not computed in fewer bits");
        assert!(worst < HALF, "{name} {exit}: {worst}");
    }
}

#[test]
fn every_shipped_network_answers_as_on_the_cpus_kernels() {
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo")).unwrap();
    let mut count = 0;
    for variant in zoo.apps.iter().flat_map(|app| &app.variants) {
        check(&variant.dir, variant.card.architecture.samples());
        count += 1;
    }
    assert!(count >= 14, "{count} variants");
}

/// The one architecture that neither the zoo nor the parity tests have.
#[test]
fn a_plain_network_of_linear_layers_does_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Pcg64::seed_from_u64(5);
    let mut tensors = HashMap::new();
    let shapes: [(&str, Vec<usize>); 4] = [
        ("layer0.weight", vec![12, 20]),
        ("layer0.bias", vec![20]),
        ("head.weight", vec![20, 3]),
        ("head.bias", vec![3]),
    ];
    for (name, shape) in shapes {
        let count = shape.iter().product();
        let values = (0..count).map(|_| rng.random_range(-0.5..0.5)).collect();
        let tensor = Tensor::from_vec::<_, f32>(values, shape, &Device::Cpu).unwrap();
        tensors.insert(name, tensor);
    }
    candle_core::safetensors::save(&tensors, dir.path().join("model.safetensors")).unwrap();
    let card = r#"
name = "mlp"
summary = "Linear layers of random weights"
weights = "model.safetensors"
parameters = 323
stages = 1
max_batch = 8
[architecture]
kind = "mlp"
samples = 12
classes = 3
layers = [20]
[[exits]]
name = "final"
after_stage = 1
accuracy = 0.5
[provenance]
command = "none"
data = "none"
"#;
    std::fs::write(dir.path().join("model.toml"), card).unwrap();
    check(dir.path(), 12);
}

/// A GPU keeps all parameters in 16 bits, a CPU only the weights of products.
#[test]
fn half_precision_takes_half_the_memory_on_a_gpu() {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/images/resnet20");
    let full = load_variant(&zoo, &Device::Cpu).unwrap().bytes;
    let kept = load_variant_at(&zoo, Precision::F16, &Device::Cpu).unwrap();
    let on_gpu = load_variant_standing_in(&zoo, Precision::F16).unwrap();
    assert_eq!(on_gpu.bytes * 2, full);
    assert!(on_gpu.bytes < kept.bytes, "{} {}", on_gpu.bytes, kept.bytes);
    let (_, dtype) = logits(&*on_gpu.model, 0, &noise(3 * 32 * 32));
    assert_eq!(dtype, DType::F16);
}
