//! A server that cannot run a graph says so before it listens.

use std::fs;

use switchyard_models::Zoo;

use crate::onnx_zoo;

use super::binary::switchyard;

#[test]
fn a_library_that_is_missing_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    onnx_zoo::write(&folder.path().join("zoo"));
    let config = r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
onnxruntime = "no-such/libonnxruntime.so"

[[app]]
name = "pulse"
zoo = "zoo"

[[worker]]
name = "cpu"

[[pool]]
name = "main"
apps = ["pulse"]
workers = ["cpu"]
policy = "fcfs"
"#;
    let file = folder.path().join("test-bed.toml");
    fs::write(&file, config).unwrap();
    let ran = switchyard(&["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let library = folder.path().join("no-such/libonnxruntime.so");
    let reason = format!(
        "onnxruntime cannot be loaded from {} (field `server.onnxruntime`): no such file",
        library.display()
    );
    let wanted = format!("{}: app pulse, variant graph: {reason}", file.display());
    assert!(ran.stderr.contains(&wanted), "{}\n{wanted}", ran.stderr);
}

/// The output of `switchyard add` in a folder with a graph.
fn add(folder: &std::path::Path, options: &[&str]) -> super::binary::Ran {
    let at = |name: &str| folder.join(name).display().to_string();
    let (graph, zoo, config) = (at("graph.onnx"), at("zoo"), at("switchyard.toml"));
    let mut args = vec!["add", &graph, "--zoo", &zoo, "--config", &config];
    args.extend(options);
    switchyard(&args)
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
        first.stdout.contains("quality unknown, counted as 1"),
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
    refused(&graph, &["--slo-ms", "0"], "--slo-ms 0: must be above 0");
    let labels = folder.path().join("labels.txt");
    fs::write(&labels, "even\nodd\n").unwrap();
    let two = ["--classes", labels.to_str().unwrap()];
    refused(&graph, &two, "2, the graph's output is `logits` [?, 3]");
    graph.nodes[1].op_type = "Rectify".to_owned();
    refused(&graph, &[], "Rectify");
    graph = onnx_zoo::perceptron(1.0);
    graph.weights[2].data_location = 1;
    refused(&graph, &[], "save the graph as one file");
    let unknown = switchyard(&["add", "no-such.bin"]);
    assert!(
        unknown.stderr.contains("no-such.bin: No such file"),
        "{}",
        unknown.stderr
    );
    let unknown = switchyard(&["add", "x.onnx", "--task", "guess"]);
    assert!(unknown.stderr.contains(&task[8..]), "{}", unknown.stderr);
}
