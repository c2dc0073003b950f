//! Public files that are damaged, incomplete or contradict each other are refused with the file,
//! the field or tensor, and the reason.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use serde_json::{Value, json};
use switchyard_models::{Zoo, load_variant};
use tempfile::TempDir;

use crate::text::{Answers, write_app};
use crate::{bert, efficientnet};

const WEIGHTS: &str = "model.safetensors";

fn encoder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    bert::write(dir.path(), &bert::BERT);
    dir
}

/// Loads the variant and returns the refusal, which must name `file` and `part`.
fn refused(dir: &Path, file: &str, part: &str) -> String {
    let Err(error) = load_variant(dir, &Device::Cpu) else {
        panic!("a damaged {file} was loaded: {part}");
    };
    let text = error.to_string();
    assert!(text.contains(file) && text.contains(part), "{part}: {text}");
    text
}

fn edit_text(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "`{from}` not in {}", file.display());
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

fn edit_json(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut json = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(file, json.to_string()).unwrap();
}

fn edit_weights(dir: &Path, change: impl FnOnce(&mut HashMap<String, Tensor>)) {
    let file = dir.join(WEIGHTS);
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    change(&mut tensors);
    candle_core::safetensors::save(&tensors, &file).unwrap();
}

#[test]
fn a_missing_file_is_named() {
    for file in [WEIGHTS, "config.json", "tokenizer.json", "model.toml"] {
        let dir = encoder();
        std::fs::remove_file(dir.path().join(file)).unwrap();
        refused(dir.path(), file, "No such file");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for file in [WEIGHTS, "config.json", "tokenizer.json"] {
        let dir = encoder();
        let path = dir.path().join(file);
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 7, 8, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            refused(dir.path(), file, "");
        }
        // Bytes of no format.
        std::fs::write(&path, [0xFF; 4096]).unwrap();
        refused(dir.path(), file, "");
    }
}

#[test]
fn a_field_of_config_json_is_named() {
    let cases: [(&str, Value, &str); 13] = [
        ("hidden_size", Value::Null, "hidden_size"),
        ("hidden_size", json!("64"), "`hidden_size`"),
        ("hidden_size", json!(0), "`hidden_size`"),
        ("hidden_size", json!(1u64 << 40), "`hidden_size`"),
        ("hidden_size", json!(68), "architecture.outputs is 64"),
        ("num_attention_heads", json!(5), "`num_attention_heads`"),
        ("num_hidden_layers", json!(4), "architecture.layers is 3"),
        ("hidden_act", json!("mish"), "`hidden_act`"),
        ("model_type", json!("gpt2"), "`model_type`"),
        (
            "max_position_embeddings",
            json!(12),
            "architecture.max_tokens 13",
        ),
        (
            "position_embedding_type",
            json!("relative_key"),
            "only `absolute`",
        ),
        ("layer_norm_eps", json!(-1.0), "`layer_norm_eps`"),
        ("type_vocab_size", json!(0), "`type_vocab_size`"),
    ];
    for (field, value, named) in cases {
        let dir = encoder();
        edit_json(&dir.path().join("config.json"), |config| {
            let fields = config.as_object_mut().unwrap();
            match value {
                Value::Null => drop(fields.remove(field).unwrap()),
                value => drop(fields.insert(field.to_owned(), value)),
            }
        });
        refused(dir.path(), "config.json", named);
    }
}

#[test]
fn a_tokenizer_that_does_not_fit_is_refused() {
    let dir = encoder();
    let file = dir.path().join("tokenizer.json");
    edit_json(&file, |tokenizer| {
        tokenizer["model"]["vocab"]["w100"] = json!(100);
    });
    let text = refused(dir.path(), "tokenizer.json", "`model.vocab`");
    assert!(text.contains("`w100` has id 100"), "{text}");
    edit_json(&file, |tokenizer| {
        tokenizer["model"]["type"] = json!("None");
    });
    refused(dir.path(), "tokenizer.json", "not a tokenizer");
}

