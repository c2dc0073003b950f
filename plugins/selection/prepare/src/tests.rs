#![allow(clippy::unwrap_used)]

use switchyard_core::catalog::{App, Capabilities, Exit, Late, Penalty, Task, Variant, WorkerSpec};
use switchyard_core::ids::{ExitId, KindId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;

use super::*;

/// One app with an SLO of 100 ms and two variants: `small` takes 10, 20, 30, ... ms, `large` 60 and
/// 80 ms in batches of at most two.
fn catalog() -> Catalog {
    let variant = |name: &str, accuracy, max_batch| Variant {
        name: name.to_owned(),
        app: AppId(0),
        stages: 1,
        exits: vec![Exit {
            name: "final".to_owned(),
            after_stage: 1,
            accuracy,
            recall: vec![accuracy; 2],
            confusion: None,
        }],
        memory_bytes: 1,
        max_batch,
        quality_unknown: false,
    };
    let row = |variant, batch, ms| ProfileRow {
        kind: KindId(0),
        variant: VariantId(variant),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency: Micros::from_millis(ms),
        energy_uj: None,
    };
    let rows = [row(0, 1, 10), row(0, 8, 80), row(1, 1, 60), row(1, 2, 80)];
    Catalog {
        generation: 1,
        apps: vec![App {
            name: "image".to_owned(),
            task: Task::Classify,
            classes: vec!["x".to_owned(), "y".to_owned()],
            slo: Micros::from_millis(100),
            penalty: Penalty::Step,
            prior: vec![0.5; 2],
            frequencies: vec![0.5; 2],
            sneakpeek: None,
            late: Late::Serve,
        }],
        variants: vec![variant("small", 0.7, 8), variant("large", 0.9, 2)],
        kinds: vec!["cpu".to_owned()],
        workers: vec![WorkerSpec {
            name: "w".to_owned(),
            kind: KindId(0),
            memory_bytes: 100,
            queue_max: 4,
            parked_max: 0,
            can: Capabilities::ALL,
            transfer: Micros::ZERO,
            outstanding: 1,
        }],
        profile: Profile::new(0.95, rows, []),
    }
}

fn options() -> ResponseOptions {
    ResponseOptions {
        workers: vec![2, 4],
        loads_rps: vec![5.0, 20.0, 60.0, 300.0],
        batching: Batching::Own,
        ..ResponseOptions::default()
    }
}

#[test]
fn every_model_is_measured_under_every_load() {
    let mut asked = 0;
    let made = responses(&catalog(), &options(), &mut || asked += 1).unwrap();
    assert_eq!(asked, 2 * 2 * 4);
    assert_eq!(made.measured.len(), 2);
    let measured = made.of("image", 4).unwrap();
    assert_eq!((measured.slo_us, measured.kind.as_str()), (100_000, "cpu"));
    let [small, large] = measured.variants.as_slice() else {
        panic!("{measured:?}");
    };
    // Half the SLO is 50 ms: batches of 5 for `small`, of 1 for `large`.
    assert_eq!(small.batch_max, [5; 4]);
    // 60 requests/s of 60 ms take 3.6 of four workers, in batches of two 2.4; 300/s overload them.
    let below = |responses: &VariantResponses| {
        let us = responses.response_us.iter();
        us.map(|us| us.is_some_and(|us| us < 100_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(below(small), [true, true, true, true]);
    assert_eq!(large.batch_max[..2], [1, 1]);
    assert!(!below(large)[3], "{large:?}");
    assert_eq!(large.response_us[0], Some(60_000), "no request waits");
    assert!(small.response_us.is_sorted());
    // On two workers the highest load is too much for `small` as well.
    let two = &made.of("image", 2).unwrap().variants[0];
    assert_eq!(below(two), [true, true, true, false]);
}

#[test]
fn the_same_seed_makes_the_same_file() {
    let made = |seed| {
        let options = ResponseOptions { seed, ..options() };
        responses(&catalog(), &options, &mut || ()).unwrap()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}

#[test]
fn errors_name_the_option() {
    let refused = |options: ResponseOptions| {
        let made = responses(&catalog(), &options, &mut || ());
        made.unwrap_err().to_string()
    };
    let loads_rps = vec![20.0, 5.0];
    assert_eq!(
        refused(ResponseOptions {
            loads_rps,
            ..options()
        }),
        "loads: must ascend"
    );
    let workers = vec![0];
    let error = refused(ResponseOptions {
        workers,
        ..options()
    });
    assert_eq!(error, "workers: must be one or more numbers above 0");
    let mut mixed = catalog();
    mixed.kinds.push("gpu".to_owned());
    mixed.workers.push(WorkerSpec {
        kind: KindId(1),
        ..mixed.workers[0].clone()
    });
    let made = responses(&mixed, &options(), &mut || ());
    assert_eq!(made, Err(PrepareError::Kinds));
    let mut bare = catalog();
    bare.profile = Profile::new(0.95, [], []);
    let made = responses(&bare, &options(), &mut || ());
    assert_eq!(made, Err(PrepareError::NoVariant("image".to_owned())));
}

#[test]
fn published_batches_are_those_of_jellyfish() {
    let options = ResponseOptions {
        workers: vec![4],
        loads_rps: vec![5.0, 60.0, 399.0, 401.0],
        batching: Batching::Published,
        ..ResponseOptions::default()
    };
    let made = responses(&catalog(), &options, &mut || ()).unwrap();
    let limits = |at: usize| &made.measured[0].variants[at].batch_max;
    // `large` always exceeds half the SLO. Four workers serve 400/s with `small`, in batches of any
    // size; beyond that only the model's largest batch limits.
    assert_eq!(limits(0), &[5, 5, 5, 8]);
    assert_eq!(limits(1), &[2, 2, 2, 2]);
}
