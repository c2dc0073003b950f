//! Graphs for tests, and a comparison with `embedded`.

#[allow(dead_code, unreachable_pub)]
#[path = "../../../tests/common/onnx.rs"]
mod onnx;

use std::path::Path;

pub(super) use self::onnx::{FLOAT, Graph, INT64, Node, OPEN, Value, Weight, integer};
use super::elements;
use super::embedded;
use super::engine::Engine;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{NamedTensor, Port, RawTensor};

pub(super) const FILE: &str = "model.onnx";

/// Numbers between -1 and 1.
pub(super) fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

pub(super) fn weight(name: &str, dims: &[i64]) -> Weight {
    let count = dims.iter().product::<i64>() as usize;
    let seed = name.bytes().map(u32::from).sum();
    Weight::new(name, dims, &numbers(count, seed))
}

pub(super) fn int(mut node: Node, name: &str, value: i64) -> Node {
    node.attribute.push(integer(name, value));
    node
}

/// A graph from `x` to `outputs`.
pub(super) fn graph(
    shape: &[i64],
    nodes: Vec<Node>,
    weights: Vec<Weight>,
    outputs: &[&str],
) -> Graph {
    let batch = [&[OPEN], shape].concat();
    let output = |name: &&str| Value::new(name, FLOAT, None);
    Graph {
        nodes,
        weights,
        inputs: vec![Value::new("x", FLOAT, Some(&batch))],
        outputs: outputs.iter().map(output).collect(),
    }
}

pub(super) fn ports(names: &[&str]) -> Vec<Port> {
    let port = |name: &&str| Port {
        name: (*name).into(),
        datatype: Datatype::Fp32,
        shape: None,
    };
    names.iter().map(port).collect()
}

pub(super) fn input(rows: usize, shape: &[i64]) -> RawTensor {
    let row = shape.iter().map(|&size| size as usize);
    let shape: Vec<usize> = std::iter::once(rows).chain(row).collect();
    let count = shape.iter().product();
    elements::tensor(Datatype::Fp32, shape, &numbers(count, 7))
}

pub(super) fn integers(name: &str, values: &[i64]) -> Weight {
    let mut weight = Weight::new(name, &[values.len() as i64], &[]);
    weight.data_type = INT64;
    weight.raw_data = values.iter().copied().flat_map(i64::to_le_bytes).collect();
    weight
}

pub(super) fn run(engine: &dyn Engine, x: &RawTensor) -> Vec<NamedTensor> {
    engine.run(&[("x", x)], None).unwrap()
}

/// Compares the answers of an engine with those of `embedded`, and each output alone with all.
pub(super) fn compare_with_embedded(
    ours: &dyn Engine,
    graph: &Graph,
    shape: &[i64],
    outputs: &[&str],
) {
    let bytes = graph.clone().bytes();
    let theirs = embedded::read(Path::new(FILE), bytes, &[], &ports(outputs), false).unwrap();
    for rows in [1, 3] {
        let x = input(rows, shape);
        let (found, wanted) = (run(ours, &x), run(&theirs, &x));
        assert_eq!(found.len(), wanted.len());
        for ((name, found), (other, wanted)) in found.iter().zip(&wanted) {
            assert_eq!((name, &found.shape), (other, &wanted.shape));
            let alone = ours.run(&[("x", &x)], Some(name)).unwrap();
            assert_eq!(alone, [(name.clone(), found.clone())]);
            let (found, wanted) = (elements::floats(found), elements::floats(wanted));
            let (found, wanted) = (found.unwrap(), wanted.unwrap());
            let largest = wanted
                .iter()
                .fold(1f32, |most, value| most.max(value.abs()));
            for (found, wanted) in found.iter().zip(&wanted) {
                let difference = (found - wanted).abs() / largest;
                assert!(difference < 1e-5, "{name}: {found} for {wanted}");
            }
        }
    }
}