#[test]
fn a_tensor_of_an_encoder_is_named() {
    const BIAS: &str = "encoder.layer.1.output.dense.bias";
    let changed = |reason: &str, change: fn(&Tensor) -> Tensor| {
        let dir = encoder();
        edit_weights(dir.path(), |tensors| {
            let tensor = change(&tensors[BIAS]);
            tensors.insert(BIAS.to_owned(), tensor);
        });
        refused(dir.path(), WEIGHTS, &format!("`{BIAS}`: {reason}"));
    };
    changed("type F64", |t| t.to_dtype(DType::F64).unwrap());
    changed("type I64", |t| t.to_dtype(DType::I64).unwrap());
    changed("shape [60], the architecture needs [64]", |t| {
        t.narrow(0, 0, 60).unwrap().contiguous().unwrap()
    });
    changed("value 0 is NaN", |t| {
        Tensor::full(f32::NAN, t.shape(), t.device())
            .unwrap()
            .contiguous()
            .unwrap()
    });
    let dir = encoder();
    edit_weights(dir.path(), |tensors| drop(tensors.remove(BIAS).unwrap()));
    refused(dir.path(), WEIGHTS, &format!("`{BIAS}`: missing"));
    let dir = encoder();
    edit_weights(dir.path(), |tensors| {
        let tensor = tensors[BIAS].clone();
        tensors.insert("encoder.layer.3.output.dense.bias".to_owned(), tensor);
    });
    let extra = "`encoder.layer.3.output.dense.bias`: not part";
    refused(dir.path(), WEIGHTS, extra);
}

#[test]
fn weights_of_half_the_width_are_taken_and_widened() {
    let dir = encoder();
    edit_weights(dir.path(), |tensors| {
        for tensor in tensors.values_mut() {
            if tensor.dtype() == DType::F32 {
                *tensor = tensor.to_dtype(DType::F16).unwrap();
            }
        }
    });
    load_variant(dir.path(), &Device::Cpu).unwrap();
}

#[test]
fn a_field_of_the_card_is_named() {
    for (from, to, named) in [
        (
            "max_tokens = 13",
            "max_tokens = 4",
            "`architecture.max_tokens`",
        ),
        ("layers = 3", "layers = 0", "`architecture.layers`"),
        (
            "layers = 3",
            "layers = 3\nlayers_per_stage = 0",
            "`architecture.layers_per_stage`",
        ),
        ("layers = 3", "layers = 3\nlayers_per_stage = 1", "`stages`"),
        (
            "layers = 3",
            "layers = 3\nlayers_per_stage = 2\nstages_per_layer = 2",
            "`architecture.stages_per_layer`",
        ),
        ("head = \"sentence-embedding\"", "head = \"cls\"", "`cls`"),
        ("accuracy = 0.8", "accuracy = 1.5", "`exits[0].accuracy`"),
        (
            "accuracy = 0.8",
            "accuracy = 0.8\nrecall = [0.5, 0.5]",
            "`exits[0].recall`",
        ),
        ("parameters = ", "parameters = 1", "`parameters`"),
    ] {
        let dir = encoder();
        edit_text(&dir.path().join("model.toml"), from, to);
        refused(dir.path(), "model.toml", named);
    }
}

