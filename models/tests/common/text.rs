//! Zoos of small text encoders with made-up weights, in Hugging Face's layout.
//!
//! Uses nothing of its crate, so that the tests of other crates can include it.

use std::path::Path;

use serde_json::{Map, Value, json};

/// Words the tokenizer knows: four special ones, then `w4`, `w5` and so on.
pub(crate) const VOCABULARY: usize = 100;

/// Values of an embedding.
pub(crate) const HIDDEN: usize = 16;

/// Tokens that a text is cut to.
pub(crate) const MAX_TOKENS: usize = 24;

/// Sizes of an encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncoderSize {
    pub(crate) vocabulary: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    /// Values between the two halves of a feed-forward layer.
    pub(crate) wide: usize,
    pub(crate) layers: usize,
    pub(crate) layers_per_stage: usize,
    pub(crate) stages_per_layer: usize,
    /// Tokens that have an embedding of their position.
    pub(crate) positions: usize,
    pub(crate) max_tokens: usize,
    /// Tokens of the texts that it is measured with.
    pub(crate) typical_tokens: usize,
    pub(crate) max_batch: usize,
    /// In the application's card.
    pub(crate) slo_ms: f64,
}

/// The encoder of most tests.
pub(crate) const SMALL: EncoderSize = EncoderSize {
    vocabulary: VOCABULARY,
    hidden: HIDDEN,
    heads: 2,
    wide: 32,
    layers: 3,
    layers_per_stage: 2,
    stages_per_layer: 1,
    positions: 32,
    max_tokens: MAX_TOKENS,
    typical_tokens: 64,
    max_batch: 4,
    slo_ms: 5000.0,
};

/// As sentence-transformers' all-MiniLM-L6-v2, in the stages that `switchyard add` gives it.
#[allow(dead_code, reason = "the benches' encoder")]
pub(crate) const MINILM: EncoderSize = EncoderSize {
    vocabulary: 30_522,
    hidden: 384,
    heads: 12,
    wide: 1536,
    layers: 6,
    layers_per_stage: 1,
    stages_per_layer: 2,
    positions: 512,
    max_tokens: 512,
    typical_tokens: 64,
    max_batch: 16,
    slo_ms: 2000.0,
};

/// Kind of answer of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// One of three classes, named in a file.
    Classes,
    /// An embedding.
    Embeddings,
    /// A score of a pair of texts, through a sigmoid.
    #[allow(dead_code, reason = "not every test that includes this file has it")]
    Score,
}

/// An application of these variants, each a [`SMALL`] encoder.
pub(crate) fn write_app(zoo: &Path, name: &str, answers: Answers, variants: &[&str]) {
    write_app_of(&SMALL, zoo, name, answers, variants);
}

