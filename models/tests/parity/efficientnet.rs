//! EfficientNets against `efficientnet.py`.

use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_models::{LoadedVariant, Precision, load_variant, load_variant_standing_in};
use tempfile::TempDir;

use crate::common::{Tensors, distance, fan_in_scale, numbers, recorded, value};

/// Largest allowed difference.
const TOLERANCE: f64 = 1e-4;

const CLASSES: usize = 10;
const IMAGES: usize = 2;

/// A model as `efficientnet.py` has it.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    name: &'static str,
    /// Channels behind the stem, of each group, and in front of the head.
    stem: usize,
    channels: [usize; 7],
    features: usize,
    blocks: [usize; 7],
    size: usize,
    layout: &'static str,
}

pub(crate) const B0: Case = Case {
    name: "b0",
    stem: 32,
    channels: [16, 24, 40, 80, 112, 192, 320],
    features: 1280,
    blocks: [1, 2, 2, 3, 3, 4, 1],
    size: 64,
    layout: "timm",
};

const CASES: [Case; 3] = [
    B0,
    Case {
        layout: "torchvision",
        ..B0
    },
    Case {
        name: "b2",
        channels: [16, 24, 48, 88, 120, 208, 352],
        features: 1408,
        blocks: [2, 3, 3, 4, 4, 5, 2],
        size: 40,
        ..B0
    },
];

/// Tensors with the values of timm's names, in a file of either naming.
struct Writer {
    torchvision: bool,
    tensors: Tensors,
    parameters: usize,
}

impl Writer {
    fn add(&mut self, timm: &str, torchvision: &str, shape: &[usize], scale: f32, offset: f32) {
        let name = if self.torchvision { torchvision } else { timm };
        self.tensors.add_as(name, timm, shape, scale, offset);
        self.parameters += shape.iter().product::<usize>();
    }

    /// A convolution `[output, input, kernel, kernel]` and its normalisation.
    fn conv(&mut self, timm: [&str; 2], torchvision: [&str; 2], shape: [usize; 3]) {
        let [output, input, kernel] = shape;
        let scale = fan_in_scale(input * kernel * kernel);
        let [from, to] = [timm[0], torchvision[0]].map(|name| format!("{name}.weight"));
        self.add(&from, &to, &[output, input, kernel, kernel], scale, 0.0);
        let statistics = self.parameters;
        for (part, scale, offset) in [("running_mean", 0.125, 0.0), ("running_var", 0.125, 0.25)] {
            let [from, to] = [timm[1], torchvision[1]].map(|name| format!("{name}.{part}"));
            self.add(&from, &to, &[output], scale, offset);
        }
        // Measured, not trained.
        self.parameters = statistics;
        for (part, scale, offset) in [("weight", 0.25, 1.0), ("bias", 0.125, 0.0)] {
            let [from, to] = [timm[1], torchvision[1]].map(|name| format!("{name}.{part}"));
            self.add(&from, &to, &[output], scale, offset);
        }
        let name = if self.torchvision { torchvision } else { timm }[1];
        let counter = Tensor::new(7i64, &Device::Cpu).unwrap();
        let name = format!("{name}.num_batches_tracked");
        self.tensors.insert(&name, counter);
    }

    fn point(&mut self, timm: &str, torchvision: &str, input: usize, output: usize) {
        let [from, to] = [timm, torchvision].map(|name| format!("{name}.weight"));
        self.add(&from, &to, &[output, input, 1, 1], fan_in_scale(input), 0.0);
        let [from, to] = [timm, torchvision].map(|name| format!("{name}.bias"));
        self.add(&from, &to, &[output], 0.125, 0.0);
    }

    fn block(&mut self, [group, index]: [usize; 2], [input, output, kernel]: [usize; 3]) {
        let timm = |part: &str| format!("blocks.{group}.{index}.{part}");
        let torch = |part: &str| format!("features.{}.{index}.block.{part}", group + 1);
        let inner = if group == 0 { input } else { input * 6 };
        let mut place = 0;
        let mut conv = |conv: &str, norm: &str, shape| {
            let (weight, bn) = (format!("{place}.0"), format!("{place}.1"));
            let (timm, torch) = ([conv, norm].map(timm), [&*weight, &*bn].map(torch));
            self.conv([&*timm[0], &*timm[1]], [&*torch[0], &*torch[1]], shape);
            // The excitation is between the depthwise convolution and the next.
            place += if conv == "conv_dw" { 2 } else { 1 };
        };
        let excite = if group == 0 {
            conv("conv_dw", "bn1", [inner, 1, kernel]);
            conv("conv_pw", "bn2", [output, inner, 1]);
            1
        } else {
            conv("conv_pw", "bn1", [inner, input, 1]);
            conv("conv_dw", "bn2", [inner, 1, kernel]);
            conv("conv_pwl", "bn3", [output, inner, 1]);
            2
        };
        let squeezed = input / 4;
        let [fc1, fc2] = ["fc1", "fc2"].map(|part| torch(&format!("{excite}.{part}")));
        self.point(&timm("se.conv_reduce"), &fc1, inner, squeezed);
        self.point(&timm("se.conv_expand"), &fc2, squeezed, inner);
    }

