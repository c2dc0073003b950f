//! From a zoo on disk to the core's catalog and to answers.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use switchyard_core::catalog::{Late, Penalty};
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_executor::manifest::{AppChoice, Manifest, Prior};
use switchyard_executor::{
    BatchOutput, CandleExecutor, Executor, InputTensor, InputType, Job, JobRow, Weights,
};
use switchyard_models::Zoo;

const APP: &str = r#"
name = "pulse"
summary = "Two kinds of pulse."
classes = ["even", "odd"]
slo_ms = 12.5
penalty = "sigmoid"
workload_mix = [0.75, 0.25]
inputs = [{ name = "pulse", datatype = "FP32", shape = [8] }]
outputs = [{ name = "probabilities", datatype = "FP32", shape = [2] }]

[validation]
samples = 10
frequencies = [0.5, 0.5]
seed = 1

[sneakpeek]
file = "evidence.safetensors"
k = 5
prior = [0.25, 0.5]
accuracy = 0.8
recall = [0.8, 0.8]
confusion = [[4, 1], [1, 4]]
"#;

const VARIANT: &str = r#"
name = "tiny"
summary = "One convolution."
weights = "weights.safetensors"
parameters = 22
max_batch = 16
stages = 1

[architecture]
kind = "cnn1d"
samples = 8
classes = 2
layers = [{ channels = 4, kernel = 2, stride = 2 }]

[[exits]]
name = "final"
after_stage = 1
accuracy = 0.9
recall = [0.8, 1.0]
confusion = [[4, 1], [0, 5]]

[provenance]
command = "by hand"
seed = 1
steps = 1
batch = 1
data = "none"
"#;

/// Writes the zoo with its one app and one variant, of 22 numbers.
fn write_zoo(dir: &Path) -> Zoo {
    let variant = dir.join("pulse").join("tiny");
    std::fs::create_dir_all(&variant).unwrap();
    std::fs::write(dir.join("pulse").join("app.toml"), APP).unwrap();
    std::fs::write(variant.join("model.toml"), VARIANT).unwrap();
    let ramp = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|i| i as f32 / 10.0 - 0.3).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    };
    let tensors = HashMap::from([
        ("layer0.weight", ramp(&[3, 4])),
        ("head.weight", ramp(&[4, 2])),
        ("head.bias", ramp(&[2])),
    ]);
    candle_core::safetensors::save(&tensors, variant.join("weights.safetensors")).unwrap();
    Zoo::open(dir).unwrap()
}

fn prior(zoo: &Zoo, prior: Prior) -> Vec<f64> {
    let choice = AppChoice {
        prior,
        ..AppChoice::new("pulse")
    };
    Manifest::choose(zoo, &[choice]).unwrap().apps[0]
        .prior
        .clone()
}

#[test]
fn model_cards_become_the_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::all(&write_zoo(dir.path())).unwrap();
    let app = &manifest.apps[0];
    assert_eq!((app.name.as_str(), app.slo), ("pulse", Micros(12_500)));
    assert_eq!((app.penalty, app.late), (Penalty::Sigmoid, Late::Serve));
    assert_eq!(
        (app.prior.as_slice(), app.frequencies.as_slice()),
        (&[0.25, 0.5][..], &[0.5; 2][..])
    );
    assert_eq!(app.sneakpeek.as_ref().unwrap().neighbours, 5);
    let variant = &manifest.variants[0];
    assert_eq!(
        (variant.app, variant.stages, variant.max_batch),
        (AppId(0), 1, 16)
    );
    assert_eq!(variant.memory_bytes, 22 * 4);
    assert_eq!(variant.exits[0].recall, [0.8, 1.0]);
    let confusion = variant.exits[0].confusion.as_ref().unwrap();
    assert_eq!(confusion.row(0), Some(&[0.8, 0.2][..]));
    assert_eq!(confusion.row(1), Some(&[0.0, 1.0][..]));
    let evidence = app.sneakpeek.as_ref().unwrap().confusion.as_ref();
    assert_eq!(evidence.unwrap().row(1), Some(&[0.2, 0.8][..]));
    let input = &manifest.source.entries()[0].inputs[0];
    assert_eq!(
        (input.name.as_str(), input.input_type),
        ("pulse", InputType::F32)
    );
    assert_eq!(input.row_shape, [8]);
}

