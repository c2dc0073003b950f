//! Stages, exits and parking, through the candle executor.

use switchyard_core::ids::{ExitId, RequestId};
use switchyard_executor::{
    BatchOutput, CandleExecutor, Device, ExecuteError, Executor, Job, Weights,
};

use crate::toy::{CLASSES, ToySource, WIDTH, job};

const BUDGET: u64 = 10_000;
const MODEL: u64 = 1_000;
const ROW_BYTES: u64 = (WIDTH * size_of::<f32>()) as u64;

fn executor() -> CandleExecutor {
    CandleExecutor::new(Weights::new(ToySource::new(&[MODEL])), Device::Cpu, BUDGET)
}

fn run(executor: &mut CandleExecutor, mut job: Job) -> Result<BatchOutput, ExecuteError> {
    executor.run(&mut job).result
}

fn answers(executor: &mut CandleExecutor, job: Job) -> Vec<Vec<f32>> {
    let output = run(executor, job).unwrap();
    assert!(matches!(
        output,
        BatchOutput::Answered {
            classes: CLASSES,
            ..
        }
    ));
    output.rows().map(<[f32]>::to_vec).collect()
}

fn park(executor: &mut CandleExecutor, requests: &[u64], from: u32, to: u32) {
    let output = run(executor, job(requests, from, to, None)).unwrap();
    assert_eq!(output, BatchOutput::Parked);
}

#[test]
fn stages_one_by_one_answer_as_all_in_one_go() {
    let mut executor = executor();
    let whole = answers(&mut executor, job(&[1, 2, 3], 0, 3, Some(1)));
    park(&mut executor, &[1, 2, 3], 0, 1);
    park(&mut executor, &[1, 2, 3], 1, 2);
    let staged = answers(&mut executor, job(&[1, 2, 3], 2, 3, Some(1)));
    assert_eq!(staged, whole);
    assert!(
        whole
            .iter()
            .all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6)
    );
}

#[test]
fn an_early_exit_answers_from_its_own_head() {
    let mut executor = executor();
    let early = answers(&mut executor, job(&[1], 0, 1, Some(0)));
    let late = answers(&mut executor, job(&[1], 0, 3, Some(1)));
    assert_ne!(early, late);
}

#[test]
fn rows_parked_in_different_batches_continue_together() {
    let mut executor = executor();
    let alone: Vec<_> = [1, 2, 3, 4]
        .iter()
        .map(|&request| answers(&mut executor, job(&[request], 0, 3, Some(1)))[0].clone())
        .collect();
    park(&mut executor, &[1, 2], 0, 1);
    park(&mut executor, &[3], 0, 1);
    park(&mut executor, &[4], 0, 1);
    let joined = answers(&mut executor, job(&[4, 2, 3], 1, 3, Some(1)));
    assert_eq!(joined, [3, 1, 2].map(|i| alone[i].clone()));
    let rest = answers(&mut executor, job(&[1], 1, 3, Some(1)));
    assert_eq!(rest[0], alone[0]);
}

#[test]
fn parked_activations_take_free_memory_until_they_are_released() {
    let mut executor = executor();
    park(&mut executor, &[1, 2], 0, 1);
    park(&mut executor, &[3], 0, 1);
    let free = |executor: &CandleExecutor| executor.residency().free_bytes;
    assert_eq!(free(&executor), BUDGET - MODEL - 3 * ROW_BYTES);
    executor.release(RequestId(3));
    assert_eq!(free(&executor), BUDGET - MODEL - 2 * ROW_BYTES);
    answers(&mut executor, job(&[1, 2], 1, 3, Some(1)));
    assert_eq!(free(&executor), BUDGET - MODEL);
}

#[test]
fn a_failed_batch_leaves_nothing_parked() {
    let mut executor = executor();
    park(&mut executor, &[1], 0, 1);
    // Request 2 was never parked, so the batch cannot run.
    let error = run(&mut executor, job(&[1, 2], 1, 3, Some(1))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request 2: cannot continue: not parked here"
    );
    assert_eq!(executor.residency().free_bytes, BUDGET - MODEL);
}

#[test]
fn impossible_jobs_are_refused_by_name() {
    let mut executor = executor();
    let mut refusal = |job: Job| run(&mut executor, job).unwrap_err().to_string();
    assert_eq!(
        refusal(job(&[1], 0, 4, None)),
        "toy/v0: stages 0 to 4 cannot be run, it has 3"
    );
    assert_eq!(
        refusal(job(&[1], 1, 1, Some(0))),
        "toy/v0: stages 1 to 1 cannot be run, it has 3"
    );
    assert_eq!(
        refusal(job(&[1], 0, 2, Some(1))),
        "toy/v0: exit 1 follows stage 3, not stage 2"
    );
    let unknown = Job {
        exit: Some(ExitId(7)),
        ..job(&[1], 0, 3, None)
    };
    assert_eq!(refusal(unknown), "toy/v0: exit 7 does not exist, it has 2");
    assert_eq!(
        refusal(job(&[], 0, 3, Some(1))),
        "toy/v0: a batch without requests"
    );
}
