//! Variants that are ONNX graphs: the fields read from the file, the refusals, and that they answer
//! as the same network does here. With `ORT_DYLIB_PATH` onnxruntime runs them, otherwise the engine
//! of this program.
#![allow(clippy::unwrap_used)]

#[path = "common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;

#[path = "onnx/answers.rs"]
mod answers;
#[path = "onnx/classic.rs"]
mod classic;
#[path = "onnx/named.rs"]
mod named;

use std::path::{Path, PathBuf};

use candle_core::Device;
use onnx::{COMPLEX64, FLOAT, Graph, INT64, Node, OPEN, Value};
use onnx_zoo::{CARD, CLASSES, PARAMETERS, SAMPLES, perceptron};
use switchyard_models::onnx::OnnxScores;
use switchyard_models::{Architecture, Precision, VariantCard, Zoo, load_variant_at};
use tempfile::TempDir;

/// A zoo of one test, and the folder of its graph.
fn zoo() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let graph = onnx_zoo::write(dir.path());
    (dir, graph)
}

fn edit(graph: &Path, from: &str, to: &str) {
    assert!(CARD.contains(from), "{from}");
    std::fs::write(graph.join("model.toml"), CARD.replacen(from, to, 1)).unwrap();
}

/// The reason for which the card is refused, without the folder.
fn refusal(graph: &Path) -> String {
    let error = VariantCard::read(&graph.join("model.toml")).unwrap_err();
    error
        .to_string()
        .replace(&format!("{}/", graph.display()), "")
}

/// The reason for which a card is refused with this graph.
fn refusal_of(change: impl FnOnce(&mut Graph)) -> String {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    change(&mut graph);
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    refusal(&folder)
}

/// The reason for which the zoo is refused with this text in the card.
fn refusal_with(from: &str, to: &str) -> String {
    let (_dir, graph) = zoo();
    edit(&graph, from, to);
    refusal(&graph)
}

#[test]
fn a_card_is_completed_from_its_file() {
    let (dir, graph) = zoo();
    let zoo = Zoo::open(dir.path()).unwrap();
    let card = &zoo.app("pulse").unwrap().variant("graph").unwrap().card;
    let Architecture::Onnx(spec) = &card.architecture else {
        panic!("another architecture");
    };
    let named = (spec.input.as_deref(), spec.output.as_deref());
    assert_eq!(named, (Some("x"), Some("logits")));
    assert_eq!(spec.shape.as_deref(), Some(&[SAMPLES][..]));
    assert_eq!(card.architecture.samples(), SAMPLES);
    assert_eq!(card.architecture.classes(), CLASSES);
    assert_eq!(card.parameters, PARAMETERS as u64);
    assert_eq!(card.weight_bytes(), PARAMETERS as u64 * 4);
    // Fields that the card sets are accepted if they are right.
    let said = "kind = \"onnx\"\ninput = \"x\"\noutput = \"logits\"\nshape = [12]\nclasses = 3";
    edit(&graph, "kind = \"onnx\"", said);
    let again = VariantCard::read(&graph.join("model.toml")).unwrap();
    assert_eq!(again.architecture, card.architecture);
}

#[test]
fn the_card_must_set_dimensions_that_the_graph_leaves_open() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.inputs = vec![Value::new("x", FLOAT, Some(&[OPEN, OPEN]))];
    graph.outputs = vec![Value::new("logits", FLOAT, None)];
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    assert_eq!(
        refusal(&folder),
        "model.toml: field `architecture.shape`: missing: the graph's input is `x` [?, ?]"
    );
    edit(&folder, "kind = \"onnx\"", "kind = \"onnx\"\nshape = [12]");
    assert_eq!(
        refusal(&folder),
        "model.toml: field `architecture.classes`: missing: the graph's output is `logits` of \
         unknown shape"
    );
    let both = "kind = \"onnx\"\nshape = [12]\nclasses = 3";
    edit(&folder, "kind = \"onnx\"", both);
    let card = VariantCard::read(&folder.join("model.toml")).unwrap();
    assert_eq!(card.architecture.samples(), SAMPLES);
}

/// A graph that ends in `operator` and a reshape, and the reason for which it is refused.
fn ending(operator: &str, card: &str) -> Result<Option<OnnxScores>, String> {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.nodes.push(Node::new(operator, &["logits"], "scores"));
    graph
        .nodes
        .push(Node::new("Reshape", &["scores", "b1"], "y"));
    graph.outputs = vec![Value::new("y", FLOAT, Some(&[OPEN, CLASSES as i64]))];
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    edit(
        &folder,
        "kind = \"onnx\"",
        &format!("kind = \"onnx\"\n{card}"),
    );
    let card = VariantCard::read(&folder.join("model.toml"));
    match card.map_err(|error| error.to_string())?.architecture {
        Architecture::Onnx(spec) => Ok(spec.scores),
        _ => Err("another architecture".to_owned()),
    }
}