    fn network(&mut self, case: &Case) {
        const KERNELS: [usize; 7] = [3, 3, 5, 3, 5, 5, 3];
        let stem = [case.stem, 3, 3];
        self.conv(["conv_stem", "bn1"], ["features.0.0", "features.0.1"], stem);
        let mut input = case.stem;
        for (group, kernel) in KERNELS.into_iter().enumerate() {
            for index in 0..case.blocks[group] {
                let output = case.channels[group];
                self.block([group, index], [input, output, kernel]);
                input = output;
            }
        }
        let last = [case.features, input, 1];
        self.conv(["conv_head", "bn2"], ["features.8.0", "features.8.1"], last);
        let scale = 4.0 * fan_in_scale(case.features);
        let shape = [CLASSES, case.features];
        self.add(
            "classifier.weight",
            "classifier.1.weight",
            &shape,
            scale,
            0.0,
        );
        self.add(
            "classifier.bias",
            "classifier.1.bias",
            &[CLASSES],
            0.125,
            0.0,
        );
    }
}

pub(crate) fn write(dir: &Path, case: &Case) {
    let mut writer = Writer {
        torchvision: case.layout == "torchvision",
        tensors: Tensors::default(),
        parameters: 0,
    };
    writer.network(case);
    writer.tensors.save(&dir.join("model.safetensors"));
    let card = format!(
        r#"name = "{name}"
summary = "A test"
weights = "model.safetensors"
parameters = {parameters}
max_batch = 8
stages = 6

[architecture]
kind = "efficientnet"
scale = "{name}"
size = {size}
classes = {CLASSES}
layout = "{layout}"
slices = 6

[[exits]]
name = "final"
after_stage = 6
accuracy = 0.7

[provenance]
command = "efficientnet.py"
data = "none"
"#,
        name = case.name,
        parameters = writer.parameters,
        size = case.size,
        layout = case.layout,
    );
    std::fs::write(dir.join("model.toml"), card).unwrap();
}

fn load(case: &Case) -> (TempDir, LoadedVariant) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), case);
    let loaded = load_variant(dir.path(), &Device::Cpu).unwrap();
    (dir, loaded)
}

fn images(case: &Case) -> Tensor {
    let width = 3 * case.size * case.size;
    let pixels = (0..(IMAGES * width) as u64).map(|i| value("input", i));
    Tensor::from_vec(pixels.collect::<Vec<f32>>(), (IMAGES, width), &Device::Cpu).unwrap()
}

fn scores(loaded: &LoadedVariant, images: &Tensor) -> Vec<Vec<f32>> {
    let mut x = images.clone();
    for stage in 0..loaded.model.stages() {
        x = loaded.model.run_stage(stage, &x).unwrap();
    }
    loaded.model.logits(0, &x).unwrap().to_vec2().unwrap()
}

#[test]
fn either_naming_agrees_with_numpy() {
    for case in &CASES {
        let (dir, loaded) = load(case);
        let want = recorded("efficientnet.json", case.name);
        let want: Vec<Vec<f64>> = want.as_array().unwrap().iter().map(numbers).collect();
        let on_a_gpu = load_variant_standing_in(dir.path(), Precision::F32).unwrap();
        for loaded in [loaded, on_a_gpu] {
            let ours = scores(&loaded, &images(case));
            for (ours, want) in ours.iter().zip(&want) {
                let apart = distance(ours, want);
                assert!(apart < TOLERANCE, "{} {}: {apart}", case.name, case.layout);
            }
            // The logits depend on the images, not on the biases alone.
            let other = distance(&ours[0], &want[1]);
            assert!(other > 100.0 * TOLERANCE, "{other}");
        }
    }
}

#[test]
fn a_batch_equals_its_images_one_by_one() {
    let (_dir, loaded) = load(&B0);
    let images = images(&B0);
    let together = scores(&loaded, &images);
    for (i, together) in together.iter().enumerate() {
        let alone = scores(&loaded, &images.narrow(0, i, 1).unwrap());
        for (a, b) in alone[0].iter().zip(together) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}
