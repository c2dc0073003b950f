//! Graphs next to the answers of `embedded`.

use std::path::Path;

use bytes::Bytes;
use prost::Message;

use super::step::Kind;
use super::{LinearGraph, read};
use crate::networks::onnx::engine::Engine;
use crate::networks::onnx::proto::ModelOutline;
use crate::networks::onnx::testing::{
    FILE, FLOAT, Graph, Node, OPEN, Value, Weight, compare_with_embedded, graph, input, int,
    integers, ports, weight,
};

fn suits(bytes: &[u8]) -> bool {
    let outline = ModelOutline::decode(bytes).unwrap();
    super::suits(bytes, &outline.graph.unwrap()).unwrap()
}

fn opened(graph: &Graph, outputs: &[&str]) -> LinearGraph {
    let bytes = Bytes::from(graph.clone().bytes());
    assert!(suits(&bytes));
    let read = read(Path::new(FILE), &bytes, &[], &ports(outputs), true);
    read.unwrap().expect("the graph suits")
}

/// Runs a graph here and in `embedded`; the linear maps here.
fn compare(shape: &[i64], nodes: Vec<Node>, weights: Vec<Weight>, outputs: &[&str]) -> usize {
    let graph = graph(shape, nodes, weights, outputs);
    let ours = opened(&graph, outputs);
    compare_with_embedded(&ours, &graph, shape, outputs);
    let steps = ours.steps.iter();
    let maps = steps.filter(|step| matches!(step.kind, Kind::Map(..)));
    maps.count()
}

/// A layer of a transformer of 6 tokens, 128 values and 4 heads, as torch exports it: its attention, the sizes
/// read from shapes, and Gelu as five operators.
#[test]
fn a_transformer_answers_as_elsewhere() {
    let part = |from: &str, to: &str, w: &str| {
        let product = format!("{to}_");
        [
            Node::new("MatMul", &[from, w], &product),
            Node::new("Add", &[&product, &format!("{w}b")], to),
        ]
    };
    let heads = |from: &str, to: &str, order: [i64; 4]| {
        let split = format!("{to}_");
        [
            Node::new("Reshape", &[from, "split"], &split),
            Node::new("Transpose", &[&split], to).ints("perm", &order),
        ]
    };
    let mut nodes = vec![
        Node::new("LayerNormalization", &["x", "scale", "shift"], "n"),
        Node::new("Shape", &["x"], "sizes"),
        Node::new("Gather", &["sizes", "first"], "batch"),
        int(Node::new("Concat", &["batch", "rest"], "split"), "axis", 0),
    ];
    nodes.extend(part("n", "q", "wq"));
    nodes.extend(part("n", "k", "wk"));
    nodes.extend(part("n", "v", "wv"));
    nodes.extend(heads("q", "qh", [0, 2, 1, 3]));
    nodes.extend(heads("k", "kh", [0, 2, 3, 1]));
    nodes.extend(heads("v", "vh", [0, 2, 1, 3]));
    nodes.extend([
        Node::new("MatMul", &["qh", "kh"], "scores"),
        Node::new("Mul", &["scores", "factor"], "scaled"),
        int(Node::new("Softmax", &["scaled"], "shares"), "axis", -1),
        Node::new("MatMul", &["shares", "vh"], "mixed"),
        Node::new("Transpose", &["mixed"], "tokens").ints("perm", &[0, 2, 1, 3]),
        Node::new("Reshape", &["tokens", "joined"], "joined_"),
    ]);
    nodes.extend(part("joined_", "attended", "wo"));
    nodes.push(Node::new("Add", &["attended", "x"], "middle"));
    nodes.extend(part("middle", "wide", "up"));
    nodes.extend([
        Node::new("Div", &["wide", "root"], "g1"),
        Node::new("Erf", &["g1"], "g2"),
        Node::new("Add", &["g2", "one"], "g3"),
        Node::new("Mul", &["half", "g3"], "g4"),
        Node::new("Mul", &["wide", "g4"], "gelu"),
    ]);
    nodes.extend(part("gelu", "narrow", "down"));
    nodes.push(Node::new("Add", &["middle", "narrow"], "y"));
    let mut weights = Vec::new();
    for (name, [rows, columns]) in [
        ("wq", [128, 128]),
        ("wk", [128, 128]),
        ("wv", [128, 128]),
        ("wo", [128, 128]),
        ("up", [128, 256]),
        ("down", [256, 128]),
    ] {
        weights.push(weight(name, &[rows, columns]));
        weights.push(weight(&format!("{name}b"), &[columns]));
    }
    weights.extend([weight("scale", &[128]), weight("shift", &[128])]);
    weights.push(integers("first", &[0]));
    weights.push(integers("rest", &[6, 4, 32]));
    weights.push(integers("joined", &[0, 6, 128]));
    for (name, value) in [("factor", 0.18), ("root", 1.5), ("one", 1.0), ("half", 0.5)] {
        weights.push(Weight::new(name, &[], &[value]));
    }
    let maps = compare(&[6, 128], nodes, weights, &["middle", "y"]);
    assert_eq!(maps, 6);
}

