//! Graphs of every operator, next to the answers of `embedded`.

use std::path::Path;

use bytes::Bytes;

use super::{ImageGraph, read, suits};
use crate::networks::onnx::embedded;
use crate::networks::onnx::engine::Engine;
use crate::networks::onnx::testing::{
    FILE, FLOAT, Graph, Node, OPEN, Value, Weight, compare_with_embedded, graph, input, int,
    integers, ports, run, weight,
};

fn opened(graph: &Graph, outputs: &[&str]) -> ImageGraph {
    let bytes = Bytes::from(graph.clone().bytes());
    assert!(suits(&bytes).unwrap());
    let read = read(Path::new(FILE), &bytes, &ports(outputs));
    read.unwrap().expect("the graph suits")
}

/// As exporters do, and as `embedded` needs it.
fn with_defaults(mut node: Node, axes: usize) -> Node {
    let is_window = ["Conv", "ConvTranspose", "MaxPool", "AveragePool"].contains(&&*node.op_type);
    for (name, value, count) in [
        ("strides", 1, axes),
        ("dilations", 1, axes),
        ("pads", 0, 2 * axes),
    ] {
        let mut attributes = node.attribute.iter();
        if is_window && !attributes.any(|one| one.name == name || one.name == "auto_pad") {
            node = node.ints(name, &vec![value; count]);
        }
    }
    node
}

/// Runs a graph here and in `embedded`; the number of steps here.
fn compare(shape: &[i64], nodes: Vec<Node>, weights: Vec<Weight>, outputs: &[&str]) -> usize {
    let nodes = nodes.into_iter();
    let nodes = nodes.map(|node| with_defaults(node, shape.len() - 1));
    let graph = graph(shape, nodes.collect(), weights, outputs);
    let ours = opened(&graph, outputs);
    compare_with_embedded(&ours, &graph, shape, outputs);
    ours.plan.length()
}

/// A convolution of `w` with this window.
fn conv(from: &str, w: &str, to: &str, pad: i64, stride: i64) -> Node {
    let bias = format!("{w}b");
    Node::new("Conv", &[from, w, &bias], to)
        .ints("pads", &[pad; 4])
        .ints("strides", &[stride; 2])
}

fn conv_weights(w: &str, dims: &[i64]) -> [Weight; 2] {
    [weight(w, dims), weight(&format!("{w}b"), &dims[..1])]
}

/// A block of MobileNetV3 between a stem and a head. Functions, the normalisation and the sum are computed with
/// the convolutions before them.
#[test]
fn a_network_with_gates_and_a_head_answers_as_elsewhere() {
    let mut variances = weight("v", &[8]);
    variances.raw_data = [0.5f32; 8].into_iter().flat_map(f32::to_le_bytes).collect();
    let nodes = vec![
        conv("x", "stem", "a", 1, 2),
        Node::new("HardSwish", &["a"], "b"),
        int(
            Node::new("Conv", &["b", "deep"], "c").ints("pads", &[1; 4]),
            "group",
            8,
        ),
        Node::new("BatchNormalization", &["c", "s", "o", "m", "v"], "d"),
        Node::new("Relu", &["d"], "e"),
        Node::new("ReduceMean", &["e"], "f").ints("axes", &[-1, -2]),
        conv("f", "narrow", "g", 0, 1),
        Node::new("Relu", &["g"], "h"),
        conv("h", "widen", "i", 0, 1),
        Node::new("HardSigmoid", &["i"], "j"),
        Node::new("Mul", &["j", "e"], "k"),
        conv("k", "last", "l", 0, 1),
        Node::new("Add", &["l", "b"], "m1"),
        Node::new("Relu", &["m1"], "n"),
        Node::new("GlobalAveragePool", &["n"], "p"),
        Node::new("Flatten", &["p"], "q"),
        Node::new("Gemm", &["q", "head", "headb"], "y"),
    ];
    let mut weights = vec![weight("deep", &[8, 1, 3, 3]), variances];
    weights.extend(conv_weights("stem", &[8, 3, 3, 3]));
    weights.extend(conv_weights("narrow", &[2, 8, 1, 1]));
    weights.extend(conv_weights("widen", &[8, 2, 1, 1]));
    weights.extend(conv_weights("last", &[8, 8, 1, 1]));
    weights.extend(["s", "o", "m"].map(|name| weight(name, &[8])));
    weights.extend([weight("head", &[8, 5]), weight("headb", &[5])]);
    // stem, depthwise, mean, narrow, widen, gate, scale, last, mean.
    assert_eq!(compare(&[3, 14, 10], nodes, weights, &["y"]), 9);
}