#[test]
fn a_softmax_at_the_end_is_not_applied_twice() {
    use OnnxScores::{Logits, Probabilities};
    assert_eq!(ending("Softmax", ""), Ok(Some(Probabilities)));
    let twice = ending("Softmax", "scores = \"logits\"").unwrap_err();
    assert!(
        twice.contains("Softmax makes the graph's output `y`"),
        "{twice}"
    );
    assert_eq!(ending("Relu", ""), Ok(Some(Logits)));
    assert_eq!(ending("LogSoftmax", ""), Ok(Some(Logits)));
    let stated = ending("Relu", "scores = \"probabilities\"");
    assert_eq!(stated, Ok(Some(Probabilities)));
    let open = ending("Sigmoid", "").unwrap_err();
    assert!(
        open.contains("architecture.scores`: missing: Sigmoid"),
        "{open}"
    );
    assert_eq!(
        ending("Sigmoid", "scores = \"probabilities\""),
        Ok(Some(Probabilities))
    );
}

#[test]
fn the_order_of_axes_is_never_guessed() {
    let (dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.inputs = vec![Value::new("x", FLOAT, Some(&[OPEN, 3, 4]))];
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    let app = dir.path().join("pulse/app.toml");
    let card = std::fs::read_to_string(&app).unwrap();
    let flat = format!("shape = [{SAMPLES}]");
    assert!(card.contains(&flat), "{card}");
    assert!(Zoo::open(dir.path()).is_ok(), "the app's input is flat");
    std::fs::write(&app, card.replacen(&flat, "shape = [3, 4]", 1)).unwrap();
    assert!(Zoo::open(dir.path()).is_ok(), "the same axes");
    std::fs::write(&app, card.replacen(&flat, "shape = [4, 3]", 1)).unwrap();
    let refused = Zoo::open(dir.path()).unwrap_err().to_string();
    assert!(
        refused.contains("field `architecture.shape`: [3, 4], the application's"),
        "{refused}"
    );
    assert!(
        refused.contains("[4, 3]: give both the same axes"),
        "{refused}"
    );
}

#[test]
fn weights_among_the_inputs_are_not_inputs() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.inputs.push(Value::new("b1", FLOAT, Some(&[3])));
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    let card = VariantCard::read(&folder.join("model.toml")).unwrap();
    assert_eq!(card.architecture.samples(), SAMPLES);
}

#[test]
fn a_file_that_is_missing_or_damaged_is_named() {
    let (_dir, graph) = zoo();
    let file = graph.join("model.onnx");
    let whole = std::fs::read(&file).unwrap();
    for bytes in [&b"no protocol buffer"[..], &whole[..whole.len() / 2], b""] {
        std::fs::write(&file, bytes).unwrap();
        let text = refusal(&graph);
        assert!(text.starts_with("model.onnx: not an ONNX file: "), "{text}");
    }
    std::fs::remove_file(&file).unwrap();
    let text = refusal(&graph);
    assert!(text.starts_with("model.onnx: No such file"), "{text}");
}

#[test]
fn another_input_or_output_than_the_graphs_is_refused() {
    assert_eq!(
        refusal_with("kind = \"onnx\"", "kind = \"onnx\"\ninput = \"image\""),
        "model.toml: field `architecture.input`: the graph has no input `image`, it has: x"
    );
    assert_eq!(
        refusal_with("kind = \"onnx\"", "kind = \"onnx\"\noutput = \"scores\""),
        "model.toml: field `architecture.output`: the graph has no output `scores`, it has: logits"
    );
    let (dir, folder) = zoo();
    let mut two = perceptron(1.0);
    two.inputs.push(Value::new("mask", FLOAT, Some(&[OPEN, 1])));
    std::fs::write(folder.join("model.onnx"), two.bytes()).unwrap();
    let error = Zoo::open(dir.path()).unwrap_err().to_string();
    assert_eq!(
        error.replace(&format!("{}/", folder.display()), ""),
        "model.toml: field `inputs`: the graph has no input `pulse` of the application, it has: x, \
         mask"
    );
    let two = |graph: &mut Graph| graph.outputs.push(Value::new("h", FLOAT, Some(&[OPEN, 6])));
    assert_eq!(
        refusal_of(two),
        "model.toml: field `architecture.output`: missing: choose one of the graph's: logits, h"
    );
}

/// With several inputs, names and shapes are those of the application.
#[test]
fn fields_of_the_only_input_are_refused_with_two() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph
        .inputs
        .push(Value::new("mask", FLOAT, Some(&[OPEN, 1])));
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    edit(&folder, "kind = \"onnx\"", "kind = \"onnx\"\ninput = \"x\"");
    assert_eq!(
        refusal(&folder),
        "model.toml: field `architecture.input`: not used with the graph's 2 inputs, which have \
         the names and shapes of the application's: leave it out"
    );
}

