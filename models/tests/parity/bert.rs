//! BERT-type encoders against `bert.py`.

use std::path::Path;

use candle_core::{DType, Device, Tensor};
use serde_json::json;
use switchyard_models::tokens::{stack, stack_pairs};
use switchyard_models::{LoadedVariant, Precision, load_variant, load_variant_standing_in};
use tempfile::TempDir;

use crate::common::{Tensors, distance, fan_in_scale, numbers, recorded};
use crate::text::{VOCABULARY, tokenizer};

/// Largest allowed difference.
const TOLERANCE: f64 = 1e-4;

const CLASSES: usize = 5;

/// The words are those of `bert.py`; the third text is cut there.
const TEXTS: [&str; 4] = [
    "w4 w5 w6",
    "w7",
    "w17 w99 w17 w42 w8 w9 w10 w11 w12 w13 w14 w15 w16",
    "W50 W51  w52 w53 w54 w55",
];
const MAX_TOKENS: usize = 13;

/// The longer text of the third pair is cut there.
pub(crate) const PAIRS: [(&str, &str); 3] = [
    ("w4 w5 w6", "w7 w8"),
    ("w9", ""),
    (
        "w10 w11 w12 w13",
        "w20 w21 w22 w23 w24 w25 w26 w27 w28 w29 w30 w31",
    ),
];

/// Answers of a model.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Head {
    Embedding,
    Classes,
    /// Of a pair.
    Score,
}

/// A model as `bert.py` has it.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    name: &'static str,
    model_type: &'static str,
    pub(crate) head: Head,
    activation: &'static str,
    hidden: usize,
    heads: usize,
    wide: usize,
    layers: usize,
    positions: usize,
    /// Prefix of the names of the encoder's tensors in the file.
    prefix: &'static str,
    /// Whether norms are called `gamma` and `beta`.
    greek: bool,
    /// Lines of the card, and the stages that they make of the layers.
    split: (&'static str, fn(usize) -> usize),
}

/// Attention and feed-forward network of each layer are stages of their own.
const HALVES: (&str, fn(usize) -> usize) =
    ("layers_per_stage = 1\nstages_per_layer = 2", |layers| {
        2 * layers
    });

pub(crate) const BERT: Case = Case {
    name: "bert-embedding",
    model_type: "bert",
    head: Head::Embedding,
    activation: "gelu",
    hidden: 64,
    heads: 4,
    wide: 128,
    layers: 3,
    positions: 40,
    prefix: "",
    greek: false,
    split: ("", |layers| layers.div_ceil(2)),
};

pub(crate) const CASES: [Case; 8] = [
    BERT,
    Case {
        name: "bert-classification",
        head: Head::Classes,
        activation: "gelu_new",
        prefix: "bert.",
        greek: true,
        ..BERT
    },
    Case {
        name: "roberta-classification",
        model_type: "roberta",
        head: Head::Classes,
        prefix: "roberta.",
        ..BERT
    },
    Case {
        name: "distilbert-classification",
        model_type: "distilbert",
        head: Head::Classes,
        activation: "relu",
        prefix: "distilbert.",
        split: HALVES,
        ..BERT
    },
    Case {
        name: "bert-pair",
        head: Head::Score,
        prefix: "bert.",
        ..BERT
    },
    Case {
        name: "roberta-pair",
        model_type: "roberta",
        head: Head::Score,
        prefix: "roberta.",
        ..BERT
    },
    Case {
        name: "distilbert-pair",
        model_type: "distilbert",
        head: Head::Score,
        prefix: "distilbert.",
        ..BERT
    },
    Case {
        name: "minilm-embedding",
        hidden: 384,
        heads: 12,
        wide: 1536,
        layers: 6,
        positions: 512,
        split: HALVES,
        ..BERT
    },
];

// === files ===

/// Tensors of a case, in the file's naming with the values of the bare naming.
struct Writer<'a> {
    case: &'a Case,
    tensors: Tensors,
    parameters: usize,
}

