//! New weights for a variant that serves.

use std::sync::Arc;

use switchyard_core::ids::VariantId;
use switchyard_executor::{BatchOutput, CandleExecutor, Device, Executor, Weights};

use crate::toy::{ToySource, job, job_of};

fn answers(executor: &mut CandleExecutor, mut job: switchyard_executor::Job) -> Vec<f32> {
    match executor.run(&mut job).result.unwrap() {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        BatchOutput::Parked => panic!("not answered"),
    }
}

fn parks(executor: &mut CandleExecutor, requests: &[u64]) {
    let parked = executor.run(&mut job(requests, 0, 1, None)).result.unwrap();
    assert_eq!(parked, BatchOutput::Parked);
}

/// Batches of other sizes may sum in another order.
fn close(a: &[f32], b: &[f32]) {
    let near = a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near && a.len() == b.len(), "{a:?} is not {b:?}");
}

/// The answers of an executor that had these weights from the start.
fn expected(shift: f32, requests: &[u64]) -> Vec<f32> {
    let source = ToySource::new(&[10]);
    source.shift(shift);
    let mut fresh = CandleExecutor::new(Weights::new(source), Device::Cpu, 100);
    answers(&mut fresh, job(requests, 0, 3, Some(1)))
}

#[test]
fn later_batches_run_on_the_new_weights() {
    let source = ToySource::new(&[10]);
    let weights = Weights::new(source.clone());
    let mut executor = CandleExecutor::new(weights.clone(), Device::Cpu, 100);
    assert_eq!(answers(&mut executor, job_of(0, 1)), expected(0.0, &[1]));
    source.shift(2.0);
    assert_eq!(answers(&mut executor, job_of(0, 1)), expected(0.0, &[1]));
    let renewed = weights.renew(VariantId(0), &[Device::Cpu]).unwrap();
    executor.replace(VariantId(0), &renewed[0]);
    assert_ne!(expected(2.0, &[1]), expected(0.0, &[1]));
    assert_eq!(answers(&mut executor, job_of(0, 1)), expected(2.0, &[1]));
    assert_eq!(executor.residency().free_bytes, 90, "the old ones are gone");
    assert_eq!(source.loads(), 2, "no batch has loaded again");
}

#[test]
fn parked_requests_end_on_the_weights_they_began_with() {
    let source = ToySource::new(&[10]);
    let weights = Weights::new(source.clone());
    let mut executor = CandleExecutor::new(weights.clone(), Device::Cpu, 1_000);
    parks(&mut executor, &[1, 2]);
    source.shift(2.0);
    let renewed = weights.renew(VariantId(0), &[Device::Cpu]).unwrap();
    executor.replace(VariantId(0), &renewed[0]);
    parks(&mut executor, &[3]);
    // One batch of rows that began on different weights, out of order.
    let joined = answers(&mut executor, job(&[1, 3, 2], 1, 3, Some(1)));
    let classes = joined.len() / 3;
    let (old, new) = (expected(0.0, &[1, 2]), expected(2.0, &[3]));
    close(&joined[..classes], &old[..classes]);
    close(&joined[classes..2 * classes], &new);
    close(&joined[2 * classes..], &old[classes..]);
    assert_eq!(
        executor.residency().free_bytes,
        990,
        "the last of their requests has freed the old weights"
    );
}

#[test]
fn weights_that_fail_their_trial_are_refused_and_the_old_ones_are_kept() {
    let source = ToySource::new(&[10, 95]);
    let weights = Weights::new(source.clone());
    let mut executor = CandleExecutor::new(weights.clone(), Device::Cpu, 100);
    let before = answers(&mut executor, job_of(0, 1));
    let refused = |reason: &str| {
        let error = weights.renew(VariantId(0), &[Device::Cpu]).err().unwrap();
        let message = error.to_string();
        assert!(
            message.starts_with("toy/v0: ") && message.contains(reason),
            "{message}"
        );
    };
    source.shift(f32::INFINITY);
    refused("a trial run: exit 0: answers NaN");
    source.shift(0.0);
    source.break_it("cut off");
    refused("cut off");
    assert_eq!(answers(&mut executor, job_of(0, 1)), before);
    // An eviction does not lose them while the files are refused.
    executor.run(&mut job_of(1, 2)).result.unwrap_err();
    assert_eq!(
        executor.residency().free_bytes,
        100,
        "evicted for a load that failed"
    );
    assert_eq!(answers(&mut executor, job_of(0, 1)), before);
    let held = Arc::downgrade(&weights.load(VariantId(0), &Device::Cpu).unwrap());
    executor.unload(VariantId(0));
    weights.forget(VariantId(0), &Device::Cpu);
    assert!(held.upgrade().is_none(), "an unload drops them");
}
