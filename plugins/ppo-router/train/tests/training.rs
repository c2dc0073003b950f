//! Training end to end, in small.
#![allow(clippy::unwrap_used)]

use ppo_router_net::{Kind, Network};
use ppo_router_train::train::{CHECKPOINT, CURVE_CSV, CURVE_SVG, EVALUATION, WEIGHTS};
use ppo_router_train::{Options, Settings, TrainError, Trained, Yard, train};

fn options(out: &std::path::Path, updates: u64) -> Options {
    let settings = Settings {
        hidden: vec![12, 8],
        slots: 400,
        envs: 2,
        minibatch: 50,
        rate: (3e-3, 3e-3),
        ..Settings::better()
    };
    Options {
        yard: Yard::paper(),
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

fn run(options: &Options) -> Trained {
    train(options, &mut |_| true).unwrap()
}

fn bytes(options: &Options, name: &str) -> Vec<u8> {
    std::fs::read(options.out.join(name)).unwrap()
}

#[test]
fn it_learns_and_writes_what_it_learnt() {
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

/// Cut off and gone on from there, it is the training that was not cut off.
#[test]
fn a_training_that_resumes_is_the_one_that_was_never_stopped() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = options(one.path(), 8);
    let mut cut = options(two.path(), 8);
    run(&whole);
    train(&cut, &mut |progress| progress.point.update < 4).unwrap();
    cut.resume = true;
    run(&cut);
    assert!(bytes(&whole, WEIGHTS) == bytes(&cut, WEIGHTS));
    assert!(bytes(&whole, CURVE_CSV) == bytes(&cut, CURVE_CSV));
    cut.seed = 6;
    let error = train(&cut, &mut |_| true).unwrap_err();
    assert!(matches!(error, TrainError::Checkpoint { .. }), "{error}");
}

#[test]
fn batches_are_chosen_and_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), 2);
    options.yard = Yard::paper().with_batches();
    run(&options);
    let network = Network::parse(&bytes(&options, WEIGHTS)).unwrap();
    assert_eq!(network.meta().outputs(), 4 + 2 * 6);
}

#[test]
fn what_makes_no_sense_is_refused_by_field() {
    let dir = tempfile::tempdir().unwrap();
    let good = options(dir.path(), 1);
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut bad = good.clone();
        change(&mut bad);
        train(&bad, &mut |_| true).unwrap_err().to_string()
    };
    type Spoil<'a> = &'a dyn Fn(&mut Options);
    let cases: [(&str, Spoil<'_>); 6] = [
        ("settings: slots", &|o| o.settings.slots = 1),
        ("settings: sigma", &|o| o.settings.sigma.1 = 0.0),
        ("mmpp", &|o| o.workload = "mmpp:1".to_owned()),
        ("yard: capacity", &|o| o.yard.capacity = 1),
        ("yard: models[1].accuracy", &|o| {
            o.yard.models[1].accuracy = 1.5;
        }),
        ("yard: models[0].service_us", &|o| {
            o.yard.models[0].service_us = vec![(2, 10)];
        }),
    ];
    for (expected, change) in cases {
        let error = refused(change);
        assert!(error.contains(expected), "{error}");
    }
}