impl Writer<'_> {
    fn add(&mut self, prefix: &str, name: &str, shape: &[usize], scale: f32, offset: f32) {
        let mut written = format!("{prefix}{name}");
        if self.case.greek {
            written = written
                .replace("LayerNorm.weight", "LayerNorm.gamma")
                .replace("LayerNorm.bias", "LayerNorm.beta");
        }
        self.parameters += shape.iter().product::<usize>();
        self.tensors.add_as(&written, name, shape, scale, offset);
    }

    fn dense(&mut self, prefix: &str, name: &str, input: usize, output: usize) {
        let scale = fan_in_scale(input);
        self.add(
            prefix,
            &format!("{name}.weight"),
            &[output, input],
            scale,
            0.0,
        );
        self.add(prefix, &format!("{name}.bias"), &[output], 0.125, 0.0);
    }

    fn norm(&mut self, name: &str) {
        let (prefix, hidden) = (self.case.prefix, self.case.hidden);
        self.add(prefix, &format!("{name}.weight"), &[hidden], 0.25, 1.0);
        self.add(prefix, &format!("{name}.bias"), &[hidden], 0.125, 0.0);
    }

    fn encoder(&mut self) {
        let &Case {
            prefix,
            hidden,
            wide,
            layers,
            positions,
            ..
        } = self.case;
        let distil = self.case.model_type == "distilbert";
        let mut tables = vec![
            ("word_embeddings", VOCABULARY),
            ("position_embeddings", positions),
        ];
        if !distil {
            tables.push(("token_type_embeddings", 2));
        }
        for (table, rows) in tables {
            let name = format!("embeddings.{table}.weight");
            self.add(prefix, &name, &[rows, hidden], 0.5, 0.0);
        }
        self.norm("embeddings.LayerNorm");
        for i in 0..layers {
            let (at, square, norms, up, down) = if distil {
                let square =
                    ["q_lin", "k_lin", "v_lin", "out_lin"].map(|p| format!("attention.{p}"));
                let norms = ["sa_layer_norm", "output_layer_norm"];
                (
                    format!("transformer.layer.{i}"),
                    square,
                    norms,
                    "ffn.lin1",
                    "ffn.lin2",
                )
            } else {
                let square = ["self.query", "self.key", "self.value", "output.dense"]
                    .map(|p| format!("attention.{p}"));
                let norms = ["attention.output.LayerNorm", "output.LayerNorm"];
                let (up, down) = ("intermediate.dense", "output.dense");
                (format!("encoder.layer.{i}"), square, norms, up, down)
            };
            for part in square {
                self.dense(prefix, &format!("{at}.{part}"), hidden, hidden);
            }
            for part in norms {
                self.norm(&format!("{at}.{part}"));
            }
            self.dense(prefix, &format!("{at}.{up}"), hidden, wide);
            self.dense(prefix, &format!("{at}.{down}"), wide, hidden);
        }
    }

    fn head(&mut self) {
        let hidden = self.case.hidden;
        let outputs = match self.case.head {
            Head::Embedding => return,
            Head::Classes => CLASSES,
            Head::Score => 1,
        };
        let (inner, prefix, outer) = match self.case.model_type {
            "bert" => ("pooler.dense", self.case.prefix, "classifier"),
            "roberta" => ("classifier.dense", "", "classifier.out_proj"),
            _ => ("pre_classifier", "", "classifier"),
        };
        self.dense(prefix, inner, hidden, hidden);
        self.dense("", outer, hidden, outputs);
    }

    /// Parts of published files that loading ignores.
    fn unneeded(&mut self) {
        let ids = Tensor::arange(0i64, 40, &Device::Cpu).unwrap();
        let ids = ids.reshape((1, 40)).unwrap();
        let prefix = self.case.prefix;
        self.tensors
            .insert(&format!("{prefix}embeddings.position_ids"), ids);
        self.tensors
            .add("cls.predictions.bias", &[VOCABULARY], 1.0, 0.0);
        if self.case.head == Head::Embedding {
            let name = format!("{prefix}pooler.dense.weight");
            self.tensors.add(&name, &[8, 8], 1.0, 0.0);
        }
    }
}

fn config(case: &Case) -> serde_json::Value {
    if case.model_type == "distilbert" {
        return json!({
            "model_type": case.model_type, "vocab_size": VOCABULARY, "dim": case.hidden,
            "n_layers": case.layers, "n_heads": case.heads, "hidden_dim": case.wide,
            "activation": case.activation, "max_position_embeddings": case.positions,
            "sinusoidal_pos_embds": false,
        });
    }
    json!({
        "model_type": case.model_type, "architectures": ["Any"], "vocab_size": VOCABULARY,
        "hidden_size": case.hidden, "num_hidden_layers": case.layers,
        "num_attention_heads": case.heads, "intermediate_size": case.wide,
        "hidden_act": case.activation, "max_position_embeddings": case.positions,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "pad_token_id": usize::from(case.model_type == "roberta"),
    })
}

