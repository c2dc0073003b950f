//! Whole files.

use prost::Message;

use super::*;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{Port, RawTensor};
use crate::networks::onnx::classic::{
    ClassicGraph, appended_outputs, is_classic, read, zipped_outputs,
};
use crate::networks::onnx::elements;
use crate::networks::onnx::engine::Engine;
use crate::networks::onnx::proto::{
    GraphProto, ModelOutline, ModelProto, OpsetProto, ValueInfoProto,
};

fn wired(mut node: NodeProto, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    node.input = inputs.iter().map(|&name| name.to_owned()).collect();
    node.output = outputs.iter().map(|&name| name.to_owned()).collect();
    node
}

fn named(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        r#type: None,
    }
}

fn file(node: Vec<NodeProto>, outputs: &[&str]) -> Vec<u8> {
    let two = TensorProto {
        name: "two".to_owned(),
        data_type: 1,
        float_data: vec![2.0],
        ..TensorProto::default()
    };
    let graph = GraphProto {
        node,
        initializer: vec![two],
        input: vec![named("x"), named("two")],
        output: outputs.iter().map(|name| named(name)).collect(),
    };
    let opset = OpsetProto {
        domain: String::new(),
        version: 17,
    };
    let model = ModelProto {
        graph: Some(graph),
        opset_import: vec![opset],
    };
    model.encode_to_vec()
}

fn port(name: &str, datatype: Datatype) -> Port {
    Port {
        name: name.into(),
        datatype,
        shape: None,
    }
}

fn open(file: Vec<u8>, outputs: &[&str]) -> Result<ClassicGraph> {
    let outputs: Vec<Port> = outputs
        .iter()
        .map(|name| port(name, Datatype::Fp32))
        .collect();
    read(file.into(), &[port("x", Datatype::Fp32)], &outputs)
}

fn error(nodes: Vec<NodeProto>, outputs: &[&str]) -> String {
    match open(file(nodes, outputs), outputs) {
        Ok(_) => panic!("it opens"),
        Err(error) => error.to_string(),
    }
}

fn x() -> RawTensor {
    elements::tensor(Datatype::Fp32, vec![1, 2], &[1.0f32, 2.0])
}

#[test]
fn nodes_run_in_any_order_and_constants_fold() {
    let nodes = || {
        vec![
            wired(node("Add", vec![]), &["b", "a"], &["y"]),
            wired(node("Mul", vec![]), &["x", "four"], &["b"]),
            wired(node("Neg", vec![]), &["x"], &["a"]),
            wired(node("Add", vec![]), &["two", "two"], &["four"]),
        ]
    };
    let graph = open(file(nodes(), &["y", "b"]), &["y", "b"]).unwrap();
    // Of the constants only the folded one is left.
    assert_eq!(graph.bytes(), size_of::<f32>());
    let answer = graph.run(&[("x", &x())], None).unwrap();
    let y = elements::tensor(Datatype::Fp32, vec![1, 2], &[3.0f32, 6.0]);
    assert_eq!(answer[0], ("y".into(), y));
    assert_eq!(answer.len(), 2);
    let only = graph.run(&[("x", &x())], Some("b")).unwrap();
    let b = elements::tensor(Datatype::Fp32, vec![1, 2], &[4.0f32, 8.0]);
    assert_eq!(only, [("b".into(), b)]);
    assert!(
        graph
            .run(&[], None)
            .unwrap_err()
            .to_string()
            .contains("`x`")
    );
}

#[test]
fn what_cannot_run_is_refused_when_it_is_read() {
    let unary = |name, input, output| wired(node(name, vec![]), &[input], &[output]);
    assert!(error(vec![unary("Conv", "x", "y")], &["y"]).contains("ai.onnx.Conv"));
    let unknown = unary("ai.onnx.ml.DictVectorizer", "x", "y");
    assert!(error(vec![unknown], &["y"]).contains("ai.onnx.ml.DictVectorizer"));
    let odd = vec![text("norm", "L9")];
    let odd = wired(node("ai.onnx.ml.Normalizer", odd), &["x"], &["y"]);
    assert!(error(vec![odd], &["y"]).contains("Normalizer: norm `L9`"));
    let circle = vec![unary("Neg", "b", "a"), unary("Neg", "a", "b")];
    assert!(error(circle, &["a"]).contains("from itself"));
    let twice = vec![unary("Neg", "x", "y"), unary("Abs", "x", "y")];
    assert!(error(twice, &["y"]).contains("twice"));
    assert!(error(vec![unary("Neg", "z", "y")], &["y"]).contains("nothing makes `z`"));
    assert!(error(vec![], &["y"]).contains("nothing makes `y`"));
    // Nodes that no output needs may be unknown.
    let nodes = vec![unary("Neg", "x", "y"), unary("Conv", "x", "z")];
    assert!(open(file(nodes, &["y"]), &["y"]).is_ok());
    assert!(read(Bytes::from_static(&[1, 2, 3]), &[], &[]).is_err());
    let half = [port("x", Datatype::Fp16)];
    let refused = read(file(vec![], &[]).into(), &half, &[]).err();
    assert!(refused.unwrap().to_string().contains("FP16"));
}

#[test]
fn maps_are_the_tensors_that_they_are_made_from() {
    let labels = vec![ints("classlabels_int64s", &[3, 5])];
    let nodes = vec![
        wired(node("Neg", vec![]), &["x"], &["scores"]),
        wired(node("ai.onnx.ml.ZipMap", labels), &["scores"], &["maps"]),
    ];
    let file = file(nodes, &["maps"]);
    let zipped = zipped_outputs(&file).unwrap();
    assert_eq!(zipped.len(), 1);
    assert_eq!((&*zipped[0].output, &*zipped[0].tensor), ("maps", "scores"));
    assert_eq!(zipped[0].classes, ["3", "5"]);
    // The map's own name is its tensor too.
    let graph = open(file.clone(), &["maps", "scores"]).unwrap();
    let answer = graph.run(&[("x", &x())], None).unwrap();
    assert_eq!(answer[0].1, answer[1].1);
    let longer = [file, appended_outputs(&zipped)].concat();
    let again = zipped_outputs(&longer).unwrap();
    assert!(again[0].is_listed && appended_outputs(&again).is_empty());
    let outline = ModelOutline::decode(&*longer).unwrap().graph.unwrap();
    let names: Vec<&str> = outline.output.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["maps", "scores"]);
    assert!(is_classic(&outline));
    let shape = outline.output[1]
        .r#type
        .clone()
        .unwrap()
        .tensor_type
        .unwrap()
        .shape;
    let sizes: Vec<_> = shape.unwrap().dim.iter().map(|dim| dim.value).collect();
    assert_eq!(sizes, [None, Some(2)]);
}
