//! MobileNetV3, EfficientNetV2 and vision transformers, and TensorFlow's padding, against the
//! publishers' own networks: `vision.py`.

use std::path::Path;

use candle_core::{Device, Tensor};
use serde_json::Value;
use switchyard_models::networks::inverted::ImagePadding;
use switchyard_models::zoo::{Preprocessing, Statement, describe};
use switchyard_models::{
    Architecture, LoadedVariant, Precision, load_variant, load_variant_at, load_variant_standing_in,
};
use tempfile::TempDir;

use crate::common::{Tensors, distance, fan_in_scale, numbers, recorded, value};

/// Largest allowed difference, relative to the largest logit.
const TOLERANCE: f64 = 1e-4;

const CLASSES: usize = 10;
const IMAGES: usize = 2;
const STAGES: usize = 3;

/// A case of `vision.py`, and the architecture of its card without size and classes.
struct Case {
    name: &'static str,
    card: &'static str,
    /// Stages of the network, if not the stated ones.
    stages: usize,
}

const VIT: &str = "kind = \"vit\"\npatch = 8\nhidden = 192\nlayers = 2\nheads = 3\nwide = 96\nlayers_per_stage = 1\n";

const fn case(name: &'static str, card: &'static str) -> Case {
    Case {
        name,
        card,
        stages: STAGES,
    }
}

const CASES: [Case; 9] = [
    case(
        "mobilenet-v3 small torchvision",
        "kind = \"mobilenet-v3\"\nscale = \"small\"\nlayout = \"torchvision\"\n",
    ),
    case(
        "mobilenet-v3 large timm same",
        "kind = \"mobilenet-v3\"\nscale = \"large\"\nlayout = \"timm\"\npadding = \"same\"\n",
    ),
    case(
        "mobilenet-v3 small timm centred",
        "kind = \"mobilenet-v3\"\nscale = \"small\"\nlayout = \"timm\"\n",
    ),
    case(
        "efficientnet-v2 s torchvision",
        "kind = \"efficientnet-v2\"\nscale = \"s\"\nlayout = \"torchvision\"\n",
    ),
    case(
        "efficientnet-v2 s timm same",
        "kind = \"efficientnet-v2\"\nscale = \"s\"\nlayout = \"timm\"\npadding = \"same\"\n",
    ),
    case(
        "efficientnet b0 timm same",
        "kind = \"efficientnet\"\nscale = \"b0\"\nlayout = \"timm\"\npadding = \"same\"\n",
    ),
    Case {
        name: "vit torchvision",
        card: "layout = \"torchvision\"\n",
        stages: 2,
    },
    Case {
        name: "vit timm",
        card: "layout = \"timm\"\n",
        stages: 2,
    },
    Case {
        name: "vit huggingface",
        card: "layout = \"huggingface\"\n",
        stages: 2,
    },
];

// === files ===

/// Adds a tensor with the values of `vision.py`; returns the number of trained ones.
fn add(tensors: &mut Tensors, name: &str, shape: &[usize]) -> usize {
    let (scale, offset) = match shape.len() {
        1 if name.ends_with("weight") => (0.25, 1.0),
        1 => (0.125, 0.0),
        3 => (0.5, 0.0),
        _ => (fan_in_scale(shape[1..].iter().product()), 0.0),
    };
    tensors.add(name, shape, scale, offset);
    shape.iter().product()
}

/// Writes the tensors of a recorded case; returns the number of trained values.
fn write_tensors(file: &Path, recorded: &Value, variance: f32) -> usize {
    let mut tensors = Tensors::default();
    let mut parameters = 0;
    for (name, shape) in recorded.as_object().unwrap() {
        let Some(width) = shape.as_u64() else {
            let sizes = shape.as_array().unwrap().iter();
            let shape: Vec<usize> = sizes.map(|size| size.as_u64().unwrap() as usize).collect();
            parameters += add(&mut tensors, name, &shape);
            continue;
        };
        // A batch normalisation, of which mean and variance are measured.
        let width = width as usize;
        for (part, scale, offset) in [
            ("weight", 0.25, 1.0),
            ("bias", 0.125, 0.0),
            ("running_mean", 0.125, 0.0),
            ("running_var", 0.125, variance),
        ] {
            tensors.add(&format!("{name}.{part}"), &[width], scale, offset);
        }
        parameters += 2 * width;
        let counter = Tensor::new(7i64, &Device::Cpu).unwrap();
        tensors.insert(&format!("{name}.num_batches_tracked"), counter);
    }
    tensors.save(file);
    parameters
}

