//! Residual networks against `resnet.py`.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use serde_json::Value;
use switchyard_models::{LoadedVariant, Precision, load_variant, load_variant_standing_in};
use tempfile::TempDir;

use crate::common::{Tensors, distance, fan_in_scale, numbers, recorded, value};

/// Largest allowed difference, relative to the largest logit.
const TOLERANCE: f64 = 1e-4;

const IMAGES: usize = 2;

const WEIGHTS: &str = "model.safetensors";

/// Collects the tensors of one network, and counts its parameters.
#[derive(Default)]
struct Writer {
    tensors: Tensors,
    parameters: usize,
}

impl Writer {
    fn add(&mut self, name: &str, shape: &[usize], scale: f32, offset: f32) {
        self.tensors.add(name, shape, scale, offset);
        self.parameters += shape.iter().product::<usize>();
    }

    /// A convolution of `[output, input, kernel, kernel]` and its normalisation.
    fn normed(&mut self, conv: &str, norm: &str, [input, output, kernel]: [usize; 3]) {
        let scale = fan_in_scale(input * kernel * kernel);
        let shape = [output, input, kernel, kernel];
        self.add(&format!("{conv}.weight"), &shape, scale, 0.0);
        self.add(&format!("{norm}.weight"), &[output], 0.25, 1.0);
        self.add(&format!("{norm}.bias"), &[output], 0.125, 0.0);
        // Measured, not trained: no parameters.
        let tensors = &mut self.tensors;
        tensors.add(&format!("{norm}.running_mean"), &[output], 0.125, 0.0);
        tensors.add(&format!("{norm}.running_var"), &[output], 0.5, 1.0);
        let counter = Tensor::new(1i64, &Device::Cpu).unwrap();
        tensors.insert(&format!("{norm}.num_batches_tracked"), counter);
    }

    fn public(&mut self, blocks: &[usize], exits: &[usize], classes: usize) {
        self.normed("conv1", "bn1", [3, 64, 7]);
        let mut channels = 64;
        for (i, &count) in blocks.iter().enumerate() {
            let (group, inner) = (i + 1, 64 << i);
            for block in 0..count {
                let at = format!("layer{group}.{block}");
                let mut conv = |n: usize, shape| {
                    self.normed(&format!("{at}.conv{n}"), &format!("{at}.bn{n}"), shape);
                };
                conv(1, [channels, inner, 1]);
                conv(2, [inner, inner, 3]);
                conv(3, [inner, inner * 4, 1]);
                if block == 0 {
                    let names = [0, 1].map(|n| format!("{at}.downsample.{n}"));
                    self.normed(&names[0], &names[1], [channels, inner * 4, 1]);
                }
                channels = inner * 4;
            }
            if exits.contains(&group) {
                let name = if group == blocks.len() {
                    "fc".to_owned()
                } else {
                    format!("exit{group}.fc")
                };
                let scale = fan_in_scale(channels);
                self.add(&format!("{name}.weight"), &[classes, channels], scale, 0.0);
                self.add(&format!("{name}.bias"), &[classes], 0.125, 0.0);
            }
        }
    }

    fn own(&mut self, blocks: usize, classes: usize) {
        let mut conv = |name: &str, [input, output, kernel]: [usize; 3]| {
            let rows = kernel * kernel * input;
            let shape = [rows + 1, output];
            self.add(&format!("{name}.weight"), &shape, fan_in_scale(rows), 0.0);
        };
        conv("stem", [3, 16, 3]);
        let mut channels = 16;
        for (i, width) in [16, 32, 64].into_iter().enumerate() {
            for block in 0..blocks {
                let at = format!("group{}.block{block}", i + 1);
                conv(&format!("{at}.conv1"), [channels, width, 3]);
                conv(&format!("{at}.conv2"), [width, width, 3]);
                if channels != width {
                    conv(&format!("{at}.skip"), [channels, width, 1]);
                }
                channels = width;
            }
        }
        for (i, width) in [16, 32, 64].into_iter().enumerate() {
            let name = format!("exit{}", i + 1);
            let scale = fan_in_scale(width);
            self.add(&format!("{name}.weight"), &[width, classes], scale, 0.0);
            self.add(&format!("{name}.bias"), &[classes], 0.125, 0.0);
        }
    }
}

/// The contents of a network's card.
struct Shape<'a> {
    size: usize,
    classes: usize,
    layout: &'a str,
    block: &'a str,
    stem: &'a str,
    /// Channels, blocks and stride of each group.
    groups: &'a [[usize; 3]],
    exits: &'a [usize],
    /// Stages before each exit.
    after: &'a [usize],
}

