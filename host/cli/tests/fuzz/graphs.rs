//! ONNX files: the header, the graph in the engine of this program, and values in another file.

use std::path::{Path, PathBuf};

use candle_core::Device;
use switchyard_models::onnx::copy_graph;
use switchyard_models::{RawData, RawTensor, card, load_variant};
use tempfile::TempDir;

use super::mutate::Form;
use super::target::{BACKTRACE_BYTES, Target};
use crate::onnx::{FLOAT, Graph, INT64, Node, OPEN, Value, Weight, integer};
use crate::onnx_zoo::{self, CARD, SAMPLES, perceptron};

/// The folder of the variant, in a zoo.
pub(crate) fn folder(card: &str) -> (TempDir, PathBuf) {
    let zoo = TempDir::new().unwrap();
    let folder = onnx_zoo::write(zoo.path());
    std::fs::write(folder.join("model.toml"), card).unwrap();
    (zoo, folder)
}

/// The card of a graph whose outputs are answered as they are.
pub(crate) fn card_of_tensors() -> String {
    CARD.replace("kind = \"onnx\"", "kind = \"onnx\"\ntask = \"tensors\"")
}

pub(crate) fn read(folder: &Path, bytes: &[u8], width: usize) -> Result<(), String> {
    std::fs::write(folder.join("model.onnx"), bytes).unwrap();
    let loaded = load_variant(folder, &Device::Cpu).map_err(|error| error.to_string())?;
    let numbers: Vec<u8> = (0..width).flat_map(|x| (x as f32).to_le_bytes()).collect();
    let row = RawTensor {
        datatype: card::Datatype::Fp32,
        shape: vec![1, width],
        data: RawData::Numbers(numbers.into()),
    };
    let graph = loaded.model.graph().unwrap();
    let answer = graph.run(&[("x".into(), row)]);
    answer.map(drop).map_err(|error| error.to_string())
}

#[test]
fn neural_graphs() {
    let (_zoo, folder) = folder(CARD);
    let target = Target {
        name: "ONNX network",
        seeds: vec![perceptron(1.0).bytes()],
        form: Form::Binary,
        executions: 1_000,
        accepted_min: 0.06,
        memory_max: (BACKTRACE_BYTES, 256),
    };
    target.run(|bytes| read(&folder, bytes, SAMPLES));
}

/// A small network of images of 4 by 3 positions: two convolutions, a gate, a sum and a head.
fn images() -> Graph {
    let weight = |name: &str, dims: &[i64]| {
        let count = dims.iter().product::<i64>();
        let numbers: Vec<f32> = (0..count).map(|at| (at as f32 * 0.7).sin()).collect();
        Weight::new(name, dims, &numbers)
    };
    let conv = |from: &str, weight: &str, to: &str| {
        let conv = Node::new("Conv", &[from, weight], to);
        conv.ints("pads", &[1; 4]).ints("strides", &[1; 2])
    };
    let mut depthwise = conv("b", "deep", "c");
    depthwise.attribute.push(integer("group", 2));
    Graph {
        nodes: vec![
            conv("x", "first", "a"),
            Node::new("Relu", &["a"], "b"),
            depthwise,
            Node::new("Sigmoid", &["c"], "d"),
            Node::new("Mul", &["c", "d"], "e"),
            Node::new("Add", &["e", "b"], "f"),
            Node::new("MaxPool", &["f"], "g")
                .ints("kernel_shape", &[2; 2])
                .ints("strides", &[2; 2]),
            Node::new("GlobalAveragePool", &["g"], "h"),
            Node::new("Flatten", &["h"], "i"),
            Node::new("Gemm", &["i", "head"], "logits"),
        ],
        weights: vec![
            weight("first", &[2, 1, 3, 3]),
            weight("deep", &[2, 1, 3, 3]),
            weight("head", &[2, 3]),
        ],
        inputs: vec![Value::new("x", FLOAT, Some(&[OPEN, 1, 4, 3]))],
        outputs: vec![Value::new("logits", FLOAT, Some(&[OPEN, 3]))],
    }
}

