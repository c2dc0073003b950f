//! Small trainings end to end.

#![allow(clippy::unwrap_used)]

use ppo_router_net::{Kind, Network, Scratch};
use ppo_router_train::mlp::{Mlp, PassBuffers, SparseRows};
use ppo_router_train::train::{CHECKPOINT, CURVE_CSV, CURVE_SVG, EVALUATION, WEIGHTS};
use ppo_router_train::{TestBed, TrainError, TrainOptions, TrainSettings, Trained, train};
use switchyard_sim::random::{Purpose, Stream};

fn options(out: &std::path::Path, updates: u64) -> TrainOptions {
    let settings = TrainSettings {
        hidden: vec![12, 8],
        slots: 400,
        envs: 2,
        minibatch: 50,
        rate: (3e-3, 3e-3),
        ..TrainSettings::better()
    };
    TrainOptions {
        test_bed: TestBed::paper(),
        workload: "phases:180x20s,10x20s".to_owned(),
        first: None,
        kind: Kind::Extended,
        settings,
        updates,
        seed: 5,
        out: out.to_owned(),
        resume: false,
        every: 4,
        validation_slots: 200,
        test_slots: 400,
        violations_max: 0.02,
        command: "test".to_owned(),
    }
}

fn run(options: &TrainOptions) -> Trained {
    train(options, &mut |_| true).unwrap()
}

fn bytes(options: &TrainOptions, name: &str) -> Vec<u8> {
    std::fs::read(options.out.join(name)).unwrap()
}

#[test]
fn a_training_improves_the_reward_and_writes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), 24);
    let mut rewards = Vec::new();
    let trained = train(&options, &mut |progress| {
        rewards.push(progress.point.reward);
        true
    });
    let trained = trained.unwrap();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&rewards[..4]), mean(&rewards[20..]));
    assert!(last > first + 10.0, "{first} {last}");
    assert!(trained.evaluation.overall.arrivals > 30_000);
    assert!(
        trained.evaluation.overall.goodput_ratio > 0.6,
        "{trained:?}"
    );
    let network = Network::parse(&bytes(&options, WEIGHTS)).unwrap();
    assert_eq!(network.meta().layers[1..3], [12, 8]);
    let csv = String::from_utf8(bytes(&options, CURVE_CSV)).unwrap();
    assert_eq!(csv.lines().count(), 25);
    for name in [CURVE_SVG, EVALUATION, CHECKPOINT] {
        assert!(!bytes(&options, name).is_empty(), "{name}");
    }
}

#[test]
fn a_resumed_training_equals_an_uninterrupted_one() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = options(one.path(), 8);
    let mut cut = options(two.path(), 8);
    run(&whole);
    train(&cut, &mut |progress| progress.point.update < 4).unwrap();
    cut.resume = true;
    run(&cut);
    assert!(bytes(&whole, WEIGHTS) == bytes(&cut, WEIGHTS));
    assert!(bytes(&whole, CURVE_CSV) == bytes(&cut, CURVE_CSV));
    // Weights that were the best on another workload would be kept.
    let workload = "phases:200x20s,10x20s".to_owned();
    let (seed, workload) = (
        6,
        TrainOptions {
            workload,
            ..cut.clone()
        },
    );
    for other in [TrainOptions { seed, ..cut }, workload] {
        let error = train(&other, &mut |_| true).unwrap_err();
        assert!(matches!(error, TrainError::Checkpoint { .. }), "{error}");
    }
}

#[test]
fn batch_bounds_are_trained() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), 2);
    options.test_bed = TestBed::paper().with_batches();
    run(&options);
    let network = Network::parse(&bytes(&options, WEIGHTS)).unwrap();
    assert_eq!(network.meta().outputs(), 4 + 2 * 6);
}

#[test]
fn invalid_options_are_refused_by_field() {
    let dir = tempfile::tempdir().unwrap();
    let good = options(dir.path(), 1);
    let refused = |change: &dyn Fn(&mut TrainOptions)| {
        let mut bad = good.clone();
        change(&mut bad);
        train(&bad, &mut |_| true).unwrap_err().to_string()
    };
    type OptionsChange<'a> = &'a dyn Fn(&mut TrainOptions);
    let cases: [(&str, OptionsChange<'_>); 6] = [
        ("settings: slots", &|o| o.settings.slots = 1),
        ("settings: sigma", &|o| o.settings.sigma.1 = 0.0),
        ("mmpp", &|o| o.workload = "mmpp:1".to_owned()),
        ("test bed: capacity", &|o| o.test_bed.capacity = 1),
        ("test bed: models[1].accuracy", &|o| {
            o.test_bed.models[1].accuracy = 1.5;
        }),
        ("test bed: models[0].service_us", &|o| {
            o.test_bed.models[0].service_us = vec![(2, 10)];
        }),
    ];
    for (expected, change) in cases {
        let error = refused(change);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_trained_network_equals_the_served_one() {
    let mut random = Stream::new(4, Purpose::Learning, 0);
    let meta = train::meta(&TestBed::paper(), Kind::Paper, &[9, 6], "", 1, "");
    let mlp = Mlp::new(&meta.layers, 1.0, &mut random);
    let network = Network::try_new(meta, mlp.layers()).unwrap();
    let mut rows = SparseRows::default();
    let numbers = (0..132).map(|i| if i % 5 == 0 { i as f32 / 132.0 } else { 0.0 });
    let observation: Vec<f32> = numbers.collect();
    rows.push(&observation);
    let (mut pass, mut scratch) = (PassBuffers::default(), Scratch::default());
    let trained = mlp.forward(&rows, &[0], &mut pass);
    let served = network.forward(&observation, &mut scratch);
    for (a, b) in trained.iter().zip(served) {
        assert!((a - b).abs() < 1e-5, "{trained:?} {served:?}");
    }
}
