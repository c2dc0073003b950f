//! Graphs of named tensors: that an application and a graph fit each other, and exact integers.

use candle_core::Device;
use switchyard_models::card::Datatype;
use switchyard_models::{GraphAnswer, RawData, RawTensor, Zoo, load_variant};

use super::onnx::{self, FLOAT, Graph, INT64, OPEN, Value};
use super::{edit, zoo};

/// An app of tensors, its inputs and outputs, and the graph of the same.
const NAMED: &str = r#"
name = "pulse"
summary = "Sums"
task = "tensors"
slo_ms = 100.0
penalty = "step"
inputs = [
    { name = "x", datatype = "FP32", shape = [-1], typical = [4] },
    { name = "k", datatype = "INT64", shape = [2] },
]
outputs = [{ name = "sum", datatype = "FP32", shape = [-1] }]
"#;

fn named_graph() -> Graph {
    Graph {
        nodes: vec![
            onnx::Node::new("Identity", &["x"], "sum"),
            onnx::Node::new("Identity", &["k"], "same"),
        ],
        inputs: vec![
            Value::new("k", INT64, Some(&[OPEN, 2])),
            Value::new("x", FLOAT, Some(&[OPEN, OPEN])),
        ],
        outputs: vec![
            Value::new("same", INT64, Some(&[OPEN, 2])),
            Value::new("sum", FLOAT, Some(&[OPEN, OPEN])),
        ],
        ..Graph::default()
    }
}

/// The reason for which the zoo of the named graph is refused, if it is.
fn named_refusal(app: (&str, &str), card: &str, change: impl FnOnce(&mut Graph)) -> Option<String> {
    let (dir, folder) = zoo();
    std::fs::remove_dir_all(folder.with_file_name("plain")).unwrap();
    assert!(NAMED.contains(app.0), "{}", app.0);
    let text = NAMED.replacen(app.0, app.1, 1);
    std::fs::write(folder.with_file_name("app.toml"), text).unwrap();
    edit(
        &folder,
        "kind = \"onnx\"",
        &format!("kind = \"onnx\"\n{card}"),
    );
    let mut graph = named_graph();
    change(&mut graph);
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    let error = Zoo::open(dir.path()).err()?.to_string();
    Some(error.replace(&format!("{}/", folder.display()), ""))
}

#[test]
fn an_app_and_a_graph_of_named_tensors_must_fit() {
    let tensors = "task = \"tensors\"";
    let same = ("name", "name");
    assert_eq!(named_refusal(same, tensors, |_| {}), None);
    for (app, wanted) in [
        (
            ("\"x\"", "\"y\""),
            "the graph has no input `y` of the application, it has: k, x",
        ),
        (
            ("\"sum\"", "\"all\""),
            "the graph has no output `all` of the application, it has: same, sum",
        ),
        (
            ("INT64", "INT32"),
            "the graph takes INT64, the application's input `k` is INT32",
        ),
        (
            ("shape = [2]", "shape = [3]"),
            "the graph's input `k` is [?, 2], the application's is [3] after the rows",
        ),
        (
            ("shape = [2]", "shape = [-1]"),
            "the application's is [-1] after the rows",
        ),
        (
            ("shape = [2]", "shape = [0]"),
            "must be sizes of at least 1, or -1",
        ),
        (
            ("typical = [4]", "typical = [4, 1]"),
            "[4, 1], must be a shape of [-1]",
        ),
        (
            ("task = \"tensors\"", "task = \"score\""),
            "answers as task \"tensors\", the application's is \"score\"",
        ),
        (
            ("slo_ms", "classes = [\"a\", \"b\"]\nslo_ms"),
            "not allowed with task \"tensors\"",
        ),
        (
            (
                "    { name = \"k\", datatype = \"INT64\", shape = [2] },\n",
                "",
            ),
            "the graph takes `k`, which no request has",
        ),
    ] {
        let refused = named_refusal(app, tensors, |_| {}).unwrap();
        assert!(refused.contains(wanted), "{refused}\n{wanted}");
    }
    let scores = format!("{tensors}\nscores = \"logits\"");
    let refused = named_refusal(same, &scores, |_| {}).unwrap();
    assert!(
        refused.ends_with("not used with task \"tensors\": leave it out"),
        "{refused}"
    );
    let single = |graph: &mut Graph| graph.inputs[0] = Value::new("k", INT64, Some(&[]));
    let refused = named_refusal(same, tensors, single).unwrap();
    assert!(
        refused.contains("the graph's input `k` has no batch axis"),
        "{refused}"
    );
}

/// The engine of this program computes in 32 bits.
#[test]
fn integers_that_do_not_fit_are_refused_and_never_cut() {
    let (_dir, folder) = zoo();
    edit(
        &folder,
        "kind = \"onnx\"",
        "kind = \"onnx\"\ntask = \"tensors\"",
    );
    std::fs::write(folder.join("model.onnx"), named_graph().bytes()).unwrap();
    let model = load_variant(&folder, &Device::Cpu).unwrap().model;
    let run = |k: [i64; 2]| {
        let tensor = |datatype, shape: &[usize], bytes: Vec<u8>| RawTensor {
            datatype,
            shape: shape.to_vec(),
            data: RawData::Numbers(bytes.into()),
        };
        let k = k.iter().flat_map(|k| k.to_le_bytes()).collect();
        let inputs = [
            ("x".into(), tensor(Datatype::Fp32, &[1, 1], vec![0; 4])),
            ("k".into(), tensor(Datatype::Int64, &[1, 2], k)),
        ];
        model.graph().unwrap().run(&inputs)
    };
    let exact = [i64::from(i32::MIN), i64::from(i32::MAX)];
    let GraphAnswer::Tensors(outputs) = run(exact).unwrap() else {
        panic!("no tensors");
    };
    let (name, same) = &outputs[0];
    assert_eq!((&**name, same.datatype), ("same", Datatype::Int64));
    let bytes: Vec<u8> = exact.iter().flat_map(|k| k.to_le_bytes()).collect();
    assert_eq!(same.data, RawData::Numbers(bytes.into()));
    if switchyard_models::onnx::engine_name() == "rten" {
        let refused = run([0, i64::from(i32::MAX) + 1]).unwrap_err().to_string();
        assert!(
            refused.contains("2147483648 does not fit the 32 bits"),
            "{refused}"
        );
    }
}
