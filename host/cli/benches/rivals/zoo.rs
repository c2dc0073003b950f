//! The models as files: two zoos, one for this server's own kernels, one of ONNX graphs. Their weights are drawn.

use std::path::Path;
use std::process::Command;

use super::model::{LONG_WORDS, Model, SAMPLES, SHORT_WORDS, SIDE};
use super::perceptron;
use super::python::python;
use super::resnet::NETWORKS;
use super::text_zoo::{Answers, EncoderSize, MINILM, write_app_of};

const IMAGES: &str = r#"name = "resnet50"
summary = "Images to one of 1,000 classes"
task = "classify"
classes_file = "labels.txt"
slo_ms = 500.0
penalty = "step"

[[inputs]]
name = "x"
datatype = "FP32"
shape = [3, 224, 224]

[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [1000]
"#;

/// Those of the longest short text, with its begin and end.
const SHORT_TOKENS: usize = SHORT_WORDS[1] + 2;

const GRAPH: &str = r#"name = "only"
summary = "An ONNX graph"
weights = "model.onnx"
max_batch = 8
stages = 1

[architecture]
kind = "onnx"
task = "tensors"

[[exits]]
name = "final"
after_stage = 1
accuracy = 0.5

[provenance]
command = "rivals"
data = "none"
"#;

/// Writes `folder/kernels` and `folder/graphs`, the graphs alone into `folder/onnx`, and text-embeddings-inference's
/// encoder into `folder/tei`.
pub(crate) fn write(folder: &Path) {
    let [kernels, graphs, onnx] = ["kernels", "graphs", "onnx"].map(|name| folder.join(name));
    let images = kernels.join("resnet50");
    std::fs::create_dir_all(&images).unwrap();
    std::fs::create_dir_all(&onnx).unwrap();
    std::fs::write(images.join("app.toml"), IMAGES).unwrap();
    let labels: String = (0..1_000).map(|class| format!("class {class}\n")).collect();
    std::fs::write(images.join("labels.txt"), labels).unwrap();
    let network = NETWORKS.iter().find(|network| network.name == "resnet50");
    network.unwrap().write(&images).unwrap();
    let encoder = EncoderSize {
        typical_tokens: SHORT_TOKENS,
        ..MINILM
    };
    write_app_of(&encoder, &kernels, "minilm", Answers::Embeddings, &["only"]);
    perceptron::write_zoo(&kernels);
    export(&kernels, &onnx, &folder.join("tei"));
    for model in Model::ALL {
        let app = graphs.join(model.name());
        std::fs::create_dir_all(app.join("only")).unwrap();
        std::fs::write(app.join("app.toml"), tensors(model)).unwrap();
        std::fs::write(app.join("only/model.toml"), GRAPH).unwrap();
        let graph = onnx.join(format!("{}.onnx", model.name()));
        std::fs::copy(graph, app.join("only/model.onnx")).unwrap();
    }
}

/// The graphs of the same weights.
fn export(kernels: &Path, onnx: &Path, tei: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/rivals/export.py");
    let mut command = Command::new(python().unwrap());
    let status = command
        .arg(script)
        .args([kernels, onnx, tei])
        .status()
        .unwrap();
    assert!(status.success(), "{command:?} failed");
}

/// The card of an application that answers with the graph's output.
fn tensors(model: Model) -> String {
    let input = match model {
        Model::Resnet50 => {
            format!("name = \"x\", datatype = \"FP32\", shape = [3, {SIDE}, {SIDE}]")
        }
        Model::Mlp => format!("name = \"x\", datatype = \"FP32\", shape = [{SAMPLES}]"),
        Model::Minilm => format!(
            "name = \"ids\", datatype = \"INT64\", shape = [-1], typical = [{}], largest = [{}]",
            SHORT_TOKENS,
            LONG_WORDS[1] + 2
        ),
    };
    let width = match model {
        Model::Resnet50 => 1_000,
        Model::Minilm => MINILM.hidden,
        Model::Mlp => perceptron::CLASSES,
    };
    format!(
        "name = \"{}\"\nsummary = \"Tensors\"\ntask = \"tensors\"\nslo_ms = 500.0\n\
         penalty = \"step\"\ninputs = [{{ {input} }}]\n\
         outputs = [{{ name = \"y\", datatype = \"FP32\", shape = [{width}] }}]\n",
        model.name()
    )
}