#[test]
fn graphs_of_images() {
    let (_zoo, folder) = folder(CARD);
    let target = Target {
        name: "ONNX network of images",
        seeds: vec![images().bytes()],
        form: Form::Binary,
        executions: 1_500,
        accepted_min: 0.05,
        memory_max: (BACKTRACE_BYTES, 256),
    };
    target.run(|bytes| read(&folder, bytes, SAMPLES));
}

/// The softmax of two linear functions, and a map of it.
fn regression() -> Graph {
    let linear = Node::new("LinearRegressor", &["x"], "scores").classic();
    let mut linear = linear
        .floats("coefficients", &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        .floats("intercepts", &[0.5, 0.0]);
    linear.attribute.push(integer("targets", 2));
    let mut label = Node::new("ArgMax", &["p"], "label");
    label.attribute.push(integer("axis", 1));
    label.attribute.push(integer("keepdims", 0));
    let maps = Node::new("ZipMap", &["p"], "maps").classic();
    Graph {
        nodes: vec![
            linear,
            Node::new("Softmax", &["scores"], "p"),
            label,
            maps.ints("classlabels_int64s", &[0, 1]),
        ],
        inputs: vec![Value::new("x", FLOAT, Some(&[OPEN, 3]))],
        outputs: vec![
            Value::new("label", INT64, Some(&[OPEN])),
            Value::maps("maps"),
        ],
        ..Graph::default()
    }
}

/// Two trees of one question each.
fn forest() -> Graph {
    let mut trees = Node::new("TreeEnsembleRegressor", &["x"], "y").classic();
    trees = trees
        .ints("nodes_treeids", &[0, 0, 0, 1, 1, 1])
        .ints("nodes_nodeids", &[0, 1, 2, 0, 1, 2])
        .ints("nodes_featureids", &[0, 0, 0, 2, 0, 0])
        .floats("nodes_values", &[0.5, 0.0, 0.0, 1.5, 0.0, 0.0])
        .ints("nodes_truenodeids", &[1, 0, 0, 1, 0, 0])
        .ints("nodes_falsenodeids", &[2, 0, 0, 2, 0, 0])
        .ints("target_treeids", &[0, 0, 1, 1])
        .ints("target_nodeids", &[1, 2, 1, 2])
        .ints("target_ids", &[0, 0, 0, 0])
        .floats("target_weights", &[1.0, 2.0, 4.0, 8.0]);
    trees = trees.strings("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"].repeat(2));
    trees.attribute.push(integer("n_targets", 1));
    Graph {
        nodes: vec![trees],
        inputs: vec![Value::new("x", FLOAT, Some(&[OPEN, 3]))],
        outputs: vec![Value::new("y", FLOAT, Some(&[OPEN, 1]))],
        ..Graph::default()
    }
}

#[test]
fn classic_graphs() {
    let (_zoo, folder) = folder(&card_of_tensors());
    let target = Target {
        name: "ONNX classic model",
        seeds: vec![regression().bytes(), forest().bytes()],
        form: Form::Binary,
        executions: 1_200,
        accepted_min: 0.02,
        memory_max: (BACKTRACE_BYTES, 256),
    };
    target.run(|bytes| read(&folder, bytes, 3));
}

#[test]
fn graphs_with_values_in_another_file() {
    let folder = TempDir::new().unwrap();
    let (graph, values) = perceptron(1.0).apart("graph.data");
    std::fs::write(folder.path().join("graph.data"), values).unwrap();
    let target = Target {
        name: "ONNX values in another file",
        seeds: vec![graph],
        form: Form::Binary,
        executions: 2_000,
        accepted_min: 0.1,
        memory_max: (BACKTRACE_BYTES, 16),
    };
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    target.run(|bytes| {
        std::fs::write(&from, bytes).unwrap();
        copy_graph(&from, &to).map_err(|error| error.to_string())
    });
}
