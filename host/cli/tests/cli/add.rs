//! `switchyard add`: cards from a model's own files, and refusals that leave nothing behind.

use std::fs;
use std::path::Path;

use switchyard_models::Zoo;

use super::binary::{Ran, switchyard};
use crate::onnx::{FLOAT, Node, OPEN, Value};
use crate::onnx_zoo;
use crate::text_zoo::{Answers, write_app};

/// The output of `switchyard add` with the zoo and the configuration of a folder.
fn add_from(source: &Path, folder: &Path, options: &[&str]) -> Ran {
    let at = |name: &str| folder.join(name).display().to_string();
    let (zoo, config) = (at("zoo"), at("switchyard.toml"));
    let source = source.display().to_string();
    let mut args = vec!["add", &source, "--zoo", &zoo, "--config", &config];
    args.extend(options);
    switchyard(&args)
}

/// The output of `switchyard add` in a folder with a graph.
fn add(folder: &Path, options: &[&str]) -> Ran {
    add_from(&folder.join("graph.onnx"), folder, options)
}

#[test]
fn a_graph_is_added_with_its_cards_and_named_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = onnx_zoo::perceptron(1.0).bytes();
    fs::write(folder.path().join("graph.onnx"), bytes).unwrap();
    fs::write(folder.path().join("labels.txt"), "even\nodd\nnone\n").unwrap();
    let labels = folder.path().join("labels.txt");
    let labels = labels.to_str().unwrap();

    let first = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(
        first
            .stdout
            .starts_with("added pulse/v1: 99 parameters on "),
        "{}",
        first.stdout
    );
    assert!(
        first
            .stdout
            .contains("quality unknown: --quality states it"),
        "{}",
        first.stdout
    );
    let second = add(folder.path(), &["--as", "pulse/v2", "--quality", "0.7"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let kinds = add(folder.path(), &["--as", "kinds", "--classes", labels]);
    assert_eq!(kinds.code, Some(0), "{}", kinds.stderr);

    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let pulse = zoo.app("pulse").unwrap();
    assert_eq!(pulse.card.task.name(), "tensors");
    assert_eq!(pulse.card.outputs[0].name, "logits");
    assert_eq!(pulse.variant("v2").unwrap().card.exits[0].accuracy, 0.7);
    let kinds = zoo.app("kinds").unwrap();
    assert_eq!(kinds.card.classes, ["even", "odd", "none"]);
    let config = fs::read_to_string(folder.path().join("switchyard.toml")).unwrap();
    assert!(config.contains("apps = [\"pulse\", \"kinds\"]"), "{config}");
    // Without it the server does not start.
    assert!(folder.path().join("policies").is_dir());
}

#[test]
fn a_graph_with_its_values_in_another_file_becomes_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, values) = onnx_zoo::perceptron(1.0).apart("graph.onnx.data");
    fs::write(folder.path().join("graph.onnx"), graph).unwrap();
    let missing = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stdout);
    assert!(
        missing.stderr.contains("graph.onnx.data: No such file"),
        "{}",
        missing.stderr
    );
    fs::write(folder.path().join("graph.onnx.data"), values).unwrap();
    let added = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let placed = fs::read(folder.path().join("zoo/pulse/v1/model.onnx")).unwrap();
    assert_eq!(placed, onnx_zoo::perceptron(1.0).bytes());
}

/// A forest's numbers are attributes: its weights alone would count as nothing.
#[test]
fn the_memory_of_a_graph_is_measured_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let width = 4 << 20;
    let mut graph = onnx_zoo::perceptron(1.0);
    graph
        .nodes
        .push(Node::new("Constant", &[], "many").floats("value_floats", &vec![0.5; width]));
    graph.nodes.push(Node::new("ReduceMean", &["many"], "mean"));
    graph
        .nodes
        .push(Node::new("Add", &["logits", "mean"], "shifted"));
    graph.outputs = vec![Value::new("shifted", FLOAT, Some(&[OPEN, 3]))];
    fs::write(folder.path().join("graph.onnx"), graph.bytes()).unwrap();
    let added = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let card = &zoo.app("pulse").unwrap().variant("v1").unwrap().card;
    let bytes = card.memory.as_ref().unwrap().bytes;
    assert!(bytes > 0 && card.weight_bytes() >= bytes, "{bytes}");
}

