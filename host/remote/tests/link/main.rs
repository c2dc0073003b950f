//! The link to a server that misbehaves: connections that close, servers that leave or hang.

#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

mod election;
mod etcd;
mod etcd_server;
mod fleet;
#[path = "../../../../tests/common/free_address.rs"]
mod free_address;
#[path = "../../../../tests/common/etcd.rs"]
mod real;
mod real_etcd;
mod server;
mod shared;
mod stages;
mod tls;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_executor::{
    Absence, BatchOutput, ExecuteError, Executor, GiveUp, InputTensor, Job, JobRow,
};
use switchyard_models::card::{Datatype, Task, TensorCard};
use switchyard_remote::{
    ConnectError, RemoteExecutor, RemoteModel, RemoteOptions, RemoteOutputs, RemoteTensor,
    StageRanges,
};

use server::FakeServer;

const PATIENCE: Duration = Duration::from_secs(10);

fn options(server: &FakeServer) -> RemoteOptions {
    let card = |name| TensorCard::fixed(name, Datatype::Fp32, &[2]);
    RemoteOptions {
        address: format!("grpc://{}", server.at).parse().unwrap(),
        tls: None,
        timeout: Duration::from_secs(20),
        models: Arc::new([RemoteModel {
            name: "app/v".to_owned(),
            model: "far".to_owned(),
            versions: vec![String::new()],
            inputs: vec![RemoteTensor::new(0, &card("x"), None)],
            outputs: RemoteOutputs::new(
                Task::Embed,
                vec![RemoteTensor::new(0, &card("embedding"), None)],
            ),
        }]),
        stages: StageRanges::IfOffered,
    }
}

fn watched(server: &FakeServer) -> (RemoteExecutor, Receiver<Absence>, GiveUp) {
    let mut executor = RemoteExecutor::connect(options(server)).unwrap();
    let (report, absences) = channel();
    let give_up = executor.watch(Box::new(move |absence| {
        let _ = report.send(absence);
    }));
    (executor, absences, give_up.unwrap())
}

fn job() -> Job {
    Job {
        batch: BatchId(1),
        app: AppId(0),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        rows: vec![JobRow {
            request: RequestId(1),
            input: Some(std::iter::once(InputTensor::F32(vec![1.0, 2.0].into())).collect()),
        }],
        soon: Soon::new(),
        until: None,
    }
}

fn assert_answers<E: Executor + ?Sized>(executor: &mut E) {
    let output = executor.run(&mut job()).result.unwrap();
    let BatchOutput::Answered { probabilities, .. } = output else {
        panic!("{output:?}");
    };
    assert_eq!(probabilities, [3.0, 4.0]);
}

#[test]
fn a_connection_that_the_server_closes_costs_no_batch() {
    let server = FakeServer::start();
    let (mut executor, absences, _) = watched(&server);
    assert_answers(&mut executor);
    for closed in 1..=3 {
        server.close_connections();
        server.wait_until(PATIENCE, |server| server.connections() > closed);
        assert_answers(&mut executor);
    }
    assert_eq!(server.connections(), 4);
    assert_eq!(absences.try_recv().ok(), None);
}

#[test]
fn a_server_that_hangs_while_idle_is_lost_before_a_batch() {
    let server = FakeServer::start();
    let (_executor, absences, _) = watched(&server);
    server.hang();
    let began = Instant::now();
    let absence = absences.recv_timeout(PATIENCE).unwrap();
    println!("a hanging server: {absence:?} after {:?}", began.elapsed());
    assert!(matches!(absence, Absence::Lost(_)), "{absence:?}");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_server_that_leaves_ends_its_batch() {
    for closes in [false, true] {
        let server = FakeServer::start();
        let (mut executor, absences, _) = watched(&server);
        server.hold();
        let running = std::thread::spawn(move || {
            assert_answers(&mut executor);
            executor
        });
        server.wait_until(PATIENCE, |server| server.batches() == 1);
        match closes {
            false => server.not_ready(),
            true => server.leave(),
        }
        let absence = absences.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(absence, Absence::Leaving(_)), "{absence:?}");
        server.release();
        running.join().unwrap();
    }
}