fn write(dir: &Path, case: &Case) -> Value {
    let recorded = recorded("vision.json", case.name);
    let variance = recorded["variance"].as_f64().unwrap() as f32;
    let weights = dir.join("model.safetensors");
    let parameters = write_tensors(&weights, &recorded["tensors"], variance);
    let (kind, slices) = match case.name.starts_with("vit") {
        true => (VIT, String::new()),
        false => ("", format!("slices = {STAGES}")),
    };
    let card = format!(
        r#"name = "test"
summary = "A test"
weights = "model.safetensors"
parameters = {parameters}
max_batch = 8
stages = {stages}

[architecture]
{kind}{card}size = {size}
classes = {CLASSES}
{slices}

[[exits]]
name = "final"
after_stage = {stages}
accuracy = 0.7

[provenance]
command = "vision.py"
data = "none"
"#,
        stages = case.stages,
        card = case.card,
        size = recorded["size"],
    );
    std::fs::write(dir.join("model.toml"), card).unwrap();
    let config = r#"{"model_type": "vit", "architectures": ["ViTForImageClassification"],
        "hidden_size": 192, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 96, "image_size": 32, "patch_size": 8, "num_channels": 3,
        "hidden_act": "gelu", "layer_norm_eps": 1e-5,
        "id2label": {"0": "a", "1": "b", "2": "c", "3": "d", "4": "e", "5": "f", "6": "g",
                     "7": "h", "8": "i", "9": "j"}}"#;
    std::fs::write(dir.join("config.json"), config).unwrap();
    recorded
}

fn images(size: &Value) -> Tensor {
    let size = size.as_u64().unwrap() as usize;
    let width = 3 * size * size;
    let pixels = (0..(IMAGES * width) as u64).map(|i| value("input", i));
    Tensor::from_vec(pixels.collect::<Vec<f32>>(), (IMAGES, width), &Device::Cpu).unwrap()
}

fn scores(loaded: &LoadedVariant, images: &Tensor) -> Vec<Vec<f32>> {
    let mut x = images.clone();
    for stage in 0..loaded.model.stages() {
        x = loaded.model.run_stage(stage, &x).unwrap();
    }
    let logits = loaded.model.logits(0, &x).unwrap();
    logits
        .to_dtype(candle_core::DType::F32)
        .unwrap()
        .to_vec2()
        .unwrap()
}

fn logits(recorded: &Value) -> (Vec<Vec<f64>>, f64) {
    let rows = recorded["logits"].as_array().unwrap().iter().map(numbers);
    let rows: Vec<Vec<f64>> = rows.collect();
    let largest = rows
        .iter()
        .flatten()
        .fold(0f64, |most, v| most.max(v.abs()));
    (rows, largest)
}

// === tests ===

#[test]
fn every_network_agrees_with_its_publishers() {
    for case in &CASES {
        let dir = tempfile::tempdir().unwrap();
        let recorded = write(dir.path(), case);
        let (want, largest) = logits(&recorded);
        let images = images(&recorded["size"]);
        let ours = load_variant(dir.path(), &Device::Cpu).unwrap();
        let on_a_gpu = load_variant_standing_in(dir.path(), Precision::F32).unwrap();
        for loaded in [ours, on_a_gpu] {
            let ours = scores(&loaded, &images);
            for (ours, want) in ours.iter().zip(&want) {
                let apart = distance(ours, want);
                assert!(
                    apart < TOLERANCE * largest,
                    "{}: {apart} of {largest}",
                    case.name
                );
            }
            // The logits depend on the images, not on the biases alone.
            let other = distance(&ours[0], &want[1]);
            assert!(
                other > 100.0 * TOLERANCE * largest,
                "{}: {other}",
                case.name
            );
        }
    }
}

