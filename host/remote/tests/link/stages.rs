//! Batches of some stages, and the activations that the server keeps between them.

use std::time::{Duration, Instant};

use switchyard_core::ids::{ExitId, RequestId};
use switchyard_executor::{BatchOutput, ExecuteError, Executor, Job, JobRow};
use switchyard_protocol::StageWork;
use switchyard_remote::{ConnectError, RemoteExecutor, RemoteOptions, StageRanges};

use super::server::FakeServer;
use super::{PATIENCE, assert_answers, job, options, watched};

fn offering() -> FakeServer {
    let server = FakeServer::start();
    server.offer_stages();
    server
}

/// Some stages of one request.
fn range(request: u64, from: u32, to: u32, exit: bool) -> Job {
    let whole = job();
    let rows = whole.rows.into_iter().map(|row| JobRow {
        request: RequestId(request),
        input: row.input.filter(|_| from == 0),
    });
    Job {
        rows: rows.collect(),
        from_stage: from,
        to_stage: to,
        exit: exit.then_some(ExitId(0)),
        ..whole
    }
}

fn park(executor: &mut dyn Executor, request: u64, from: u32) {
    let outcome = executor.run(&mut range(request, from, from + 1, false));
    assert_eq!(outcome.result.unwrap(), BatchOutput::Parked);
}

fn lost(executor: &mut dyn Executor, request: u64) -> ExecuteError {
    let error = executor.run(&mut range(request, 1, 3, true)).result;
    let error = error.unwrap_err();
    assert!(error.is_repeatable() && !error.is_fatal(), "{error}");
    error
}

#[test]
fn stages_carry_one_number_to_the_exit_and_inputs_only_once() {
    let server = offering();
    let mut executor = RemoteExecutor::connect(options(&server)).unwrap();
    assert!(executor.runs_stages());
    park(&mut executor, 7, 0);
    park(&mut executor, 7, 1);
    assert_eq!(server.kept(), 1);
    let answer = executor.run(&mut range(7, 2, 3, true)).result.unwrap();
    assert_eq!(answer.rows().next(), Some(&[3.0, 4.0][..]));
    let calls = server.stage_calls();
    let works: Vec<_> = calls
        .iter()
        .map(|(call, inputs)| (call.work, *inputs))
        .collect();
    let parked = |from_stage| StageWork::Park {
        from_stage,
        to_stage: from_stage + 1,
    };
    let answered = StageWork::Answer { from_stage: 2 };
    assert_eq!(works, [(parked(0), 1), (parked(1), 0), (answered, 0)]);
    assert!(calls.iter().all(|(call, _)| call.rows == calls[0].0.rows));
    assert!(
        calls
            .iter()
            .all(|(call, _)| call.session == calls[0].0.session)
    );
    assert_eq!(server.kept(), 0);
    // A whole batch needs none of it.
    assert_answers(&mut executor);
    assert_eq!(server.stage_calls().len(), 3);
}

#[test]
fn a_release_reaches_the_server_while_a_batch_runs_and_spares_a_later_try() {
    let server = offering();
    let (mut executor, _absences, _) = watched(&server);
    let release = executor.release_at_once().unwrap();
    park(&mut executor, 7, 0);
    park(&mut executor, 8, 0);
    let mut other = executor.another().unwrap();
    server.hold();
    let running = std::thread::spawn(move || assert_answers(&mut executor));
    server.wait_until(PATIENCE, |server| server.batches() == 3);
    let began = Instant::now();
    release(RequestId(7));
    release(RequestId(7));
    // The fake server holds it with the batch; the real one does not.
    server.wait_until(PATIENCE, |server| server.batches() == 4);
    assert!(began.elapsed() < Duration::from_secs(5));
    server.release();
    running.join().unwrap();
    server.wait_until(PATIENCE, |server| server.kept() == 1);
    // The request begins anew with a number of its own.
    park(&mut *other, 7, 0);
    assert_eq!(server.kept(), 2);
    let calls = server.stage_calls();
    let rows: Vec<_> = calls.iter().map(|(call, _)| call.rows[0]).collect();
    assert_eq!(rows[2], rows[0], "released");
    assert!(!rows[..3].contains(&rows[3]), "{rows:?}");
}

#[test]
fn lost_activations_cost_the_progress_and_nothing_else() {
    let server = offering();
    let (mut executor, absences, _) = watched(&server);
    assert!(matches!(
        lost(&mut executor, 7),
        ExecuteError::NotParked { .. }
    ));
    park(&mut executor, 7, 0);
    server.forget_rows();
    let error = lost(&mut executor, 7);
    assert!(matches!(error, ExecuteError::Remote { .. }), "{error}");
    park(&mut executor, 7, 0);
    let answer = executor.run(&mut range(7, 1, 3, true)).result;
    assert!(answer.is_ok());
    // A connection that was closed in between has the same session.
    park(&mut executor, 9, 0);
    server.close_connections();
    server.wait_until(PATIENCE, |server| server.connections() > 1);
    let answer = executor.run(&mut range(9, 1, 3, true)).result;
    assert!(answer.is_ok(), "{answer:?}");
    // Another start of the worker has another one.
    park(&mut executor, 9, 0);
    let mut anew = RemoteExecutor::connect(options(&server)).unwrap();
    assert!(matches!(lost(&mut anew, 9), ExecuteError::NotParked { .. }));
    park(&mut anew, 9, 0);
    assert_eq!(server.kept(), 2);
    assert_eq!(absences.try_recv().ok(), None);
}

#[test]
fn a_batch_that_is_given_up_releases_its_rows() {
    let server = offering();
    let mut executor = RemoteExecutor::connect(options(&server)).unwrap();
    server.hold();
    let until = Some(Instant::now() + Duration::from_millis(200));
    let mut late = Job {
        until,
        ..range(7, 0, 1, false)
    };
    let error = executor.run(&mut late).result.unwrap_err();
    assert!(error.to_string().contains("deadline"), "{error}");
    // A run that goes on may park its rows after their release.
    server.wait_until(PATIENCE, |server| server.cancelled() == 1);
    server.release();
    server.wait_until(PATIENCE, |server| {
        let calls = server.stage_calls();
        calls
            .iter()
            .any(|(call, _)| call.work == StageWork::Release)
    });
    assert_eq!(server.kept(), 0);
}

#[test]
fn a_server_without_stages_serves_whole_batches_unless_policies_count_on_them() {
    let server = FakeServer::start();
    let mut executor = RemoteExecutor::connect(options(&server)).unwrap();
    assert!(!executor.runs_stages());
    assert_answers(&mut executor);
    let error = executor.run(&mut range(7, 0, 1, false)).result.unwrap_err();
    assert!(matches!(error, ExecuteError::Job { .. }), "{error}");
    let of = |stages| RemoteOptions {
        stages,
        ..options(&server)
    };
    assert!(RemoteExecutor::connect(of(StageRanges::Never)).is_ok());
    let error = RemoteExecutor::connect(of(StageRanges::Required)).err();
    let error = error.unwrap();
    assert!(matches!(error, ConnectError::Stages { .. }), "{error}");
    assert!(error.to_string().contains("switchyard profile"), "{error}");
    server.offer_stages();
    let executor = RemoteExecutor::connect(of(StageRanges::Required)).unwrap();
    assert!(executor.runs_stages());
    // A plain server is not asked.
    let executor = RemoteExecutor::connect(of(StageRanges::Never)).unwrap();
    assert!(!executor.runs_stages());
}