/// The same with encoders of any size.
pub(crate) fn write_app_of(
    of: &EncoderSize,
    zoo: &Path,
    name: &str,
    answers: Answers,
    variants: &[&str],
) {
    let EncoderSize { hidden, slo_ms, .. } = of;
    let dir = zoo.join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let (task, outputs) = match answers {
        Answers::Classes => {
            std::fs::write(dir.join("labels.txt"), "good\nbad\nso so\n").unwrap();
            let outputs = r#"
[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [3]

[[outputs]]
name = "label"
datatype = "INT64"
shape = [1]
"#;
            (
                "task = \"classify\"\nclasses_file = \"labels.txt\"",
                outputs.to_owned(),
            )
        }
        Answers::Embeddings => {
            let outputs = format!(
                "[[outputs]]\nname = \"embedding\"\ndatatype = \"FP32\"\nshape = [{hidden}]\n"
            );
            ("task = \"embed\"", outputs)
        }
        Answers::Score => {
            let outputs = "[[outputs]]\nname = \"score\"\ndatatype = \"FP32\"\nshape = [1]\n";
            ("task = \"score\"", outputs.to_owned())
        }
    };
    let second = match answers {
        Answers::Score => "[[inputs]]\nname = \"text_pair\"\ndatatype = \"BYTES\"\nshape = [1]\n",
        _ => "",
    };
    let card = format!(
        r#"name = "{name}"
summary = "A test"
{task}
slo_ms = {slo_ms:?}
penalty = "step"

[[inputs]]
name = "text"
datatype = "BYTES"
shape = [1]
{second}{outputs}"#
    );
    std::fs::write(dir.join("app.toml"), card).unwrap();
    for variant in variants {
        write_variant(of, &dir.join(variant), variant, answers);
    }
}

fn write_variant(of: &EncoderSize, dir: &Path, name: &str, answers: Answers) {
    std::fs::create_dir_all(dir).unwrap();
    let &EncoderSize {
        hidden,
        layers,
        layers_per_stage,
        stages_per_layer,
        max_tokens,
        typical_tokens,
        max_batch,
        ..
    } = of;
    let stages = layers.div_ceil(layers_per_stage) * stages_per_layer;
    let tensors = tensors(of, answers);
    let parameters: usize = tensors.iter().map(|(_, shape)| size(shape)).sum();
    write_tensors(&dir.join("model.safetensors"), &tensors);
    let config = json!({
        "model_type": "bert", "vocab_size": of.vocabulary, "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": of.heads,
        "intermediate_size": of.wide, "hidden_act": "gelu",
        "max_position_embeddings": of.positions, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "pad_token_id": 0,
    });
    std::fs::write(dir.join("config.json"), config.to_string()).unwrap();
    std::fs::write(
        dir.join("tokenizer.json"),
        tokenizer_of(of.vocabulary).to_string(),
    )
    .unwrap();
    let (head, outputs) = match answers {
        Answers::Classes => ("sequence-classification", 3),
        Answers::Embeddings => ("sentence-embedding", hidden),
        Answers::Score => ("sequence-classification", 1),
    };
    let further = match answers {
        Answers::Classes => "",
        Answers::Score => "texts = 2\nactivation = \"sigmoid\"",
        Answers::Embeddings => "pooling = \"mean\"\nnormalise = true",
    };
    let card = format!(
        r#"name = "{name}"
summary = "A test"
weights = "model.safetensors"
parameters = {parameters}
max_batch = {max_batch}
stages = {stages}

[architecture]
kind = "bert"
head = "{head}"
outputs = {outputs}
layers = {layers}
layers_per_stage = {layers_per_stage}
stages_per_layer = {stages_per_layer}
max_tokens = {max_tokens}
typical_tokens = {typical_tokens}
{further}

[[exits]]
name = "final"
after_stage = {stages}
accuracy = 0.8

[provenance]
command = "none"
data = "none"
"#
    );
    std::fs::write(dir.join("model.toml"), card).unwrap();
}

/// The tokenizer of [`SMALL`].
pub(crate) fn tokenizer() -> Value {
    tokenizer_of(VOCABULARY)
}

/// A tokenizer as BERT's published ones are built.
fn tokenizer_of(vocabulary: usize) -> Value {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
    let words = special.iter().map(|word| (*word).to_owned());
    let words = words.chain((special.len()..vocabulary).map(|i| format!("w{i}")));
    let vocabulary: Map<_, _> = words
        .enumerate()
        .map(|(i, word)| (word, json!(i)))
        .collect();
    let added = special.iter().enumerate().map(|(id, content)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true})
    });
    let wrapped = |name: &str, id: usize| json!({"id": name, "ids": [id], "tokens": [name]});
    let around = json!([
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]);
    let pair = json!([
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
    ]);
    json!({
        "version": "1.0",
        // Padding and truncation as in published files; the server replaces both.
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0,
                       "direction": "Right"},
        "padding": {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": null,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
                       "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": around, "pair": pair,
            "special_tokens": {"[CLS]": wrapped("[CLS]", 2), "[SEP]": wrapped("[SEP]", 3)}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

// === weights ===

fn tensors(of: &EncoderSize, answers: Answers) -> Vec<(String, Vec<usize>)> {
    let &EncoderSize { hidden, wide, .. } = of;
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| tensors.push((name, shape.to_vec()));
    for (table, rows) in [
        ("word", of.vocabulary),
        ("position", of.positions),
        ("token_type", 2),
    ] {
        add(
            format!("embeddings.{table}_embeddings.weight"),
            &[rows, hidden],
        );
    }
    let mut layers = vec![("embeddings.LayerNorm".to_owned(), None)];
    for i in 0..of.layers {
        let at = |part: &str| format!("encoder.layer.{i}.{part}");
        let square = Some([hidden, hidden]);
        layers.extend([
            (at("attention.self.query"), square),
            (at("attention.self.key"), square),
            (at("attention.self.value"), square),
            (at("attention.output.dense"), square),
            (at("attention.output.LayerNorm"), None),
            (at("intermediate.dense"), Some([wide, hidden])),
            (at("output.dense"), Some([hidden, wide])),
            (at("output.LayerNorm"), None),
        ]);
    }
    let outputs = match answers {
        Answers::Classes => Some(3),
        Answers::Embeddings => None,
        Answers::Score => Some(1),
    };
    if let Some(outputs) = outputs {
        layers.push(("pooler.dense".to_owned(), Some([hidden, hidden])));
        layers.push(("classifier".to_owned(), Some([outputs, hidden])));
    }
    for (name, shape) in layers {
        let output = shape.map_or(hidden, |[output, _]| output);
        add(format!("{name}.bias"), &[output]);
        match shape {
            Some(shape) => add(format!("{name}.weight"), &shape),
            None => add(format!("{name}.weight"), &[output]),
        }
    }
    tensors
}

fn size(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// A safetensors file: the length of a header, the header, the values.
fn write_tensors(file: &Path, tensors: &[(String, Vec<usize>)]) {
    let mut header = Map::new();
    let mut values: Vec<u8> = Vec::new();
    for (name, shape) in tensors {
        let from = values.len();
        // The sums of a wide layer stay as large as its inputs.
        let scale = match shape[..] {
            [_, input] if input > SMALL.wide => (3.0 / input as f32).sqrt(),
            _ => 0.5,
        };
        for i in 0..size(shape) {
            let mixed = ((i + name.len() * 7_919) as u32).wrapping_mul(2_654_435_761) >> 8;
            let value = mixed as f32 / (1 << 23) as f32 - 1.0;
            values.extend((scale * value).to_le_bytes());
        }
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [from, values.len()]});
        header.insert(name.clone(), entry);
    }
    let mut header = Value::Object(header).to_string();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    std::fs::write(file, bytes).unwrap();
}