/// A variant's folder, as published apart from `model.toml`.
pub(crate) fn write(dir: &Path, case: &Case) {
    let mut writer = Writer {
        case,
        tensors: Tensors::default(),
        parameters: 0,
    };
    writer.encoder();
    writer.head();
    writer.unneeded();
    writer.tensors.save(&dir.join("model.safetensors"));
    std::fs::write(dir.join("config.json"), config(case).to_string()).unwrap();
    std::fs::write(dir.join("tokenizer.json"), tokenizer().to_string()).unwrap();
    let (head, outputs, further) = match case.head {
        Head::Embedding => (
            "sentence-embedding",
            case.hidden,
            "pooling = \"mean\"\nnormalise = true",
        ),
        Head::Classes => ("sequence-classification", CLASSES, ""),
        Head::Score => (
            "sequence-classification",
            1,
            "texts = 2\nactivation = \"sigmoid\"",
        ),
    };
    let (split, stages_of) = case.split;
    let stages = stages_of(case.layers);
    let card = format!(
        r#"name = "{name}"
summary = "A test"
weights = "model.safetensors"
parameters = {parameters}
max_batch = 8
stages = {stages}

[architecture]
kind = "bert"
head = "{head}"
outputs = {outputs}
layers = {layers}
{split}
max_tokens = {MAX_TOKENS}
{further}

[[exits]]
name = "final"
after_stage = {stages}
accuracy = 0.8

[provenance]
command = "bert.py"
data = "none"
"#,
        name = case.name,
        parameters = writer.parameters,
        layers = case.layers,
    );
    std::fs::write(dir.join("model.toml"), card).unwrap();
}

pub(crate) fn load(case: &Case) -> (TempDir, LoadedVariant) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), case);
    let loaded = load_variant(dir.path(), &Device::Cpu).unwrap();
    (dir, loaded)
}

fn ids(loaded: &LoadedVariant, texts: &[&str]) -> Tensor {
    let tokenizer = loaded.model.tokenizer().unwrap();
    let ids: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| tokenizer.ids(text).unwrap())
        .collect();
    stack(&ids, &Device::Cpu).unwrap()
}

pub(crate) fn rows(tensor: &Tensor) -> Vec<Vec<f32>> {
    tensor.to_vec2().unwrap()
}

pub(crate) fn pairs(loaded: &LoadedVariant, pairs: &[(&str, &str)]) -> Tensor {
    let tokenizer = loaded.model.tokenizer().unwrap();
    let pairs = pairs.iter().map(|(a, b)| tokenizer.pair(a, b).unwrap());
    stack_pairs(&pairs.collect::<Vec<_>>(), &Device::Cpu).unwrap()
}

/// The inputs of a case, as `bert.py` has them.
pub(crate) fn inputs(case: &Case, loaded: &LoadedVariant) -> Tensor {
    match case.head {
        Head::Score => pairs(loaded, &PAIRS),
        _ => ids(loaded, &TEXTS),
    }
}

/// All stages, then the scores of the only exit.
fn scores(loaded: &LoadedVariant, texts: &[&str]) -> Vec<Vec<f32>> {
    scores_of(loaded, ids(loaded, texts))
}

pub(crate) fn scores_of(loaded: &LoadedVariant, mut x: Tensor) -> Vec<Vec<f32>> {
    for stage in 0..loaded.model.stages() {
        x = loaded.model.run_stage(stage, &x).unwrap();
    }
    let logits = loaded.model.logits(0, &x).unwrap();
    rows(&logits.to_dtype(DType::F32).unwrap())
}

// === tests ===

#[test]
fn every_family_and_head_agrees_with_numpy() {
    for case in &CASES {
        let (_dir, loaded) = load(case);
        let want = recorded("bert.json", case.name);
        // All texts in one batch, which pads all but the longest.
        let ours = scores_of(&loaded, inputs(case, &loaded));
        assert_eq!(ours.len(), want.as_array().unwrap().len());
        for (ours, want) in ours.iter().zip(want.as_array().unwrap()) {
            let apart = distance(ours, &numbers(want));
            assert!(apart < TOLERANCE, "{}: {apart}", case.name);
        }
    }
}