fn card(shape: &Shape, parameters: usize) -> String {
    let stages = shape.after.last().unwrap();
    let groups = shape.groups.iter().map(|[channels, blocks, stride]| {
        format!("{{ channels = {channels}, blocks = {blocks}, stride = {stride} }}")
    });
    let exits = shape.after.iter().map(|after| {
        format!("[[exits]]\nname = \"exit{after}\"\nafter_stage = {after}\naccuracy = 0.7\n")
    });
    format!(
        r#"name = "resnet"
summary = "A test"
weights = "model.safetensors"
parameters = {parameters}
max_batch = 8
stages = {stages}

[architecture]
kind = "resnet2d"
size = {size}
classes = {classes}
layout = "{layout}"
block = "{block}"
exits = {exits:?}
stem = {stem}
groups = [{groups}]

{exit_cards}
[provenance]
command = "resnet.py"
data = "none"
"#,
        size = shape.size,
        classes = shape.classes,
        layout = shape.layout,
        block = shape.block,
        exits = shape.exits,
        stem = shape.stem,
        groups = groups.collect::<Vec<_>>().join(", "),
        exit_cards = exits.collect::<String>(),
    )
}

/// Loads the network of `writer` and `shape` and compares all its exits.
fn check(name: &str, writer: &Writer, shape: &Shape) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), writer, shape);
    // On the CPU, and as on a GPU.
    agrees(
        name,
        &load_variant(dir.path(), &Device::Cpu).unwrap(),
        shape,
    );
    let standing_in = load_variant_standing_in(dir.path(), Precision::F32);
    agrees(name, &standing_in.unwrap(), shape);
}

fn agrees(name: &str, loaded: &LoadedVariant, shape: &Shape) {
    let width = 3 * shape.size * shape.size;
    let input: Vec<f32> = (0..(IMAGES * width) as u64)
        .map(|i| value("input", i))
        .collect();
    let mut x = Tensor::from_vec(input, (IMAGES, width), &Device::Cpu).unwrap();
    let references = recorded("resnet.json", name);
    let mut references = references.as_array().unwrap().iter();
    for stage in 0..loaded.model.stages() {
        x = loaded.model.run_stage(stage, &x).unwrap();
        let after = loaded.model.exits().iter();
        for (exit, _) in after.enumerate().filter(|(_, after)| **after == stage + 1) {
            let logits = loaded.model.logits(exit, &x).unwrap();
            let logits: Vec<f32> = logits.flatten_all().unwrap().to_vec1().unwrap();
            compare(name, &logits, references.next().unwrap());
        }
    }
    assert!(references.next().is_none(), "{name} has too few exits");
}

fn write(dir: &Path, writer: &Writer, shape: &Shape) {
    writer.tensors.save(&dir.join(WEIGHTS));
    std::fs::write(dir.join("model.toml"), card(shape, writer.parameters)).unwrap();
}

fn compare(name: &str, ours: &[f32], reference: &Value) {
    let theirs = numbers(reference);
    let scale = theirs
        .iter()
        .fold(0f64, |most, logit| most.max(logit.abs()));
    let apart = distance(ours, &theirs);
    assert!(apart < TOLERANCE * scale, "{name}: {apart} of {scale}");
    // Images must differ by more than the tolerance, otherwise agreement would prove nothing.
    let (first, second) = theirs.split_at(theirs.len() / IMAGES);
    let differ = first.iter().zip(second).map(|(a, b)| (a - b).abs());
    assert!(
        differ.fold(0.0, f64::max) > 10.0 * TOLERANCE * scale,
        "{name}"
    );
}

fn public(name: &str, blocks: [usize; 4], exits: &[usize], after: &[usize]) {
    let mut writer = Writer::default();
    writer.public(&blocks, exits, 10);
    let groups = [0, 1, 2, 3].map(|i| [64 << i, blocks[i], if i == 0 { 1 } else { 2 }]);
    let shape = Shape {
        size: 64,
        classes: 10,
        layout: "torchvision",
        block: "bottleneck",
        stem: "{ channels = 64, kernel = 7, stride = 2, pool = true }",
        groups: &groups,
        exits,
        after,
    };
    check(name, &writer, &shape);
}

fn own(name: &str, blocks: usize) {
    let mut writer = Writer::default();
    writer.own(blocks, 24);
    let shape = Shape {
        size: 32,
        classes: 24,
        layout: "switchyard",
        block: "basic",
        stem: "{ channels = 16, kernel = 3, stride = 1, pool = false }",
        groups: &[[16, blocks, 1], [32, blocks, 2], [64, blocks, 2]],
        exits: &[1, 2, 3],
        after: &[3, 6, 9],
    };
    check(name, &writer, &shape);
}

#[test]
fn resnet50_with_every_exit() {
    public("resnet50", [3, 4, 6, 3], &[1, 2, 3, 4], &[2, 4, 7, 9]);
}

#[test]
fn resnet101_with_the_final_exit_alone() {
    public("resnet101", [3, 4, 23, 3], &[4], &[8]);
}

#[test]
fn resnet152_with_the_final_exit_alone() {
    public("resnet152", [3, 8, 36, 3], &[4], &[8]);
}

#[test]
fn networks_of_our_own_layout() {
    own("resnet20", 3);
    own("resnet32", 5);
    own("resnet56", 9);
}

// === damaged files ===

