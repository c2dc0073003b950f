//! The answers of graphs, next to those of the same networks here.

use candle_core::{Device, Tensor};
use switchyard_models::{StagedModel, load_variant};

use super::onnx::{FLOAT, Node, OPEN, Value};
use super::onnx_zoo::{SAMPLES, perceptron};
use super::{edit, zoo};

fn inputs(rows: usize) -> Tensor {
    let numbers = (0..rows * SAMPLES).map(|i| (i as f32 * 0.9).cos());
    let numbers: Vec<f32> = numbers.collect();
    Tensor::from_vec(numbers, (rows, SAMPLES), &Device::Cpu).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

fn assert_close(found: &Tensor, wanted: &Tensor) {
    assert_eq!(found.dims(), wanted.dims());
    for (found, wanted) in numbers(found).into_iter().zip(numbers(wanted)) {
        assert!((found - wanted).abs() < 1e-5, "{found} for {wanted}");
    }
}

#[test]
fn a_graph_answers_as_the_same_network_does_here() {
    let (_dir, graph) = zoo();
    let theirs = load_variant(&graph, &Device::Cpu).unwrap();
    let ours = load_variant(&graph.with_file_name("plain"), &Device::Cpu).unwrap();
    assert_eq!(theirs.bytes, ours.bytes);
    for rows in [1, 2, 16, 5] {
        let x = inputs(rows);
        let (found, wanted) = (theirs.model.forward(0, &x), ours.model.forward(0, &x));
        assert_close(&found.unwrap(), &wanted.unwrap());
        let logits =
            |model: &dyn StagedModel| model.logits(0, &model.run_stage(0, &x).unwrap()).unwrap();
        assert_close(&logits(&*theirs.model), &wanted_logits(&*ours.model, &x));
    }
    let error = theirs
        .model
        .run_stage(0, &inputs(2).narrow(1, 0, 5).unwrap());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("input has 5 samples, the model takes 12"),
        "{error}"
    );
}

fn wanted_logits(model: &dyn StagedModel, x: &Tensor) -> Tensor {
    let x = model.run_stages(0..model.stages(), x).unwrap();
    model.logits(0, &x).unwrap()
}

#[test]
fn probabilities_are_answered_as_they_are() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.nodes.push(Node::new("Softmax", &["logits"], "p"));
    graph.outputs = vec![Value::new("p", FLOAT, Some(&[OPEN, 3]))];
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    edit(
        &folder,
        "kind = \"onnx\"",
        "kind = \"onnx\"\nscores = \"probabilities\"",
    );
    let theirs = load_variant(&folder, &Device::Cpu).unwrap().model;
    let ours = load_variant(&folder.with_file_name("plain"), &Device::Cpu)
        .unwrap()
        .model;
    let x = inputs(4);
    let wanted = ours.forward(0, &x).unwrap();
    assert_close(&theirs.forward(0, &x).unwrap(), &wanted);
    // The logarithms are scores: a softmax of them gives the probabilities again.
    let logits = theirs.logits(0, &theirs.run_stage(0, &x).unwrap()).unwrap();
    assert_close(&candle_nn::ops::softmax_last_dim(&logits).unwrap(), &wanted);
}

#[test]
fn a_refusal_of_the_engine_names_the_file_and_the_operator() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.nodes[1].op_type = "Rectify".to_owned();
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    let Err(error) = load_variant(&folder, &Device::Cpu) else {
        panic!("loaded");
    };
    let error = error.to_string();
    let file = folder.join("model.onnx");
    assert!(
        error.starts_with(&format!("{}: ", file.display())),
        "{error}"
    );
    assert!(error.contains("Rectify"), "{error}");
}

/// An output that differs from the file's declaration is found when the graph runs.
#[test]
fn an_answer_of_another_shape_is_refused() {
    let (_dir, folder) = zoo();
    let mut graph = perceptron(1.0);
    graph.outputs = vec![Value::new("logits", FLOAT, None)];
    std::fs::write(folder.join("model.onnx"), graph.bytes()).unwrap();
    edit(&folder, "kind = \"onnx\"", "kind = \"onnx\"\nclasses = 4");
    let model = load_variant(&folder, &Device::Cpu).unwrap().model;
    let error = model.forward(0, &inputs(2)).unwrap_err().to_string();
    assert!(
        error.contains("output `logits` is [2, 3] for 2 inputs, not 4 values for each"),
        "{error}"
    );
}

/// Workers of different sizes share a graph and run it at the same time, while another file takes
/// its name, and also after the file was overwritten and no more sessions can be made.
#[test]
fn batches_run_at_the_same_time_whatever_happens_to_the_file() {
    let (_dir, folder) = zoo();
    let file = folder.join("model.onnx");
    let model = load_variant(&folder, &Device::Cpu).unwrap().model;
    let ours = load_variant(&folder.with_file_name("plain"), &Device::Cpu)
        .unwrap()
        .model;
    let x = inputs(8);
    let wanted = ours.forward(0, &x).unwrap();
    let at_once = || {
        std::thread::scope(|scope| {
            for threads in [1, 2, 1, 2, 1] {
                let (model, x, wanted) = (&model, &x, &wanted);
                scope.spawn(move || {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                    let run = || (0..50).map(|_| model.forward(0, x).unwrap()).collect();
                    let answers: Vec<Tensor> = pool.build().unwrap().install(run);
                    answers.iter().for_each(|found| assert_close(found, wanted));
                });
            }
        });
    };
    let other_file = folder.join("other");
    std::fs::write(&other_file, perceptron(2.0).bytes()).unwrap();
    std::fs::rename(&other_file, &file).unwrap();
    at_once();
    // Loaded from the new file, which is overwritten before a second session is needed.
    let model = load_variant(&folder, &Device::Cpu).unwrap().model;
    let other = model.forward(0, &x).unwrap();
    assert!(
        numbers(&other)
            .iter()
            .zip(numbers(&wanted))
            .any(|(a, b)| (a - b).abs() > 1e-3)
    );
    std::fs::write(&file, b"written over").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_close(&model.forward(0, &x).unwrap(), &other);
                }
            });
        }
    });
}