/// Paths that part and meet, and outputs of both parts of the graph.
#[test]
fn a_network_of_masks_and_boxes_answers_as_elsewhere() {
    let split = |axis, from, to: [&str; 2]| {
        let mut node = int(Node::new("Split", &[from], to[0]), "axis", axis);
        node.output.push(to[1].to_owned());
        node
    };
    let resized = Node::new("Resize", &["e", "", "twice"], "f")
        .text("coordinate_transformation_mode", "asymmetric")
        .text("nearest_mode", "floor");
    let nodes = vec![
        conv("x", "first", "a", 1, 1),
        Node::new("Sigmoid", &["a"], "s"),
        Node::new("Mul", &["a", "s"], "b"),
        split(1, "b", ["c", "d"]),
        Node::new("MaxPool", &["c"], "e")
            .ints("kernel_shape", &[3, 3])
            .ints("pads", &[1; 4])
            .ints("strides", &[2, 2]),
        resized,
        Node::new("ConvTranspose", &["e", "up", "upb"], "g").ints("strides", &[2, 2]),
        int(Node::new("Concat", &["f", "d", "g"], "h"), "axis", 1),
        conv("h", "mask", "mask_", 1, 1),
        Node::new("Identity", &["mask_"], "masks"),
        Node::new("Reshape", &["mask_", "rows"], "r"),
        int(Node::new("Softmax", &["r"], "boxes"), "axis", 1),
    ];
    let mut weights = vec![weight("up", &[4, 6, 2, 2]), weight("upb", &[6])];
    weights.extend(conv_weights("first", &[8, 3, 3, 3]));
    weights.extend(conv_weights("mask", &[2, 14, 3, 3]));
    weights.push(Weight::new("twice", &[4], &[1.0, 1.0, 2.0, 2.0]));
    weights.push(integers("rows", &[0, -1]));
    compare(&[3, 8, 6], nodes, weights, &["masks", "boxes"]);
}

/// Each operator behind a convolution.
#[test]
fn every_operator_answers_as_elsewhere() {
    let of = |kind: &str, inputs: &[&str]| Node::new(kind, inputs, "y");
    let pool = |kind: &str, kernel: i64| of(kind, &["a"]).ints("kernel_shape", &[kernel; 2]);
    let padded = |mode: &str| {
        let pool = pool("MaxPool", 3).ints("strides", &[2, 2]);
        pool.text("auto_pad", mode)
    };
    let cases = [
        of("Clip", &["a", "low", "high"]),
        of("Clip", &["a"]),
        of("LeakyRelu", &["a"]),
        of("HardSigmoid", &["a"]),
        of("Sigmoid", &["a"]),
        of("Identity", &["a"]),
        of("Add", &["a", "channels"]),
        of("Add", &["low", "a"]),
        of("Sub", &["a", "channels"]),
        of("Mul", &["channels", "a"]),
        of("Div", &["a", "high"]),
        of("Mul", &["a", "a"]),
        of("Add", &["a", "a"]),
        // Left to `embedded`.
        of("Sub", &["channels", "a"]),
        of("Softplus", &["a"]),
        int(
            of("ReduceMean", &["a"]).ints("axes", &[2, 3]),
            "keepdims",
            0,
        ),
        of("GlobalAveragePool", &["a"]),
        pool("AveragePool", 2).ints("strides", &[2, 2]),
        int(
            pool("AveragePool", 3).ints("pads", &[1; 4]),
            "count_include_pad",
            1,
        ),
        pool("AveragePool", 3).ints("pads", &[1; 4]),
        pool("MaxPool", 2).ints("pads", &[1, 0, 0, 1]),
        padded("SAME_UPPER"),
        padded("VALID"),
        int(of("Concat", &["a", "a"]), "axis", -3),
    ];
    for case in cases {
        let name = case.op_type.clone();
        println!("{name}");
        let nodes = vec![conv("x", "w", "a", 2, 1), case];
        let mut weights = conv_weights("w", &[4, 3, 3, 3]).to_vec();
        weights.push(weight("channels", &[4, 1, 1]));
        weights.push(Weight::new("low", &[], &[-0.25]));
        weights.push(Weight::new("high", &[], &[0.5]));
        compare(&[3, 7, 6], nodes, weights, &["y"]);
    }
}

/// `embedded` would put the odd zero behind the image.
#[test]
fn the_odd_zero_of_same_lower_is_before_the_image() {
    let pool = || Node::new("AveragePool", &["a"], "y").ints("kernel_shape", &[2, 2]);
    let pool = || int(pool(), "count_include_pad", 1);
    let answer = |pool: Node| {
        let nodes = vec![conv("x", "w", "a", 0, 1), pool];
        let weights = conv_weights("w", &[2, 3, 1, 1]).to_vec();
        let graph = graph(&[3, 5, 4], nodes, weights, &["y"]);
        run(&opened(&graph, &["y"]), &input(2, &[3, 5, 4]))
    };
    let [lower, upper, before, behind] = [
        pool().text("auto_pad", "SAME_LOWER"),
        pool().text("auto_pad", "SAME_UPPER"),
        pool().ints("pads", &[1, 1, 0, 0]),
        pool().ints("pads", &[0, 0, 1, 1]),
    ]
    .map(answer);
    assert_eq!((&lower, &upper), (&before, &behind));
    assert_ne!(lower, upper);
    let node = Node::new("MaxPool", &["x"], "y").ints("kernel_shape", &[2, 2]);
    let nodes = vec![node.text("auto_pad", "SAME_LOWER")];
    let bytes = graph(&[3, 5, 4], nodes, Vec::new(), &["y"]).bytes();
    let read = embedded::read(Path::new(FILE), bytes, &[], &ports(&["y"]), false);
    let Err(error) = read else { panic!("read") };
    let error = error.to_string();
    assert!(
        error.contains("auto_pad of operator MaxPool is SAME_LOWER"),
        "{error}"
    );
}

