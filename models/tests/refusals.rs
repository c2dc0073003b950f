//! Wrong cards and files, and the line that each is refused with: file, field, value, way out.
#![allow(clippy::unwrap_used)]

#[path = "common/onnx.rs"]
#[allow(dead_code)]
mod onnx;
#[path = "common/onnx_zoo.rs"]
#[allow(dead_code)]
mod onnx_zoo;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::Device;
use insta::assert_snapshot;
use switchyard_models::{Zoo, load_variant};
use tempfile::TempDir;

/// Edits of `app.toml`: the text replaced, and the text in its place.
const APP: [(&str, &str); 16] = [
    ("name = \"heart\"", "name = \"../heart\""),
    ("name = \"heart\"", "nmae = \"heart\""),
    ("slo_ms = 150.0", "slo_ms = 0.0"),
    ("slo_ms = 150.0", "slo_ms = \"soon\""),
    ("slo_ms = 150.0\n", ""),
    ("penalty = \"sigmoid\"", "penalty = \"steep\""),
    ("\"F\", \"P\"]", "\"F\"]"),
    ("workload_mix = [0.8", "workload_mix = [-0.8"),
    ("workload_mix = [0.8", "workload_mix = [0.7"),
    ("datatype = \"FP32\"", "datatype = \"FP31\""),
    ("shape = [187]", "shape = [0]"),
    ("shape = [187]", "shape = [-1]"),
    ("shape = [7]", "shape = [8]"),
    ("k = 5", "k = 0"),
    ("accuracy = 0.79", "accuracy = 79"),
    (
        "file = \"sneakpeek.safetensors\"",
        "file = \"../up.safetensors\"",
    ),
];

/// Edits of `cnn-small/model.toml`.
const VARIANT: [(&str, &str); 17] = [
    ("name = \"cnn-small\"", "name = \"cnn-large\""),
    (
        "weights = \"weights.safetensors\"",
        "weights = \"/etc/passwd\"",
    ),
    (
        "weights = \"weights.safetensors\"",
        "weights = \"gone.safetensors\"",
    ),
    ("parameters = 7415", "parameters = 7416"),
    ("parameters = 7415\n", ""),
    ("max_batch = 32", "max_batch = 0"),
    ("stages = 2", "stages = 9"),
    ("kind = \"cnn1d\"", "kind = \"transformer\""),
    ("samples = 187", "samples = 100"),
    ("classes = 7", "classes = 5"),
    ("kernel = 9", "kernel = 0"),
    ("channels = 24", "channels = 25"),
    ("stride = 1", "stride = 1\npadding = 4"),
    ("after_stage = 2", "after_stage = 3"),
    ("accuracy = 0.7334", "accuracy = 1.7334"),
    ("recall = [0.945, ", "recall = ["),
    (
        "[provenance]",
        "[memory]\nengine = \"rten\"\nbytes = 1\n\n[provenance]",
    ),
];

/// Edits of the card of a graph.
const GRAPH: [(&str, &str); 11] = [
    ("kind = \"onnx\"", "kind = \"onnx\"\ntask = \"guess\""),
    (
        "kind = \"onnx\"",
        "kind = \"onnx\"\ntask = \"tensors\"\nscores = \"logits\"",
    ),
    ("kind = \"onnx\"", "kind = \"onnx\"\ninput = \"image\""),
    ("kind = \"onnx\"", "kind = \"onnx\"\noutput = \"scores\""),
    ("kind = \"onnx\"", "kind = \"onnx\"\nshape = [3, 4]"),
    ("kind = \"onnx\"", "kind = \"onnx\"\nclasses = 4"),
    ("kind = \"onnx\"", "kind = \"onnx\"\nscores = \"odds\""),
    ("stages = 1", "stages = 2"),
    ("max_batch = 16", "max_batch = 16\nparameters = 98"),
    ("weights = \"model.onnx\"", "weights = \"model.tflite\""),
    ("accuracy = 0.9", "accuracy = 0.9\nrecall = [0.9]"),
];

/// A zoo with the heart app and one of its variants.
fn heart() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/heart");
    fs::create_dir_all(dir.path().join("heart/cnn-small")).unwrap();
    for file in [
        "app.toml",
        "sneakpeek.safetensors",
        "cnn-small/model.toml",
        "cnn-small/weights.safetensors",
    ] {
        fs::copy(shipped.join(file), dir.path().join("heart").join(file)).unwrap();
    }
    let variant = dir.path().join("heart/cnn-small");
    (dir, variant)
}

/// A zoo with a graph.
fn graph() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = onnx_zoo::write(dir.path());
    (dir, folder)
}

/// The refusal of a zoo whose file `card` was edited, or of its weights.
fn refusal((dir, variant): (TempDir, PathBuf), card: &Path, (from, to): (&str, &str)) -> String {
    let text = fs::read_to_string(card).unwrap();
    assert!(text.contains(from), "`{from}` is not in {}", card.display());
    fs::write(card, text.replacen(from, to, 1)).unwrap();
    let error = match Zoo::open(dir.path()) {
        Err(error) => error.to_string(),
        Ok(_) => match load_variant(&variant, &Device::Cpu) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("served with `{to}`"),
        },
    };
    error.replace(&format!("{}/", dir.path().display()), "")
}

/// One line per edit, with the refusal below it.
fn table(
    edits: &[(&str, &str)],
    zoo: impl Fn() -> (TempDir, PathBuf),
    card: impl Fn(&Path) -> PathBuf,
) -> String {
    let mut table = String::new();
    for &edit in edits {
        let made = zoo();
        let card = card(&made.1);
        let said = refusal(made, &card, edit);
        assert!(
            said.starts_with("heart/") || said.starts_with("pulse/"),
            "{said}"
        );
        let line = |text: &str| text.trim().replace('\n', ", ");
        let (from, to) = (line(edit.0), line(edit.1));
        writeln!(table, "{from} -> {to}\n  {}", said.replace('\n', "\n  ")).unwrap();
    }
    table
}

#[test]
fn wrong_cards_of_an_app_are_refused_with_file_field_and_way_out() {
    let card = |variant: &Path| variant.with_file_name("app.toml");
    assert_snapshot!("wrong_apps", table(&APP, heart, card));
}

#[test]
fn wrong_cards_of_a_variant_are_refused_with_file_field_and_way_out() {
    let card = |variant: &Path| variant.join("model.toml");
    assert_snapshot!("wrong_variants", table(&VARIANT, heart, card));
}

#[test]
fn wrong_cards_of_a_graph_are_refused_with_file_field_and_way_out() {
    let card = |variant: &Path| variant.join("model.toml");
    assert_snapshot!("wrong_graphs", table(&GRAPH, graph, card));
}
