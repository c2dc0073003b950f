//! A zoo of one app whose two variants are the same perceptron: one as tensors, one as a graph.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

use super::onnx::Graph;

pub(crate) const SAMPLES: usize = 12;
pub(crate) const HIDDEN: usize = 6;
pub(crate) const CLASSES: usize = 3;
/// Values in its weights.
pub(crate) const PARAMETERS: usize = (SAMPLES + 1) * HIDDEN + (HIDDEN + 1) * CLASSES;

const APP: &str = r#"
name = "pulse"
summary = "Three kinds of pulse."
classes = ["even", "odd", "none"]
slo_ms = 100.0
penalty = "step"

[[inputs]]
name = "pulse"
datatype = "FP32"
shape = [12]

[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [3]
"#;

/// The fields that a graph's card must have.
pub(crate) const CARD: &str = r#"
name = "graph"
summary = "A perceptron as a graph"
weights = "model.onnx"
max_batch = 16
stages = 1

[architecture]
kind = "onnx"

[[exits]]
name = "final"
after_stage = 1
accuracy = 0.9

[provenance]
command = "by hand"
data = "none"
"#;

/// The same for tensors.
fn plain_card() -> String {
    let architecture =
        format!("kind = \"mlp\"\nsamples = {SAMPLES}\nclasses = {CLASSES}\nlayers = [{HIDDEN}]\n");
    let weights = format!("\"weights.safetensors\"\nparameters = {PARAMETERS}");
    CARD.replace("\"graph\"", "\"plain\"")
        .replace("\"model.onnx\"", &weights)
        .replace("kind = \"onnx\"\n", &architecture)
}

/// Weights that are all different, small and of both signs; another `step` makes other ones.
pub(crate) fn weights(step: f32) -> [Vec<f32>; 4] {
    let mut at = 0.0;
    [SAMPLES * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES].map(|count| {
        let next = |_| {
            at += step;
            (at * 7.3_f32).sin() * 0.5
        };
        (0..count).map(next).collect()
    })
}

/// The graph of these weights.
pub(crate) fn perceptron(step: f32) -> Graph {
    Graph::perceptron([SAMPLES, HIDDEN, CLASSES], weights(step))
}

/// Writes the zoo; returns the folder of the graph.
pub(crate) fn write(zoo: &Path) -> PathBuf {
    let app = zoo.join("pulse");
    let (plain, graph) = (app.join("plain"), app.join("graph"));
    for folder in [&plain, &graph] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(app.join("app.toml"), APP).unwrap();
    std::fs::write(graph.join("model.toml"), CARD).unwrap();
    std::fs::write(graph.join("model.onnx"), perceptron(1.0).bytes()).unwrap();
    std::fs::write(plain.join("model.toml"), plain_card()).unwrap();
    let [w0, b0, w1, b1] = weights(1.0);
    let tensor = |values, shape: &[usize]| Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
    let tensors = HashMap::from([
        ("layer0.weight", tensor(w0, &[SAMPLES, HIDDEN])),
        ("layer0.bias", tensor(b0, &[HIDDEN])),
        ("head.weight", tensor(w1, &[HIDDEN, CLASSES])),
        ("head.bias", tensor(b1, &[CLASSES])),
    ]);
    candle_core::safetensors::save(&tensors, plain.join("weights.safetensors")).unwrap();
    graph
}