#[test]
fn sequences_answer_as_elsewhere() {
    let nodes = vec![
        Node::new("Conv", &["x", "w", "wb"], "a")
            .ints("pads", &[2, 1])
            .ints("strides", &[2]),
        Node::new("Relu", &["a"], "b"),
        Node::new("MaxPool", &["b"], "c").ints("kernel_shape", &[2]),
        Node::new("ReduceMean", &["c"], "d").ints("axes", &[2]),
        Node::new("Flatten", &["d"], "e"),
        Node::new("Gemm", &["e", "head"], "y"),
    ];
    let mut weights = conv_weights("w", &[6, 2, 5]).to_vec();
    weights.push(weight("head", &[6, 3]));
    compare(&[2, 40], nodes, weights, &["y"]);
}

/// Graphs that are left to `embedded`.
#[test]
fn graphs_that_would_not_gain_are_left_alone() {
    let plain = || {
        let weights = conv_weights("w", &[4, 3, 3, 3]).to_vec();
        graph(&[3, 8, 8], vec![conv("x", "w", "y", 1, 1)], weights, &["y"])
    };
    let suits = |change: &dyn Fn(&mut Graph)| {
        let mut graph = plain();
        change(&mut graph);
        suits(&graph.bytes()).unwrap()
    };
    assert!(suits(&|_| {}));
    // Larger than any memory: an image, a weight.
    assert!(!suits(
        &|graph| graph.inputs[0] = Value::new("x", FLOAT, Some(&[OPEN, 3, 1 << 40, 1 << 40]))
    ));
    assert!(!suits(
        &|graph| graph.weights[0].dims = vec![1 << 40, 3, 3, 3]
    ));
    // Dilated, grouped, of an open size, of two inputs, with a graph inside, mostly other products.
    assert!(!suits(
        &|graph| graph.nodes[0] = graph.nodes[0].clone().ints("dilations", &[2, 2])
    ));
    assert!(!suits(&|graph| {
        graph.nodes[0] = int(graph.nodes[0].clone(), "group", 2);
    }));
    assert!(!suits(
        &|graph| graph.inputs[0] = Value::new("x", FLOAT, Some(&[OPEN, 3, OPEN, 8]))
    ));
    assert!(!suits(&|graph| graph.inputs.push(Value::new(
        "z",
        FLOAT,
        Some(&[OPEN, 3])
    ))));
    assert!(!suits(&|graph| graph.nodes.push(Node::new(
        "If",
        &["y"],
        "z"
    ))));
    assert!(!suits(&|graph| {
        for name in ["z", "zz"] {
            graph.nodes.push(Node::new("MatMul", &["y", "w"], name));
        }
    }));
}

#[test]
fn a_batch_of_another_shape_and_a_weight_of_too_few_values_are_refused() {
    let weights = conv_weights("w", &[4, 3, 3, 3]).to_vec();
    let mut graph = graph(&[3, 8, 8], vec![conv("x", "w", "y", 1, 1)], weights, &["y"]);
    let ours = opened(&graph, &["y"]);
    let error = ours.run(&[("x", &input(2, &[3, 8, 9]))], None).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("input is [2, 3, 8, 9], the graph takes [2, 3, 8, 8]"),
        "{error}"
    );
    let refusal = |graph: &Graph| {
        let bytes = Bytes::from(graph.clone().bytes());
        assert!(suits(&bytes).unwrap());
        match read(Path::new(FILE), &bytes, &ports(&["y"])) {
            Ok(_) => panic!("read"),
            Err(error) => error.to_string(),
        }
    };
    graph.weights[0].raw_data.truncate(400);
    let error = refusal(&graph);
    assert!(
        error.contains("constant `w` of shape [4, 3, 3, 3] has 100 values"),
        "{error}"
    );
    // A constant of a sum without any.
    graph.weights[0] = weight("w", &[4, 3, 3, 3]);
    graph.weights.push(Weight::new("c", &[4, 1, 1], &[]));
    graph.nodes[0].output[0] = "a".to_owned();
    graph.nodes.push(Node::new("Add", &["a", "c"], "y"));
    let error = refusal(&graph);
    assert!(
        error.contains("constant `c` of shape [4, 1, 1] has 0 values"),
        "{error}"
    );
}
