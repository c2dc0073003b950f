//! Graphs of `ai.onnx.ml`, as scikit-learn's converter writes them.

use candle_core::Device;
use switchyard_models::{GraphAnswer, RawData, RawTensor, Zoo, load_variant};

use super::onnx::{FLOAT, Graph, INT64, Node, OPEN, Value};
use super::{edit, zoo};

const APP: &str = r#"
name = "pulse"
summary = "A logistic regression"
task = "tensors"
slo_ms = 100.0
penalty = "step"
inputs = [{ name = "x", datatype = "FP32", shape = [3] }]
outputs = [
    { name = "label", datatype = "INT64", shape = [] },
    { name = "p", datatype = "FP32", shape = [2] },
]
"#;

/// `p` is the softmax of two linear functions; the file's output is a map of it.
fn regression() -> Graph {
    let linear = Node::new("LinearRegressor", &["x"], "scores").classic();
    let linear = linear
        .floats("coefficients", &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        .floats("intercepts", &[0.5, 0.0]);
    let mut linear = linear;
    linear.attribute.push(super::onnx::integer("targets", 2));
    let mut label = Node::new("ArgMax", &["p"], "label");
    label.attribute.push(super::onnx::integer("axis", 1));
    label.attribute.push(super::onnx::integer("keepdims", 0));
    Graph {
        nodes: vec![
            linear,
            Node::new("Softmax", &["scores"], "p"),
            label,
            Node::new("ZipMap", &["p"], "maps")
                .classic()
                .ints("classlabels_int64s", &[0, 1]),
        ],
        inputs: vec![Value::new("x", FLOAT, Some(&[OPEN, 3]))],
        outputs: vec![
            Value::new("label", INT64, Some(&[OPEN])),
            Value::maps("maps"),
        ],
        ..Graph::default()
    }
}

#[test]
fn the_tensor_of_a_map_is_served_in_its_place() {
    let (dir, folder) = zoo();
    std::fs::remove_dir_all(folder.with_file_name("plain")).unwrap();
    std::fs::write(folder.with_file_name("app.toml"), APP).unwrap();
    edit(
        &folder,
        "kind = \"onnx\"",
        "kind = \"onnx\"\ntask = \"tensors\"",
    );
    std::fs::write(folder.join("model.onnx"), regression().bytes()).unwrap();
    Zoo::open(dir.path()).unwrap();
    let model = load_variant(&folder, &Device::Cpu).unwrap().model;
    let x = [1.0_f32, 2.0, 3.0, 0.0, 0.0, 9.0];
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = RawTensor {
        datatype: switchyard_models::card::Datatype::Fp32,
        shape: vec![2, 3],
        data: RawData::Numbers(bytes.into()),
    };
    let answer = model.graph().unwrap().run(&[("x".into(), x)]).unwrap();
    let GraphAnswer::Tensors(outputs) = answer else {
        panic!("no tensors");
    };
    let named = |name: &str| {
        let found = outputs.iter().find(|(of, _)| &**of == name);
        found.unwrap().1.clone()
    };
    let RawData::Numbers(p) = named("p").data else {
        panic!("no numbers");
    };
    let p: Vec<f32> = p
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    for (row, difference) in [-0.5_f32, 0.5].into_iter().enumerate() {
        let wanted = 1.0 / (1.0 + (-difference).exp());
        let found = p[2 * row];
        assert!((found - wanted).abs() < 1e-6, "{found} for {wanted}");
    }
    let labels: Vec<u8> = [1_i64, 0].iter().flat_map(|k| k.to_le_bytes()).collect();
    assert_eq!(named("label").data, RawData::Numbers(labels.into()));
    assert!(outputs.iter().all(|(name, _)| &**name != "maps"));
}

#[test]
fn an_operator_that_is_unknown_is_refused_with_its_name() {
    let (_dir, folder) = zoo();
    let mut graph = regression();
    graph.nodes[0].op_type = "GaussianProcess".to_owned();
    edit(
        &folder,
        "kind = \"onnx\"",
        "kind = \"onnx\"\ntask = \"tensors\"",
    );
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    let Err(error) = load_variant(&folder, &Device::Cpu) else {
        panic!("loaded");
    };
    let error = error.to_string();
    assert!(error.contains("GaussianProcess"), "{error}");
    assert!(error.contains("model.onnx: "), "{error}");
}