#[test]
fn a_tensor_of_an_efficientnet_is_named() {
    let network = || {
        let dir = tempfile::tempdir().unwrap();
        efficientnet::write(dir.path(), &efficientnet::B0);
        dir
    };
    let dir = network();
    let reduce = "blocks.3.1.se.conv_reduce.weight";
    edit_weights(dir.path(), |tensors| drop(tensors.remove(reduce).unwrap()));
    refused(dir.path(), WEIGHTS, &format!("`{reduce}`: missing"));
    let dir = network();
    let variance = "blocks.0.0.bn1.running_var";
    edit_weights(dir.path(), |tensors| {
        let negative = tensors[variance].neg().unwrap();
        tensors.insert(variance.to_owned(), negative);
    });
    refused(dir.path(), WEIGHTS, &format!("`{variance}`: value 0 is -"));
    let dir = network();
    let card = dir.path().join("model.toml");
    edit_text(&card, "scale = \"b0\"", "scale = \"b1\"");
    refused(dir.path(), WEIGHTS, "tensor `");
    edit_text(&card, "scale = \"b1\"", "scale = \"b9\"");
    refused(dir.path(), "model.toml", "b9");
    let dir = network();
    edit_text(
        &dir.path().join("model.toml"),
        "\"timm\"",
        "\"torchvision\"",
    );
    refused(dir.path(), WEIGHTS, "`features.0.0.weight`: missing");
}

// === applications ===

/// An application of texts and its card.
fn app(answers: Answers) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    write_app(dir.path(), "mood", answers, &["tiny"]);
    let card = dir.path().join("mood/app.toml");
    (dir, card)
}

#[test]
fn fields_that_a_card_leaves_out_are_filled_in() {
    let (dir, _) = app(Answers::Classes);
    let zoo = Zoo::open(dir.path()).unwrap();
    let card = &zoo.apps[0].card;
    assert_eq!(card.classes, ["good", "bad", "so so"]);
    assert_eq!(card.workload_mix, [1.0 / 3.0; 3]);
    assert_eq!(card.validation.frequencies, [1.0 / 3.0; 3]);
    assert_eq!(zoo.apps[0].variants[0].card.exits[0].recall, [0.8; 3]);
    let (dir, _) = app(Answers::Embeddings);
    let zoo = Zoo::open(dir.path()).unwrap();
    assert_eq!(zoo.apps[0].card.classes, ["embedding"]);
    assert_eq!(zoo.apps[0].card.workload_mix, [1.0]);
    assert_eq!(zoo.apps[0].variants[0].card.exits[0].recall, [0.8]);
}

#[test]
fn an_application_of_texts_must_fit_its_variants() {
    let refused = |answers, from: &str, to: &str, named: &str| {
        let (dir, card) = app(answers);
        edit_text(&card, from, to);
        let error = Zoo::open(dir.path()).err().map(|error| error.to_string());
        let text = error.unwrap_or_else(|| panic!("{to} was accepted"));
        assert!(text.contains(named), "{to}: {text}");
    };
    let bytes = "datatype = \"BYTES\"\nshape = [1]";
    let (classes, embeddings) = (Answers::Classes, Answers::Embeddings);
    refused(
        classes,
        bytes,
        "datatype = \"BYTES\"\nshape = [2]",
        "takes text",
    );
    refused(
        classes,
        bytes,
        "datatype = \"FP32\"\nshape = [1]",
        "takes text",
    );
    refused(classes, "labels.txt", "names.txt", "names.txt");
    refused(classes, "labels.txt", "../labels.txt", "`classes_file`");
    refused(classes, "classify", "embed", "`classes`");
    refused(
        classes,
        "classes_file",
        "classes = [\"a\", \"b\"]\nclasses_file",
        "`classes_file`",
    );
    refused(embeddings, "\"embed\"", "\"classify\"", "`classes`");
    refused(
        embeddings,
        "shape = [16]",
        "shape = [15]",
        "`architecture.outputs`",
    );
    let two = "task = \"classify\"\nclasses = [\"a\", \"b\"]";
    refused(embeddings, "task = \"embed\"", two, "`architecture");
}

#[test]
fn a_class_without_a_name_is_refused_with_its_line() {
    let (dir, card) = app(Answers::Classes);
    std::fs::write(card.with_file_name("labels.txt"), "good\n\nbad\n").unwrap();
    let text = Zoo::open(dir.path()).unwrap_err().to_string();
    assert!(
        text.contains("labels.txt") && text.contains("`line 2`"),
        "{text}"
    );
}