/// As on a GPU, where `@f16` computes in half precision.
#[test]
fn half_precision_departs_little() {
    for case in &CASES {
        let (dir, loaded) = load(case);
        let half = load_variant_standing_in(dir.path(), Precision::F16).unwrap();
        assert!(half.bytes * 2 == loaded.bytes, "{}", case.name);
        let x = inputs(case, &loaded);
        let full = scores_of(&loaded, x.clone());
        for (full, half) in full.iter().zip(scores_of(&half, x)) {
            let full: Vec<f64> = full.iter().map(|v| f64::from(*v)).collect();
            let apart = distance(&half, &full);
            let scale = full.iter().fold(0f64, |most, v| most.max(v.abs()));
            assert!(apart > 0.0, "{} is not computed in fewer bits", case.name);
            assert!(apart < 0.02 * scale, "{}: {apart} of {scale}", case.name);
        }
    }
}

#[test]
fn a_head_of_classes_gives_probabilities_and_one_of_embeddings_unit_vectors() {
    for case in &CASES[..2] {
        let (_dir, loaded) = load(case);
        let answers = loaded.model.forward(0, &ids(&loaded, &TEXTS)).unwrap();
        for row in rows(&answers) {
            let sum: f32 = row.iter().sum();
            let length: f32 = row.iter().map(|v| v * v).sum();
            let one = match case.head {
                Head::Embedding => length,
                _ => sum,
            };
            assert!((one - 1.0).abs() < 1e-5, "{}: {one}", case.name);
        }
    }
}

#[test]
fn the_public_files_own_padding_and_truncation_are_replaced() {
    let (_dir, loaded) = load(&BERT);
    let tokenizer = loaded.model.tokenizer().unwrap();
    assert_eq!(tokenizer.max_tokens(), MAX_TOKENS);
    assert_eq!(tokenizer.ids("w7").unwrap(), [2, 7, 3]);
    assert_eq!(tokenizer.ids(TEXTS[2]).unwrap().len(), MAX_TOKENS);
    assert_eq!(tokenizer.ids("").unwrap(), [2, 3]);
    assert_eq!(tokenizer.ids("none of these").unwrap(), [2, 1, 1, 1, 3]);
}

#[test]
fn activations_of_batches_of_other_lengths_are_joined() {
    let (_dir, loaded) = load(&BERT);
    let model = &loaded.model;
    let alone = scores(&loaded, &TEXTS[..1]);
    let short = model.run_stage(0, &ids(&loaded, &TEXTS[..2])).unwrap();
    let long = model.run_stage(0, &ids(&loaded, &TEXTS[2..])).unwrap();
    assert_ne!(short.dims()[1], long.dims()[1]);
    let joined = model.join(&[long.narrow(0, 0, 1).unwrap(), short]).unwrap();
    let x = model.run_stage(1, &joined).unwrap();
    let ours = rows(&model.logits(0, &x).unwrap());
    assert_eq!(ours.len(), 3);
    let apart = distance(
        &ours[1],
        &alone[0].iter().map(|&v| v.into()).collect::<Vec<_>>(),
    );
    assert!(apart < 1e-5, "{apart}");
}

#[test]
fn wrong_calls_are_errors() {
    let (_dir, loaded) = load(&BERT);
    let model = &loaded.model;
    let x = ids(&loaded, &TEXTS);
    let floats = Tensor::zeros((1, 4), candle_core::DType::F32, &Device::Cpu).unwrap();
    assert!(model.run_stage(0, &floats).is_err());
    assert!(model.run_stage(model.stages(), &x).is_err());
    assert!(model.logits(0, &x).is_err());
    assert!(model.forward(1, &x).is_err());
    let unknown = Tensor::full(VOCABULARY as i64, (1, 2), &Device::Cpu).unwrap();
    assert!(model.run_stage(0, &unknown).is_err());
    let long = Tensor::full(1i64, (1, 41), &Device::Cpu).unwrap();
    assert!(model.run_stage(0, &long).is_err());
}