/// Nothing is left behind, and every refusal has a way out.
#[test]
fn a_graph_that_cannot_be_served_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    let mut graph = onnx_zoo::perceptron(1.0);
    let refused = |graph: &crate::onnx::Graph, options: &[&str], wanted: &str| {
        fs::write(folder.path().join("graph.onnx"), graph.clone().bytes()).unwrap();
        let ran = add(folder.path(), options);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains(wanted), "{}\n{wanted}", ran.stderr);
        assert!(!folder.path().join("switchyard.toml").exists());
        let left = fs::read_dir(folder.path().join("zoo")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{wanted}");
    };
    let task = "--task: expected classify, embed, regress, score or tensors";
    let classes = "task \"classify\" needs the names of the classes: --classes FILE";
    refused(&graph, &["--task", "classify"], classes);
    refused(
        &graph,
        &["--shape", "y=3"],
        "has no input `y` of --shape, it has: x",
    );
    refused(&graph, &["--as", "../up"], "names have letters, digits");
    for any in ["pulse/1", "pulse/latest"] {
        refused(
            &graph,
            &["--as", any],
            "leave the choice to the policy: choose another",
        );
    }
    refused(&graph, &["--slo-ms", "0"], "--slo-ms 0: must be above 0");
    let labels = folder.path().join("labels.txt");
    fs::write(&labels, "even\nodd\n").unwrap();
    let two = ["--classes", labels.to_str().unwrap()];
    refused(&graph, &two, "2, the graph's output is `logits` [?, 3]");
    graph.nodes[1].op_type = "Rectify".to_owned();
    refused(&graph, &[], "Rectify");
    graph = onnx_zoo::perceptron(1.0);
    graph.weights[2].data_location = 1;
    refused(&graph, &[], "must be a file in the graph's folder");
    let unknown = switchyard(&["add", "no-such.bin"]);
    assert!(
        unknown.stderr.contains("no-such.bin: No such file"),
        "{}",
        unknown.stderr
    );
    let unknown = switchyard(&["add", "x.onnx", "--task", "guess"]);
    assert!(unknown.stderr.contains(&task[8..]), "{}", unknown.stderr);
}

/// A folder as published has no cards: only the model's own files.
#[test]
fn an_encoder_is_added_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let published = folder.path().join("published");
    write_app(&published, "sense", Answers::Embeddings, &["tiny"]);
    write_app(&published, "mood", Answers::Classes, &["tiny"]);
    let (sense, mood) = (published.join("sense/tiny"), published.join("mood/tiny"));
    for dir in [&sense, &mood] {
        fs::remove_file(dir.join("model.toml")).unwrap();
    }
    let unsaid = add_from(&sense, folder.path(), &["--as", "search"]);
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.stdout);
    assert!(unsaid.stderr.contains("--pooling"), "{}", unsaid.stderr);
    let said = [
        "--as",
        "search/tiny",
        "--pooling",
        "mean",
        "--normalise",
        "true",
    ];
    let added = add_from(&sense, folder.path(), &said);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(
        added.stdout.contains("on switchyard's own kernels"),
        "{}",
        added.stdout
    );

    let unnamed = add_from(
        &mood,
        folder.path(),
        &["--as", "mood", "--task", "classify"],
    );
    assert!(
        unnamed.stderr.contains("--classes FILE"),
        "{}",
        unnamed.stderr
    );
    let labels = published.join("mood/labels.txt");
    let named = [
        "--as",
        "mood",
        "--task",
        "classify",
        "--classes",
        labels.to_str().unwrap(),
    ];
    let added = add_from(&mood, folder.path(), &named);
    assert_eq!(added.code, Some(0), "{}", added.stderr);

    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let search = zoo.app("search").unwrap();
    assert_eq!(search.card.task.name(), "embed");
    assert_eq!(search.card.outputs[0].name, "embedding");
    assert_eq!(
        zoo.app("mood").unwrap().card.classes,
        ["good", "bad", "so so"]
    );
    let written = fs::read_to_string(folder.path().join("zoo/mood/v1/model.toml")).unwrap();
    let shipped = format!("{}/published/mood", folder.path().display());
    assert!(written.contains(&shipped), "its origin: {written}");
}

