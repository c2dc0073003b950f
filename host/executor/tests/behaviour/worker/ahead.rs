//! Variants that are loaded while another batch runs.

use std::sync::{Arc, Barrier};

use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;
use switchyard_executor::{BatchOutput, CandleExecutor, Device, Weights, WorkerEvent};

use super::{PATIENCE, finished, preloaded, spawn};
use crate::reload::expected;
use crate::toy::{ToySource, job_of};

#[test]
fn the_next_batchs_variant_is_loaded_while_another_batch_runs() {
    let source = ToySource::new(&[40, 40]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    worker.run(job_of(0, 1)).unwrap();
    finished(&events).result.unwrap();
    let gate = Arc::new(Barrier::new(2));
    *source.gate.lock().unwrap() = Some(Arc::clone(&gate));
    worker.prepare(std::iter::once(VariantId(1)).collect());
    gate.wait(); // Its load is under way ...
    worker.run(job_of(0, 2)).unwrap();
    // ... and a batch that does not need it does not wait for it.
    let meanwhile = finished(&events);
    meanwhile.result.unwrap();
    assert_eq!(meanwhile.load, Micros::ZERO);
    assert_eq!(meanwhile.residency.resident, [VariantId(0)]);
    assert_eq!(
        meanwhile.residency.free_bytes, 20,
        "its room is taken already"
    );
    *source.gate.lock().unwrap() = None;
    gate.wait();
    let ahead = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert!(!ahead.asked && ahead.result.unwrap() > Micros::ZERO);
    assert!(ahead.residency.version > meanwhile.residency.version);
    worker.run(job_of(1, 3)).unwrap();
    assert_eq!(
        finished(&events).load,
        Micros::ZERO,
        "it was resident in time"
    );
    assert_eq!(source.loads(), 2);
}

#[test]
fn a_batch_whose_load_is_under_way_takes_it_over() {
    let source = ToySource::new(&[40]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    let gate = Arc::new(Barrier::new(2));
    *source.gate.lock().unwrap() = Some(Arc::clone(&gate));
    worker.prepare(std::iter::once(VariantId(0)).collect());
    gate.wait();
    *source.gate.lock().unwrap() = None;
    worker.run(job_of(0, 1)).unwrap();
    gate.wait();
    // The load may end before the worker thread takes the batch; then it is reported on its own.
    let finished = loop {
        match events.recv_timeout(PATIENCE).unwrap() {
            WorkerEvent::Preloaded(ahead) => drop(ahead.result.unwrap()),
            WorkerEvent::Finished(finished) => break finished,
            other => panic!("{other:?}"),
        }
    };
    finished.result.unwrap();
    assert_eq!(source.loads(), 1);
    assert_eq!(finished.residency.free_bytes, 60, "it is accounted once");
}

#[test]
fn a_load_ahead_evicts_no_variant_that_is_needed_sooner() {
    let source = ToySource::new(&[60, 60, 30]);
    let executor = CandleExecutor::new(Weights::new(source), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    worker.run(job_of(0, 1)).unwrap();
    finished(&events).result.unwrap();
    // 1 does not fit next to 0, which is needed before it; 2 does.
    worker.prepare([0, 1, 2].into_iter().map(VariantId).collect());
    let ahead = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert_eq!(ahead.variant, VariantId(2));
    assert_eq!(ahead.residency.resident, [VariantId(0), VariantId(2)]);
}

#[test]
fn a_load_ahead_that_fails_is_reported_once_and_evicts_nothing_twice() {
    let source = ToySource::new(&[40, 40]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    source.break_it("cut off");
    for _ in 0..3 {
        worker.prepare(std::iter::once(VariantId(1)).collect());
    }
    let failed = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert_eq!(failed.result.unwrap_err().to_string(), "toy/v1: cut off");
    source.mend();
    worker.run(job_of(0, 1)).unwrap();
    finished(&events).result.unwrap();
    drop(worker);
    assert!(events.try_recv().is_err(), "it was reported before");
}

#[test]
fn a_load_ahead_is_accounted_with_the_bytes_that_it_takes() {
    let source = ToySource::new(&[30, 30, 40]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    for variant in [0, 1] {
        worker.run(job_of(variant, 1)).unwrap();
        finished(&events).result.unwrap();
    }
    // The expected 40 bytes are free, the 60 that it takes are not.
    source.take_more(20);
    worker.prepare(std::iter::once(VariantId(2)).collect());
    let ahead = preloaded(events.recv_timeout(PATIENCE).unwrap());
    ahead.result.unwrap();
    assert_eq!(ahead.residency.resident, [VariantId(1), VariantId(2)]);
    assert_eq!(ahead.residency.free_bytes, 10);
    assert_eq!(ahead.residency.counts.evictions, 1);
}

#[test]
fn a_load_ahead_that_takes_too_much_gives_way_to_a_variant_that_is_needed_sooner() {
    let source = ToySource::new(&[50, 40, 20]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    worker.run(job_of(0, 1)).unwrap();
    finished(&events).result.unwrap();
    // 1 takes 60 bytes and does not fit next to 0, which is needed before it; 2 takes 40.
    source.take_more(20);
    worker.prepare([0, 1, 2].into_iter().map(VariantId).collect());
    let ahead = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert_eq!(ahead.variant, VariantId(2));
    assert_eq!(ahead.residency.resident, [VariantId(0), VariantId(2)]);
    assert_eq!(ahead.residency.free_bytes, 10);
}

/// The loader has read the old weights when the worker thread replaces them.
#[test]
fn weights_that_are_replaced_during_a_load_ahead_serve_after_it() {
    let source = ToySource::new(&[40, 40]);
    let executor = CandleExecutor::new(Weights::new(source.clone()), Device::Cpu, 100);
    let (worker, events) = spawn(executor, 8);
    worker.run(job_of(1, 1)).unwrap();
    finished(&events).result.unwrap();
    let gate = Arc::new(Barrier::new(2));
    *source.gate.lock().unwrap() = Some(Arc::clone(&gate));
    worker.prepare(std::iter::once(VariantId(0)).collect());
    gate.wait();
    *source.gate.lock().unwrap() = None;
    let renewed = ToySource::new(&[40]);
    renewed.shift(2.0);
    let renewed = Weights::new(renewed).load(VariantId(0), &Device::Cpu);
    worker.replace(VariantId(0), renewed.unwrap()).unwrap();
    // The replacement is done before this batch.
    worker.run(job_of(1, 2)).unwrap();
    finished(&events).result.unwrap();
    gate.wait();
    preloaded(events.recv_timeout(PATIENCE).unwrap())
        .result
        .unwrap();
    worker.run(job_of(0, 3)).unwrap();
    let BatchOutput::Answered { probabilities, .. } = finished(&events).result.unwrap() else {
        panic!("not answered");
    };
    assert_eq!(probabilities, expected(2.0, &[3]));
}