/// Maps of every form, one weight in two of them, a sum that is no bias, a constant that a node makes.
#[test]
fn maps_of_every_form_answer_as_elsewhere() {
    let gemm = |inputs: &[&str], to: &str| Node::new("Gemm", inputs, to);
    let nodes = vec![
        gemm(&["x", "square", "b"], "a"),
        Node::new("Relu", &["a"], "c"),
        int(gemm(&["c", "square", "row"], "d"), "transB", 1),
        gemm(&["d", "square"], "e"),
        gemm(&["e", "square", "b"], "f"),
        // The product has two readers, the other one a bias of another form.
        Node::new("MatMul", &["f", "square"], "g"),
        Node::new("Add", &["b", "g"], "h"),
        Node::new("Mul", &["g", "h"], "i"),
        Node::new("MatMul", &["i", "square"], "j"),
        Node::new("Add", &["j", "cube"], "k"),
        Node::new("Neg", &["b"], "minus"),
        Node::new("MatMul", &["k", "square"], "l"),
        Node::new("Add", &["minus", "l"], "y"),
        // Too small for a step.
        Node::new("MatMul", &["y", "small"], "z"),
    ];
    let weights = || {
        vec![
            weight("square", &[128, 128]),
            weight("b", &[128]),
            weight("row", &[1, 128]),
            weight("cube", &[1, 1, 128]),
            weight("small", &[128, 2]),
        ]
    };
    let outputs = ["k", "y", "z", "d", "minus"];
    assert_eq!(compare(&[128], nodes.clone(), weights(), &outputs), 7);
    let graph = graph(&[128], nodes, weights(), &outputs);
    let graph = opened(&graph, &outputs);
    let maps = graph.steps.iter().filter_map(|step| match &step.kind {
        Kind::Map(weights, _) => Some(std::sync::Arc::as_ptr(weights)),
        Kind::Nodes(_) => None,
    });
    // With `b` twice, with `row`, and without a bias.
    let different: std::collections::HashSet<_> = maps.collect();
    assert_eq!(different.len(), 3);
}

