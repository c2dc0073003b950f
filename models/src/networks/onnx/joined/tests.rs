use super::super::header::{GraphHeader, read_outline};
use super::super::proto::{EntryProto, GraphProto, ModelProto, NodeProto, TensorProto};
use super::*;

/// A model with weights in other files.
#[derive(Clone, PartialEq, Message)]
struct PlacedModel {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<PlacedGraph>,
}

#[derive(Clone, PartialEq, Message)]
struct PlacedGraph {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<PlacedTensor>,
}

fn node() -> NodeProto {
    NodeProto {
        input: vec!["x".to_owned(), "w".to_owned()],
        output: vec!["y".to_owned()],
        op_type: "MatMul".to_owned(),
        ..NodeProto::default()
    }
}

/// A tensor of two numbers of 32 bits in another file.
fn placed(name: &str, entries: &[(&str, &str)]) -> PlacedTensor {
    let entry = |&(key, value): &(&str, &str)| EntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    PlacedTensor {
        dims: vec![2],
        data_type: 1,
        name: name.to_owned(),
        external_data: entries.iter().map(entry).collect(),
        data_location: 1,
    }
}

fn write(folder: &Path, initializer: Vec<PlacedTensor>) -> PathBuf {
    let graph = PlacedGraph {
        node: vec![node()],
        initializer,
    };
    let model = PlacedModel {
        ir_version: 8,
        graph: Some(graph),
    };
    let file = folder.join("model.onnx");
    std::fs::write(&file, model.encode_to_vec()).unwrap();
    file
}

#[test]
fn values_in_other_files_are_joined_to_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let weights = [[1.0f32, 2.0], [3.0, 4.0]];
    let bytes: Vec<u8> = (weights.as_flattened().iter())
        .flat_map(|number| number.to_le_bytes())
        .collect();
    std::fs::write(folder.path().join("model.onnx.data"), &bytes).unwrap();
    let at = |offset| [("location", "model.onnx.data"), ("offset", offset)];
    let graph = write(
        folder.path(),
        vec![placed("w", &at("8")), placed("b", &at("0"))],
    );
    let files = value_files(&graph).unwrap();
    assert_eq!(files, BTreeSet::from(["model.onnx.data".to_owned()]));
    let outline = read_outline(&graph).unwrap();
    assert_eq!((outline.parameters, outline.weight_bytes), (4, 16));
    let refused = GraphHeader::parse(&graph, &std::fs::read(&graph).unwrap()).unwrap_err();
    assert!(
        refused.to_string().contains("`switchyard add`"),
        "{refused}"
    );

    let joined = folder.path().join("joined.onnx");
    copy_graph(&graph, &joined).unwrap();
    let tensor = |name: &str, bytes: &[u8]| TensorProto {
        dims: vec![2],
        data_type: 1,
        name: name.to_owned(),
        raw_data: bytes.to_vec().into(),
        ..TensorProto::default()
    };
    let expected = GraphProto {
        node: vec![node()],
        initializer: vec![tensor("w", &bytes[8..]), tensor("b", &bytes[..8])],
        ..GraphProto::default()
    };
    let found = std::fs::read(&joined).unwrap();
    assert_eq!(found[..2], [8, 8], "fields that are not read stay");
    let model = ModelProto::decode(&*found).unwrap();
    assert_eq!(model.graph, Some(expected));
    GraphHeader::parse(&joined, &found).unwrap();

    let again = folder.path().join("again.onnx");
    copy_graph(&joined, &again).unwrap();
    assert_eq!(std::fs::read(&again).unwrap(), found, "nothing to join");
}

#[test]
fn wrong_places_of_values_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    std::fs::write(&outside, [0; 64]).unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("data"), [0; 12]).unwrap();
    let absolute = outside.to_str().unwrap();
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[], "location \"\": must be a file in the graph's folder"),
        (
            &[("location", "../outside")],
            "must be a file in the graph's",
        ),
        (&[("location", absolute)], "must be a file in the graph's"),
        (&[("location", "missing")], "missing: No such file"),
        (
            &[("location", "data"), ("offset", "-1")],
            "offset \"-1\": must be",
        ),
        (
            &[("location", "data"), ("length", "12")],
            "length 12: its shape and type need 8",
        ),
        (
            &[("location", "data"), ("offset", "8")],
            "ends within the graph's values",
        ),
        (&[("location", ".")], "must be a file in the graph's folder"),
    ];
    for (entries, expected) in cases {
        let graph = write(&inner, vec![placed("w", entries)]);
        let error = copy_graph(&graph, &inner.join("to"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{entries:?}: {error}");
    }
    let mut texts = placed("w", &[("location", "data")]);
    texts.data_type = 8;
    let graph = write(&inner, vec![texts]);
    let error = copy_graph(&graph, &inner.join("to"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("that are no numbers"), "{error}");
    let mut huge = placed("w", &[("location", "data")]);
    huge.dims = vec![1 << 30];
    let graph = write(&inner, vec![huge]);
    let error = copy_graph(&graph, &inner.join("to"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("half precision"), "{error}");
}
