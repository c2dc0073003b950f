//! New weights for a variant that serves.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use switchyard_core::ids::VariantId;
use switchyard_executor::{BatchOutput, CandleExecutor, Device, Executor, Weights};

use crate::toy::{ToySource, job, job_of};

fn answers(executor: &mut CandleExecutor, mut job: switchyard_executor::Job) -> Vec<f32> {
    match executor.run(&mut job).result.unwrap() {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        other => panic!("not answered: {other:?}"),
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
pub(crate) fn expected(shift: f32, requests: &[u64]) -> Vec<f32> {
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

/// The driver ends the pause after a failed load while another load reads for seconds.
#[test]
fn the_pause_of_a_load_is_ended_while_another_load_reads() {
    let source = ToySource::new(&[10]);
    let weights = Weights::new(source.clone());
    let gate = Arc::new(Barrier::new(2));
    *source.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let loading = std::thread::spawn({
        let weights = weights.clone();
        move || weights.load(VariantId(0), &Device::Cpu).map(drop)
    });
    gate.wait();
    let (report, done) = channel();
    let driver = std::thread::spawn({
        let weights = weights.clone();
        move || {
            weights.forgive(VariantId(0), &Device::Cpu);
            weights.forget(VariantId(0), &Device::Cpu);
            report.send(()).unwrap();
        }
    });
    done.recv_timeout(Duration::from_secs(5)).unwrap();
    driver.join().unwrap();
    gate.wait();
    loading.join().unwrap().unwrap();
}

/// Weights that were read before a renewal do not replace the renewed ones.
#[test]
fn a_load_that_began_before_a_renewal_reads_again() {
    let source = ToySource::new(&[10]);
    let weights = Weights::new(source.clone());
    let gate = Arc::new(Barrier::new(2));
    *source.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let loading = std::thread::spawn({
        let weights = weights.clone();
        move || weights.load(VariantId(0), &Device::Cpu).unwrap()
    });
    gate.wait();
    *source.gate.lock().unwrap() = None;
    let renewed = weights.renew(VariantId(0), &[Device::Cpu]).unwrap();
    gate.wait();
    let loaded = loading.join().unwrap();
    assert!(Arc::ptr_eq(&renewed[0], &loaded));
}