#[test]
fn a_batch_equals_its_images_one_by_one() {
    for case in [&CASES[0], &CASES[7]] {
        let dir = tempfile::tempdir().unwrap();
        let recorded = write(dir.path(), case);
        let images = images(&recorded["size"]);
        let loaded = load_variant(dir.path(), &Device::Cpu).unwrap();
        for (i, together) in scores(&loaded, &images).iter().enumerate() {
            let alone = scores(&loaded, &images.narrow(0, i, 1).unwrap());
            let together: Vec<f64> = together.iter().map(|v| f64::from(*v)).collect();
            let apart = distance(&alone[0], &together);
            assert!(apart < 1e-5, "{}: {apart}", case.name);
        }
    }
}

#[test]
fn narrow_weights_depart_little() {
    for case in [&CASES[0], &CASES[6]] {
        let dir = tempfile::tempdir().unwrap();
        let recorded = write(dir.path(), case);
        let (want, largest) = logits(&recorded);
        let images = images(&recorded["size"]);
        for precision in [Precision::F16, Precision::Bf16, Precision::Int8] {
            let loaded = load_variant_at(dir.path(), precision, &Device::Cpu).unwrap();
            let apart = distance(&scores(&loaded, &images)[0], &want[0]);
            assert!(apart > 0.0, "{} {precision} is in fewer bits", case.name);
            assert!(
                apart < 0.15 * largest,
                "{} {precision}: {apart} of {largest}",
                case.name
            );
        }
    }
}

// === recognised by their tensors ===

fn statement(padding: Option<ImagePadding>, size: Option<usize>) -> Statement {
    Statement {
        app: "app".to_owned(),
        variant: "v1".to_owned(),
        task: None,
        classes: (0..CLASSES).map(|class| format!("class {class}")).collect(),
        scores: None,
        output: None,
        pooling: None,
        normalise: None,
        texts: None,
        activation: None,
        padding,
        typical: size
            .map(|size| ("image".to_owned(), vec![3, size, size]))
            .into_iter()
            .collect(),
        preprocessing: Preprocessing::Derived,
        max_batch: 8,
        quality: None,
        slo_ms: 1000.0,
        command: "test".to_owned(),
    }
}

fn weights(case: &Case) -> (TempDir, Value) {
    let dir = tempfile::tempdir().unwrap();
    let recorded = write(dir.path(), case);
    (dir, recorded)
}

#[test]
fn a_lone_file_tells_its_network() {
    for case in &CASES[..8] {
        let (dir, recorded) = weights(case);
        let file = dir.path().join("model.safetensors");
        let padding = match case.name {
            name if name.ends_with("same") => Some(ImagePadding::Same),
            name if name.ends_with("centred") => Some(ImagePadding::Centred),
            _ => None,
        };
        let size = recorded["size"].as_u64().map(|size| size as usize);
        let found = describe(&file, &statement(padding, size)).unwrap();
        let shape = found.variant.architecture.input_shape();
        assert_eq!(Some(shape[1]), size, "{}", case.name);
        assert_eq!(found.variant.architecture.classes(), CLASSES);
        let (kind, scale) = match &found.variant.architecture {
            Architecture::MobileNetV3(spec) => ("mobilenet-v3", format!("{:?}", spec.scale)),
            Architecture::EfficientNetV2(spec) => ("efficientnet-v2", format!("{:?}", spec.scale)),
            Architecture::EfficientNet(spec) => ("efficientnet", format!("{:?}", spec.scale)),
            Architecture::Vit(spec) => ("vit", format!("{:?}", spec.layout)),
            other => panic!("{other:?}"),
        };
        let named = format!("{kind} {}", scale.to_lowercase());
        assert!(case.name.starts_with(&named), "{named}: {}", case.name);
        if padding.is_some() {
            let asked = describe(&file, &statement(None, size))
                .unwrap_err()
                .to_string();
            assert!(
                asked.contains("--padding centred") && asked.contains("tf_"),
                "{asked}"
            );
        }
        if kind != "vit" {
            let default = describe(&file, &statement(padding, None)).unwrap();
            let said = default
                .notes
                .iter()
                .any(|note| note.contains("the default of"));
            assert!(said, "{:?}", default.notes);
        }
    }
}