/// Graphs of random nodes, each of which reads values before it or constants.
#[test]
fn any_order_of_maps_and_nodes_answers_as_elsewhere() {
    let mut state = 1u32;
    let mut below = |count: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % count
    };
    let weights = ["w", "v"];
    for round in 0..40 {
        let mut values = vec!["x".to_owned()];
        let mut biases = vec!["b".to_owned(), "c".to_owned()];
        let mut nodes = Vec::new();
        for at in 0..4 + below(12) {
            let [a, b] = [below(values.len()), below(values.len())];
            let [a, b] = [a, b].map(|at| values[at].as_str());
            let (weight, bias) = (weights[below(2)], biases[below(biases.len())].as_str());
            let to = format!("{at}");
            let (node, made) = match below(8) {
                0 | 1 => (Node::new("MatMul", &[a, weight], &to), &mut values),
                2 => (Node::new("Gemm", &[a, weight, bias], &to), &mut values),
                3 => (Node::new("Add", &[a, b], &to), &mut values),
                4 => (Node::new("Add", &[bias, a], &to), &mut values),
                5 => (Node::new("Add", &[a, bias], &to), &mut values),
                6 => (Node::new("Tanh", &[a], &to), &mut values),
                _ => (Node::new("Neg", &[bias], &to), &mut biases),
            };
            nodes.push(node);
            made.push(to);
        }
        nodes.push(Node::new("Gemm", &["x", "w", "b"], "first"));
        let mut last = Node::new("Sum", &["first"], "y");
        last.input.extend(values);
        nodes.push(last);
        let weights = vec![
            weight("w", &[128, 128]),
            weight("v", &[128, 128]),
            weight("b", &[128]),
            weight("c", &[128]),
        ];
        println!("round {round}: {nodes:?}");
        compare(&[128], nodes, weights, &["first", "y"]);
    }
}

/// rten folds the slice of a known shape into a constant, which a later phase reads.
#[test]
fn a_shape_that_becomes_a_constant_answers_as_elsewhere() {
    let nodes = vec![
        Node::new("MatMul", &["x", "w"], "a"),
        Node::new("Reshape", &["a", "split"], "r"),
        Node::new("Shape", &["r"], "s"),
        Node::new("Slice", &["s", "one", "three"], "t"),
        Node::new("Reshape", &["r", "flat"], "c"),
        Node::new("MatMul", &["c", "w"], "d"),
        Node::new("Relu", &["d"], "e"),
        int(Node::new("Concat", &["open", "t"], "shape"), "axis", 0),
        Node::new("Reshape", &["e", "shape"], "y"),
    ];
    let weights = vec![
        weight("w", &[128, 128]),
        integers("split", &[-1, 4, 32]),
        integers("flat", &[-1, 128]),
        integers("open", &[-1]),
        integers("one", &[1]),
        integers("three", &[3]),
    ];
    assert_eq!(compare(&[128], nodes, weights, &["y"]), 2);
}

/// Only the nodes that wanted outputs need are there.
#[test]
fn other_outputs_are_not_computed() {
    let nodes = vec![
        Node::new("MatMul", &["x", "w"], "y"),
        Node::new("MatMul", &["x", "v"], "a"),
        Node::new("Reshape", &["a", "odd"], "z"),
    ];
    let weights = vec![
        weight("w", &[128, 128]),
        weight("v", &[128, 128]),
        integers("odd", &[-1, 127]),
    ];
    let graph = graph(&[128], nodes, weights, &["y", "z"]);
    let ours = opened(&graph, &["y"]);
    assert_eq!(ours.steps.len(), 1);
    assert!(ours.run(&[("x", &input(2, &[128]))], Some("y")).is_ok());
    let all = opened(&graph, &["y", "z"]);
    assert!(all.run(&[("x", &input(2, &[128]))], None).is_err());
}

/// A sum is a bias only where it is the operator of the standard, without axes.
#[test]
fn other_sums_are_no_biases() {
    let sum = |change: &dyn Fn(Node) -> Node| {
        let sum = change(Node::new("Add", &["a", "b"], "y"));
        let nodes = vec![Node::new("MatMul", &["x", "w"], "a"), sum];
        let weights = vec![weight("w", &[128, 128]), weight("b", &[128])];
        let bytes = Bytes::from(graph(&[128], nodes, weights, &["y"]).bytes());
        assert!(suits(&bytes));
        read(Path::new(FILE), &bytes, &[], &ports(&["y"]), true)
    };
    assert!(sum(&|node| node).is_ok());
    assert!(sum(&Node::classic).is_err());
    assert!(sum(&|node| int(int(node, "broadcast", 1), "axis", 0)).is_err());
}

