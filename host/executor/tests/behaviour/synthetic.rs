//! The executor without models.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, KindId, RequestId, VariantId, WorkerId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_executor::synthetic::{InjectedFault, WaitMode, class_of};
use switchyard_executor::{
    BatchOutput, ExecuteError, Executor, SyntheticExecutor, Worker, WorkerEvent, WorkerOptions,
};

use crate::toy::{self, CLASSES, ToySource, job, job_of};

const BATCH: Micros = Micros(5_000);
const LOAD: Micros = Micros(3_000);

fn catalog() -> Arc<Catalog> {
    let row = |from_stage, to_stage, exit: Option<u32>| ProfileRow {
        kind: KindId(0),
        variant: VariantId(0),
        from_stage,
        to_stage,
        exit: exit.map(ExitId),
        batch: 8,
        latency: BATCH,
        energy_uj: None,
    };
    let rows = [row(0, 3, Some(1)), row(0, 1, None), row(1, 3, Some(1))];
    let load = LoadRow {
        kind: KindId(0),
        variant: VariantId(0),
        latency: LOAD,
    };
    Arc::new(Catalog {
        profile: Profile::new(0.95, rows, [load]),
        ..toy::catalog(&ToySource::new(&[40, 70, 200]))
    })
}

fn executor(wait: WaitMode) -> SyntheticExecutor {
    SyntheticExecutor::new(catalog(), KindId(0), wait, 100)
}

#[test]
fn answers_are_a_function_of_request_variant_and_exit() {
    let mut executor = executor(WaitMode::Skip);
    let first = executor
        .run(&mut job(&[1, 2, 3, 4], 0, 3, Some(1)))
        .result
        .unwrap();
    for (row, request) in first.rows().zip(1..) {
        let class = class_of(RequestId(request), VariantId(0), ExitId(1), CLASSES);
        let best = (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        assert_eq!(best, Some(class));
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
    let reversed = executor
        .run(&mut job(&[4, 3, 2, 1], 0, 3, Some(1)))
        .result
        .unwrap();
    let mut rows: Vec<_> = reversed.rows().collect();
    rows.reverse();
    assert!(first.rows().eq(rows));
}

#[test]
fn a_batch_takes_the_profiled_time_and_a_load_once() {
    for wait in [WaitMode::Sleep, WaitMode::Spin] {
        let mut executor = executor(wait);
        let first = executor.run(&mut job(&[1], 0, 3, Some(1)));
        assert!(first.load >= LOAD && first.compute >= BATCH, "{first:?}");
        assert_eq!(
            executor.run(&mut job(&[2], 0, 3, Some(1))).load,
            Micros::ZERO
        );
    }
}

#[test]
fn parked_requests_continue_from_their_stage() {
    let mut executor = executor(WaitMode::Skip);
    let mut run = |from, to, exit| executor.run(&mut job(&[1], from, to, exit)).result;
    assert_eq!(run(0, 1, None).unwrap(), BatchOutput::Parked);
    assert!(matches!(
        run(1, 3, Some(1)).unwrap(),
        BatchOutput::Answered { .. }
    ));
    assert_eq!(
        run(1, 3, Some(1)).unwrap_err().to_string(),
        "request 1: cannot continue: not parked at this stage"
    );
    assert_eq!(
        run(0, 2, None).unwrap_err().to_string(),
        "v0: the profile has no latency for this batch"
    );
}

#[test]
fn models_come_and_go_under_the_budget() {
    let mut executor = executor(WaitMode::Skip);
    executor.preload(VariantId(0)).unwrap();
    executor.preload(VariantId(1)).unwrap();
    assert_eq!(executor.residency().resident, [VariantId(1)]);
    assert_eq!(executor.residency().free_bytes, 30);
    let error = executor.run(&mut job_of(2, 1)).result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "v2: takes 200 bytes, the worker's budget is 100"
    );
}

#[test]
fn a_lost_device_takes_the_worker_down_and_loses_no_batch() {
    let executor = executor(WaitMode::Skip).with_faults(|job| match job.batch.0 {
        1 => Some(InjectedFault::Error("one".to_owned())),
        2 => Some(InjectedFault::Panic("two".to_owned())),
        3 => Some(InjectedFault::Lost("three".to_owned())),
        _ => None,
    });
    let (report, events) = channel();
    let options = WorkerOptions {
        id: WorkerId(0),
        name: "synthetic".to_owned(),
        threads: 1,
        cores: Vec::new(),
        commands_max: 8,
        outstanding: 1,
    };
    let worker = Worker::spawn(options, Box::new(executor), move |event| {
        report.send(event).unwrap();
    });
    let worker = worker.unwrap();
    for request in 0..=4 {
        worker.run(job(&[request], 0, 3, Some(1))).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(
            match events.recv_timeout(Duration::from_secs(20)).unwrap() {
                WorkerEvent::Down(down) => format!("down: {}", down.reason),
                WorkerEvent::Finished(finished) => match finished.result {
                    Ok(_) => "answered".to_owned(),
                    Err(ExecuteError::Stopped) => "stopped".to_owned(),
                    Err(error) => error.to_string(),
                },
                other => unreachable!("nothing is loaded or unloaded here: {other:?}"),
            },
        );
    }
    let expected = [
        "answered",
        "injected: one",
        "the batch panicked: two",
        "device lost: three",
        "down: device lost: three",
        "stopped",
    ];
    assert_eq!(seen, expected);
}