/// The card of an app may name files next to it.
#[test]
fn a_variant_is_added_to_an_app_whose_card_names_files() {
    let folder = tempfile::tempdir().unwrap();
    write_app(
        &folder.path().join("zoo"),
        "mood",
        Answers::Classes,
        &["tiny"],
    );
    let source = folder.path().join("zoo/mood/tiny");
    let named = ["--task", "classify", "--classes"];
    let labels = folder.path().join("zoo/mood/labels.txt");
    let mut options = named.to_vec();
    options.extend([
        labels.to_str().unwrap(),
        "--as",
        "mood/second",
        "--quality",
        "0.5",
    ]);
    let added = add_from(&source, folder.path(), &options);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let mood = zoo.app("mood").unwrap();
    assert_eq!(mood.variants.len(), 2);
    assert_eq!(mood.variant("second").unwrap().card.exits[0].accuracy, 0.5);
    let again = add_from(&source, folder.path(), &options);
    assert!(
        again.stderr.contains("exists; choose another variant"),
        "{}",
        again.stderr
    );
}

/// The model is tried before, and stays out if its app cannot be named.
#[test]
fn a_wrong_configuration_leaves_no_model_behind() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = onnx_zoo::perceptron(1.0).bytes();
    fs::write(folder.path().join("graph.onnx"), bytes).unwrap();
    fs::write(
        folder.path().join("switchyard.toml"),
        "[server]\nhttp = 7\n",
    )
    .unwrap();
    let refused = add(folder.path(), &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("switchyard.toml: has no [[pool]]"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_dir(folder.path().join("zoo")).unwrap().count(), 0);
}