#[test]
fn a_class_that_was_never_validated_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut zoo = write_zoo(dir.path());
    zoo.apps[0].variants[0].card.exits[0].confusion[1] = vec![0, 0];
    let error = Manifest::all(&zoo).unwrap_err();
    assert_eq!(
        error.to_string(),
        "app pulse, variant tiny, exit final, class odd, confusion: no input of it was counted"
    );
}

#[test]
fn a_choice_overrides_the_card() {
    let dir = tempfile::tempdir().unwrap();
    let zoo = write_zoo(dir.path());
    let choice = AppChoice {
        variants: Some(vec!["tiny".to_owned()]),
        slo: Some(Micros(7)),
        penalty: Some(Penalty::Step),
        late: Late::Drop,
        ..AppChoice::new("pulse")
    };
    let manifest = Manifest::choose(&zoo, &[choice]).unwrap();
    let app = &manifest.apps[0];
    assert_eq!(
        (app.slo, app.penalty, app.late),
        (Micros(7), Penalty::Step, Late::Drop)
    );
    assert_eq!(prior(&zoo, Prior::Jeffreys), [0.5, 0.5]);
    assert_eq!(prior(&zoo, Prior::Weak), [0.75, 0.25]);
    let strong = Prior::Strong {
        requests_per_window: 12.0,
    };
    assert_eq!(prior(&zoo, strong), [9.0, 3.0]);
}

#[test]
fn missing_apps_and_variants_are_named_with_the_existing_ones() {
    let dir = tempfile::tempdir().unwrap();
    let zoo = write_zoo(dir.path());
    let refusal = |choice: AppChoice| {
        let error = Manifest::choose(&zoo, &[choice]).unwrap_err().to_string();
        error.replace(&dir.path().display().to_string(), "zoo")
    };
    assert_eq!(
        refusal(AppChoice::new("pulze")),
        "app pulze: not in zoo, which has: pulse"
    );
    let variant = AppChoice {
        variants: Some(vec!["huge".to_owned()]),
        ..AppChoice::new("pulse")
    };
    assert_eq!(
        refusal(variant),
        "app pulse, variant huge: not in zoo/pulse, which has: tiny"
    );
    let prior = AppChoice {
        prior: Prior::Strong {
            requests_per_window: 0.0,
        },
        ..AppChoice::new("pulse")
    };
    assert_eq!(
        refusal(prior),
        "app pulse, prior, requests_per_window: 0 is not a positive number"
    );
}

fn job(requests: &[u64]) -> Job {
    let rows = requests.iter().map(|&request| JobRow {
        request: RequestId(request),
        input: Some(
            [InputTensor::F32(
                (0..8).map(|i| ((i + request) % 5) as f32).collect(),
            )]
            .into(),
        ),
    });
    Job {
        batch: BatchId(1),
        app: AppId(0),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        rows: rows.collect(),
        soon: Soon::new(),
        until: None,
    }
}

#[test]
fn a_model_of_the_zoo_answers() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::all(&write_zoo(dir.path())).unwrap();
    let mut executor = CandleExecutor::new(Weights::new(manifest.source), Device::Cpu, 88);
    let BatchOutput::Answered {
        classes,
        probabilities,
    } = executor.run(&mut job(&[1, 2, 3])).result.unwrap()
    else {
        panic!("not answered");
    };
    assert_eq!((classes, probabilities.len()), (2, 6));
    let alone = executor.run(&mut job(&[2])).result.unwrap();
    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
    assert!(
        alone
            .rows()
            .next()
            .unwrap()
            .iter()
            .zip(&probabilities[2..4])
            .all(close)
    );
    assert_eq!(
        executor.residency().free_bytes,
        0,
        "the card states the model's size"
    );
}

#[test]
fn a_missing_weights_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::all(&write_zoo(dir.path())).unwrap();
    let weights = dir
        .path()
        .join("pulse")
        .join("tiny")
        .join("weights.safetensors");
    std::fs::remove_file(&weights).unwrap();
    let mut executor = CandleExecutor::new(Weights::new(manifest.source), Device::Cpu, 88);
    let error = executor.run(&mut job(&[1])).result.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("pulse/tiny: {}: ", weights.display())),
        "{error}"
    );
}