#[test]
fn a_server_that_ends_is_lost() {
    let server = FakeServer::start();
    let (_executor, absences, _) = watched(&server);
    let at = server.at;
    drop(server);
    let absence = absences.recv_timeout(PATIENCE).unwrap();
    let Absence::Lost(reason) = &absence else {
        panic!("{absence:?}");
    };
    assert!(reason.contains(&at.to_string()), "{reason}");
}

#[test]
fn a_server_without_readiness_is_asked_for_its_health() {
    let server = FakeServer::start();
    server.only_health();
    let (mut executor, absences, _) = watched(&server);
    assert_answers(&mut executor);
    server.not_ready();
    let absence = absences.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(absence, Absence::Leaving(_)), "{absence:?}");
    let Err(ConnectError::Away(reason)) = RemoteExecutor::connect(options(&server)) else {
        panic!("it connects");
    };
    assert!(reason.contains("is not ready"), "{reason}");
}

#[test]
fn the_deadline_of_a_batch_goes_along_and_costs_no_worker() {
    let server = FakeServer::start();
    let (mut executor, absences, _) = watched(&server);
    assert_answers(&mut executor);
    assert_eq!(server.timeout().as_deref(), Some("20000000u"));
    server.hold();
    let until = Some(Instant::now() + Duration::from_millis(200));
    let error = executor
        .run(&mut Job { until, ..job() })
        .result
        .unwrap_err();
    assert!(!error.is_fatal() && error.is_repeatable(), "{error}");
    assert!(error.to_string().contains("deadline"), "{error}");
    let header = server.timeout().unwrap();
    let us: u64 = header.strip_suffix('u').unwrap().parse().unwrap();
    assert!((1..=200_000).contains(&us), "{header}");
    // The server sees that the call is cancelled.
    server.wait_until(PATIENCE, |server| server.cancelled() == 1);
    server.release();
    assert_answers(&mut executor);
    assert_eq!(absences.try_recv().ok(), None);
}

#[test]
fn a_batch_that_is_given_up_is_cancelled() {
    let server = FakeServer::start();
    let (mut executor, _absences, give_up) = watched(&server);
    server.hold();
    let running = std::thread::spawn(move || executor.run(&mut job()).result.unwrap_err());
    server.wait_until(PATIENCE, |server| server.batches() == 1);
    let began = Instant::now();
    give_up();
    let error = running.join().unwrap();
    assert!(matches!(error, ExecuteError::Away { .. }), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    server.wait_until(PATIENCE, |server| server.cancelled() == 1);
}

#[test]
fn the_wait_behind_other_batches_is_no_time_of_a_batch() {
    let server = FakeServer::start();
    let timeout = Duration::from_secs(2);
    let options = RemoteOptions {
        timeout,
        ..options(&server)
    };
    let mut first = RemoteExecutor::connect(options).unwrap();
    let mut second = first.another().unwrap();
    server.hold();
    let first = std::thread::spawn(move || {
        assert_answers(&mut first);
        first
    });
    server.wait_until(PATIENCE, |server| server.batches() == 1);
    let second = std::thread::spawn(move || {
        assert_answers(&mut *second);
        second
    });
    server.wait_until(PATIENCE, |server| server.batches() == 2);
    let header = server.timeout().unwrap();
    let us: u64 = header.strip_suffix('u').unwrap().parse().unwrap();
    assert!((2_000_001..=4_000_000).contains(&us), "{header}");
    // Together longer than the limit of one.
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(1_200));
        server.release_one();
    }
    let mut first = first.join().unwrap();
    second.join().unwrap();
    let began = Instant::now();
    let error = first.run(&mut job()).result.unwrap_err();
    assert!(matches!(error, ExecuteError::Away { .. }), "{error}");
    assert!(error.to_string().contains("no answer within 2000 ms"));
    assert!(
        (timeout..2 * timeout).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}