/// A file has the name of the folder of policies, which a new configuration gets.
#[test]
fn a_configuration_that_cannot_be_written_leaves_no_model_behind() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = onnx_zoo::perceptron(1.0).bytes();
    fs::write(folder.path().join("graph.onnx"), bytes).unwrap();
    let policies = folder.path().join("policies");
    fs::write(&policies, "").unwrap();
    let refused = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("policies: File exists"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_dir(folder.path().join("zoo")).unwrap().count(), 0);
    fs::remove_file(&policies).unwrap();
    let again = add(folder.path(), &["--as", "pulse"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn a_preprocessor_next_to_a_graph_makes_its_input_an_image() {
    use crate::onnx::{FLOAT, Graph, Node, OPEN, Value};

    let folder = tempfile::tempdir().unwrap();
    let shape = Some(&[OPEN, 3, OPEN, OPEN][..]);
    let graph = Graph {
        nodes: vec![Node::new("Identity", &["pixel_values"], "same")],
        inputs: vec![Value::new("pixel_values", FLOAT, shape)],
        outputs: vec![Value::new("same", FLOAT, shape)],
        ..Graph::default()
    };
    fs::write(folder.path().join("graph.onnx"), graph.bytes()).unwrap();
    let preprocessor = r#"{"image_processor_type": "ViTImageProcessor", "do_resize": true,
        "size": {"height": 4, "width": 6}, "resample": 3, "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5]}"#;
    fs::write(folder.path().join("preprocessor_config.json"), preprocessor).unwrap();

    let derived = add(folder.path(), &["--as", "photo"]);
    assert_eq!(derived.code, Some(0), "{}", derived.stderr);
    let tensors = add(folder.path(), &["--as", "pixels", "--image", "none"]);
    assert_eq!(tensors.code, Some(0), "{}", tensors.stderr);
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let photo = &zoo.app("photo").unwrap().card.inputs[0];
    let image = photo.image.as_ref().unwrap();
    assert_eq!(
        (image.size, photo.shape.as_slice()),
        ([4, 6], &[3, 4, 6][..])
    );
    assert_eq!(zoo.app("pixels").unwrap().card.inputs[0].image, None);

    let same = add(folder.path(), &["--as", "photo/v2"]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    let other = preprocessor.replace("0.5, 0.5, 0.5", "0.4, 0.4, 0.4");
    fs::write(folder.path().join("preprocessor_config.json"), other).unwrap();
    let other = add(folder.path(), &["--as", "photo/v3"]);
    assert_eq!(other.code, Some(2), "{}", other.stdout);
    assert!(
        other
            .stderr
            .contains("app.toml: inputs.image: makes other tensors"),
        "{}",
        other.stderr
    );
    let kept = add(folder.path(), &["--as", "photo/v3", "--image", "none"]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);

    let missing = add(folder.path(), &["--as", "other", "--image", "missing.json"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stdout);
    assert!(
        missing.stderr.contains("missing.json"),
        "{}",
        missing.stderr
    );
}

/// Files of a cross-encoder say that it reads pairs, and the function of its score.
#[test]
fn a_cross_encoder_is_added_with_two_texts_and_a_score() {
    let folder = tempfile::tempdir().unwrap();
    let published = folder.path().join("published");
    write_app(&published, "rank", Answers::Score, &["tiny"]);
    let source = published.join("rank/tiny");
    fs::remove_file(source.join("model.toml")).unwrap();
    let refused = |options: &[&str], wanted: &str| {
        let ran = add_from(&source, folder.path(), options);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    };
    refused(&["--task", "score"], "--texts 1 or --texts 2");
    refused(
        &["--task", "score", "--texts", "2"],
        "--activation: missing",
    );
    refused(&["--task", "score", "--texts", "1"], "task \"regress\"");

    let file = source.join("config.json");
    let config = fs::read_to_string(&file).unwrap();
    let stated = r#"{"architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"}, "sentence_transformers": {"version": "4.0.1",
        "activation_fn": "torch.nn.modules.activation.Sigmoid"}, "#;
    fs::write(&file, config.replacen('{', stated, 1)).unwrap();
    let added = add_from(&source, folder.path(), &["--as", "rank"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let card = &zoo.app("rank").unwrap().card;
    assert_eq!(card.task.name(), "score");
    let names: Vec<&str> = card.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["text", "text_pair"]);
    assert_eq!(
        (&*card.outputs[0].name, &*card.outputs[0].shape),
        ("score", &[1][..])
    );
}

#[test]
fn an_unknown_network_names_the_way_over_onnx() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("electra");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("config.json"), r#"{"model_type": "electra"}"#).unwrap();
    let ran = add_from(&source, folder.path(), &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    for wanted in [
        "`model_type`: `electra` is unknown here; known: bert",
        "`optimum-cli export onnx --model NAME DIR`",
        "`switchyard add DIR/model.onnx`",
    ] {
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    let weights = folder.path().join("odd.safetensors");
    let published = folder.path().join("published");
    write_app(&published, "sense", Answers::Embeddings, &["tiny"]);
    fs::copy(published.join("sense/tiny/model.safetensors"), &weights).unwrap();
    let ran = add_from(&weights, folder.path(), &[]);
    assert!(
        ran.stderr
            .contains("needs its config.json and tokenizer.json"),
        "{}",
        ran.stderr
    );
}