#[test]
fn tensors_of_no_known_network_are_refused_with_the_way_out() {
    let (dir, _) = weights(&CASES[0]);
    let file = dir.path().join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    let extra = Tensor::new(&[1.0f32], &Device::Cpu).unwrap();
    tensors.insert("extra.weight".to_owned(), extra);
    candle_core::safetensors::save(&tensors, &file).unwrap();
    let refused = describe(&file, &statement(None, None))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("of no network that is known here"),
        "{refused}"
    );
    assert!(refused.contains("switchyard add model.onnx"), "{refused}");
}

#[test]
fn a_folder_of_a_vision_transformer_has_its_names() {
    let (dir, _) = weights(&CASES[8]);
    let mut unnamed = statement(None, None);
    unnamed.classes = Vec::new();
    let found = describe(dir.path(), &unnamed).unwrap();
    assert_eq!(found.app.classes[9], "j");
    assert_eq!(found.app.inputs[0].shape, [3, 32, 32]);
    let names: Vec<_> = found
        .files
        .iter()
        .map(|(_, to)| to.display().to_string())
        .collect();
    assert_eq!(names, ["model.safetensors", "config.json"]);
    let preprocessor = r#"{"image_processor_type": "ViTImageProcessor", "do_resize": true,
        "size": {"height": 32, "width": 32}, "resample": 2, "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5]}"#;
    std::fs::write(dir.path().join("preprocessor_config.json"), preprocessor).unwrap();
    let found = describe(dir.path(), &unnamed).unwrap();
    assert_eq!(found.app.inputs[0].image.as_ref().unwrap().size, [32, 32]);
    let other = preprocessor.replace("32", "48");
    std::fs::write(dir.path().join("preprocessor_config.json"), other).unwrap();
    let refused = describe(dir.path(), &unnamed).unwrap_err().to_string();
    assert!(
        refused.contains("size") && refused.contains("48"),
        "{refused}"
    );
    let config = std::fs::read_to_string(dir.path().join("config.json")).unwrap();
    std::fs::write(
        dir.path().join("config.json"),
        config.replace("\"vit\"", "\"swin\""),
    )
    .unwrap();
    let refused = describe(dir.path(), &unnamed).unwrap_err().to_string();
    assert!(
        refused.contains("`model_type`: `swin` is unknown"),
        "{refused}"
    );
    assert!(
        refused.contains("optimum-cli export onnx --model NAME DIR"),
        "{refused}"
    );
}

#[test]
fn a_folder_of_timm_says_padding_size_and_image() {
    let (dir, _) = weights(&CASES[5]);
    let config = r#"{"architecture": "tf_efficientnet_b0", "num_classes": 10, "pretrained_cfg":
        {"input_size": [3, 72, 72], "interpolation": "bicubic", "crop_pct": 0.875,
         "crop_mode": "center", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}}"#;
    let file = dir.path().join("config.json");
    std::fs::write(&file, config).unwrap();
    let found = describe(dir.path(), &statement(None, None)).unwrap();
    let image = found.app.inputs[0].image.as_ref().unwrap();
    assert_eq!((image.size, image.resize), ([72, 72], Some(82)));
    let Architecture::EfficientNet(spec) = &found.variant.architecture else {
        panic!("{:?}", found.variant.architecture);
    };
    assert_eq!((spec.size, spec.padding), (72, ImagePadding::Same));
    let other = describe(dir.path(), &statement(None, Some(96))).unwrap_err();
    assert!(other.to_string().contains("--image none"), "{other}");
    std::fs::write(&file, config.replace("center", "squash")).unwrap();
    let other = describe(dir.path(), &statement(None, None)).unwrap_err();
    assert!(
        other.to_string().contains("pretrained_cfg.crop_mode"),
        "{other}"
    );
}