/// A chain of nodes that make a constant, which each of many phases would hold.
#[test]
fn parts_do_not_hold_constants_without_a_bound() {
    let long = |length: usize, phases: usize| {
        let mut nodes = Vec::new();
        let mut last = "b".to_owned();
        for at in 0..length {
            let next = format!("c{at}");
            nodes.push(Node::new("Neg", &[&last], &next));
            last = next;
        }
        let mut value = "x".to_owned();
        for at in 0..phases {
            let (product, next) = (format!("p{at}"), format!("v{at}"));
            nodes.push(Node::new("MatMul", &[&value, "w"], &product));
            nodes.push(Node::new("Add", &[&product, &last], &next));
            value = next;
        }
        nodes.push(Node::new("Identity", &[&value], "y"));
        let weights = vec![weight("w", &[128, 128]), weight("b", &[128])];
        graph(&[128], nodes, weights, &["y"]).bytes()
    };
    assert!(suits(&long(2000, 20)));
    assert!(!suits(&long(2000, 1000)));
    assert!(!suits(&long(1, 3000)));
}

/// Graphs that are left to `embedded`.
#[test]
fn graphs_that_would_not_gain_are_left_alone() {
    let plain = || {
        let nodes = vec![Node::new("Gemm", &["x", "w", "b"], "y")];
        let weights = vec![weight("w", &[128, 128]), weight("b", &[128])];
        graph(&[128], nodes, weights, &["y"])
    };
    let suits = |change: &dyn Fn(&mut Graph)| {
        let mut graph = plain();
        change(&mut graph);
        suits(&graph.bytes())
    };
    assert!(suits(&|_| {}));
    assert!(!suits(&|graph| graph.weights[0].dims = vec![128, 64]));
    assert!(!suits(&|graph| graph.weights[0].data_location = 1));
    // Each of its values would fill a vector.
    assert!(!suits(&|graph| graph.weights[0].dims = vec![1 << 14, 1]));
    assert!(!suits(&|graph| graph.weights[1].dims = vec![128, 1]));
    assert!(!suits(&|graph| {
        graph.nodes[0] = int(graph.nodes[0].clone(), "transA", 1);
    }));
    assert!(!suits(&|graph| {
        graph.nodes.push(Node::new("If", &["y"], "z"));
    }));
    // A value that nothing makes before it is read, a name that two nodes make, an output that is an input.
    assert!(!suits(&|graph| {
        graph.nodes[0].input[0] = "z".to_owned();
    }));
    assert!(!suits(&|graph| {
        graph.nodes.push(Node::new("Relu", &["x"], "y"));
    }));
    assert!(!suits(&|graph| {
        graph
            .outputs
            .push(Value::new("x", FLOAT, Some(&[OPEN, 128])));
    }));
}

#[test]
fn rows_of_another_width_and_a_weight_of_too_few_values_are_refused() {
    let nodes = vec![
        Node::new("Relu", &["x"], "a"),
        Node::new("Gemm", &["a", "w"], "y"),
    ];
    let mut graph = graph(&[128], nodes, vec![weight("w", &[128, 128])], &["y"]);
    graph.inputs = vec![Value::new("x", FLOAT, None)];
    let ours = opened(&graph, &["y"]);
    for shape in [vec![64], vec![3, 128], vec![]] {
        let error = ours.run(&[("x", &input(2, &shape))], None).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("with [128, 128]"), "{error}");
    }
    assert!(ours.run(&[("z", &input(2, &[128]))], None).is_err());
    assert!(ours.run(&[], None).is_err());
    graph.weights[0].raw_data.truncate(400);
    let bytes = Bytes::from(graph.bytes());
    let read = read(Path::new(FILE), &bytes, &[], &ports(&["y"]), true);
    let Err(error) = read else { panic!("read") };
    let error = error.to_string();
    assert!(
        error.contains("constant `w` of shape [128, 128] has 100 values"),
        "{error}"
    );
}