const SMALL: Shape = Shape {
    size: 16,
    classes: 3,
    layout: "torchvision",
    block: "bottleneck",
    stem: "{ channels = 64, kernel = 7, stride = 2, pool = true }",
    groups: &[[64, 1, 1], [128, 1, 2]],
    exits: &[1, 2],
    after: &[1, 2],
};

/// A small network whose tensors `change` has changed.
fn small(change: impl FnOnce(&mut HashMap<String, Tensor>)) -> TempDir {
    let mut writer = Writer::default();
    writer.public(&[1, 1], SMALL.exits, SMALL.classes);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &writer, &SMALL);
    let file = dir.path().join(WEIGHTS);
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    change(&mut tensors);
    candle_core::safetensors::save(&tensors, &file).unwrap();
    dir
}

fn refused(dir: &Path, part: &str) {
    let Err(error) = load_variant(dir, &Device::Cpu) else {
        panic!("loaded in spite of {part}");
    };
    assert!(error.to_string().contains(part), "{part}: {error}");
}

#[test]
fn a_tensor_of_a_resnet_is_named() {
    let name = "layer2.0.downsample.1.running_mean";
    let dir = small(|tensors| drop(tensors.remove(name)));
    refused(dir.path(), &format!("`{name}`: missing"));

    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
    let name = "exit1.fc.weight";
    let dir = small(|tensors| drop(tensors.insert(name.to_owned(), zeros(&[256, 3]))));
    refused(dir.path(), &format!("`{name}`: shape [256, 3]"));

    let name = "layer1.1.conv1.weight";
    let dir = small(|tensors| drop(tensors.insert(name.to_owned(), zeros(&[1]))));
    refused(dir.path(), &format!("`{name}`: not part"));

    let name = "bn1.weight";
    let whole = Tensor::zeros(64, DType::I64, &Device::Cpu).unwrap();
    let dir = small(|tensors| drop(tensors.insert(name.to_owned(), whole)));
    refused(dir.path(), &format!("`{name}`: type I64"));
}

#[test]
fn the_head_of_an_exit_that_the_card_leaves_out_stays_in_the_file() {
    let mut writer = Writer::default();
    writer.public(&[1, 1], SMALL.exits, SMALL.classes);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &writer, &SMALL);
    let whole = load_variant(dir.path(), &Device::Cpu).unwrap();
    // Without the first exit and the parameters of its head.
    let shape = Shape {
        exits: &[2],
        after: &[2],
        ..SMALL
    };
    let parameters = writer.parameters - (256 * 3 + 3);
    std::fs::write(dir.path().join("model.toml"), card(&shape, parameters)).unwrap();
    let left = load_variant(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(left.model.exits(), [2]);
    let x = Tensor::randn(0f32, 1.0, (2, 3 * 16 * 16), &Device::Cpu).unwrap();
    let answers = |loaded: &LoadedVariant, exit| -> Vec<Vec<f32>> {
        loaded.model.forward(exit, &x).unwrap().to_vec2().unwrap()
    };
    assert_eq!(answers(&left, 0), answers(&whole, 1));
}

#[test]
fn half_floats_give_nearly_the_same_answers() {
    let x = Tensor::randn(0f32, 1.0, (2, 3 * 16 * 16), &Device::Cpu).unwrap();
    let answer = |dtype: DType| -> Vec<f32> {
        let dir = small(|tensors| {
            for tensor in tensors.values_mut().filter(|t| t.dtype() == DType::F32) {
                *tensor = tensor.to_dtype(dtype).unwrap();
            }
        });
        let loaded = load_variant(dir.path(), &Device::Cpu).unwrap();
        let rows = loaded.model.forward(1, &x).unwrap();
        rows.flatten_all().unwrap().to_vec1().unwrap()
    };
    let full = answer(DType::F32);
    for dtype in [DType::F16, DType::BF16] {
        for (a, b) in answer(dtype).iter().zip(&full) {
            assert!((a - b).abs() < 0.02, "{dtype:?}: {a} {b}");
        }
    }
}

#[test]
fn a_hyper_parameter_is_named() {
    let cases = [
        ("size = 16", "size = 1100", "architecture.size"),
        ("kernel = 7", "kernel = 6", "architecture.stem.kernel"),
        ("exits = [1, 2]", "exits = [2, 1]", "architecture.exits"),
        ("exits = [1, 2]", "exits = [1]", "architecture.exits"),
        ("exits = [1, 2]", "exits = [0, 2]", "architecture.exits"),
        (
            "blocks = 1, stride = 2",
            "blocks = 0, stride = 2",
            "groups[1].blocks",
        ),
        ("stride = 2 }]", "stride = 0 }]", "groups[1].stride"),
        ("\"bottleneck\"", "\"funnel\"", "funnel"),
        ("stages = 2", "stages = 3", "stages"),
    ];
    for (from, to, part) in cases {
        let dir = small(|_| ());
        let card = dir.path().join("model.toml");
        let text = std::fs::read_to_string(&card).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(&card, text.replacen(from, to, 1)).unwrap();
        refused(dir.path(), part);
    }
}