#[test]
fn another_shape_than_the_graphs_is_refused() {
    assert_eq!(
        refusal_with("kind = \"onnx\"", "kind = \"onnx\"\nshape = [3, 4]"),
        "model.toml: field `architecture.shape`: [3, 4] and a batch axis before it, the graph's \
         input is `x` [?, 12]"
    );
    assert_eq!(
        refusal_with("kind = \"onnx\"", "kind = \"onnx\"\nclasses = 4"),
        "model.toml: field `architecture.classes`: 4, the graph's output is `logits` [?, 3]"
    );
    assert_eq!(
        refusal_with("max_batch = 16", "max_batch = 16\nparameters = 98"),
        "model.toml: field `parameters`: 98, the graph has 99"
    );
}

#[test]
fn other_types_than_are_served_are_refused() {
    let complex = |graph: &mut Graph| {
        graph.inputs = vec![Value::new("x", COMPLEX64, Some(&[OPEN, 12]))];
    };
    assert_eq!(
        refusal_of(complex),
        "model.toml: field `architecture.input`: the graph's input `x` is COMPLEX64, which cannot \
         be served"
    );
    let label = |graph: &mut Graph| {
        graph.outputs = vec![Value::new("logits", INT64, Some(&[OPEN, 3]))];
    };
    assert_eq!(
        refusal_of(label),
        "model.toml: field `architecture.output`: the graph's output `logits` gives INT64, only \
         floats are scores of classes"
    );
    let (dir, folder) = zoo();
    let mut tokens = perceptron(1.0);
    tokens.inputs = vec![Value::new("x", INT64, Some(&[OPEN, 12]))];
    std::fs::write(folder.join("model.onnx"), tokens.bytes()).unwrap();
    let error = Zoo::open(dir.path()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "model.toml: field `architecture.input`: the graph takes INT64, the application's \
             input `pulse` is FP32"
        ),
        "{error}"
    );
}

#[test]
fn a_graph_without_a_batch_axis_is_refused() {
    let fixed = |size| {
        move |graph: &mut Graph| {
            graph.inputs = vec![Value::new("x", FLOAT, Some(&[size, 12]))];
        }
    };
    assert_eq!(
        refusal_of(fixed(1)),
        "model.toml: field `max_batch`: 16, but the first dimension of the graph's input is fixed \
         to 1: export it with a batch axis that is left open, or, where it is 1, serve batches of 1"
    );
    let number = |graph: &mut Graph| graph.inputs = vec![Value::new("x", FLOAT, Some(&[]))];
    assert_eq!(
        refusal_of(number),
        "model.toml: field `architecture.input`: the graph's input `x` has no batch axis: it is a \
         single value"
    );
    // A graph of batch 1 takes batches of one.
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    fixed(1)(&mut graph);
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    edit(&folder, "max_batch = 16", "max_batch = 1");
    VariantCard::read(&folder.join("model.toml")).unwrap();
}

#[test]
fn weights_in_another_file_are_refused() {
    let elsewhere = |graph: &mut Graph| graph.weights[2].data_location = 1;
    assert_eq!(
        refusal_of(elsewhere),
        "model.onnx: tensor `w1`: has its values in another file: `switchyard add` makes one file of both"
    );
}

#[test]
fn a_graph_has_one_stage_and_one_exit() {
    let reason = "model.toml: field `stages`: an ONNX graph is one stage with one exit";
    assert_eq!(refusal_with("stages = 1", "stages = 2"), reason);
    let early = "[[exits]]\nname = \"early\"\nafter_stage = 1\naccuracy = 0.5\n\n[[exits]]";
    assert_eq!(refusal_with("[[exits]]", early), reason);
}

#[test]
fn cards_of_other_networks_must_state_their_parameters() {
    let (dir, _) = zoo();
    let card = dir.path().join("pulse/plain/model.toml");
    let text = std::fs::read_to_string(&card).unwrap();
    std::fs::write(&card, text.replace("parameters = 99\n", "")).unwrap();
    let error = VariantCard::read(&card).unwrap_err().to_string();
    assert!(error.ends_with("field `parameters`: missing"), "{error}");
}

#[test]
fn a_graph_cannot_be_loaded_in_fewer_bits() {
    let (_dir, graph) = zoo();
    let Err(error) = load_variant_at(&graph, Precision::Int8, &Device::Cpu) else {
        panic!("loaded");
    };
    let error = error.to_string();
    let reason = "an ONNX graph has the precision of its file and cannot be loaded at int8";
    assert!(error.ends_with(reason), "{error}");
}
