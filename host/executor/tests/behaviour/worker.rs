//! Worker threads: isolation of panics, bounds, loss, and the events that report them.

mod ahead;
mod claims;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::Duration;

use switchyard_core::ids::{BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    Absence, BatchOutput, CacheError, CandleExecutor, Device, ExecuteError, Executor, Finished,
    GiveUp, InputTensor, Job, JobOutcome, Preloaded, Refused, ReportAbsence, Residency, Weights,
    Worker, WorkerEvent, WorkerOptions,
};

use crate::toy::{POISON, ToySource, WIDTH, job};

const PATIENCE: Duration = Duration::from_secs(20);

fn options(commands_max: usize) -> WorkerOptions {
    WorkerOptions {
        id: WorkerId(3),
        name: "w3".to_owned(),
        threads: 2,
        cores: Vec::new(),
        commands_max,
        outstanding: 1,
    }
}

fn spawn(
    executor: impl Executor + 'static,
    commands_max: usize,
) -> (Worker, Receiver<WorkerEvent>) {
    let (report, events) = channel();
    let worker = Worker::spawn(options(commands_max), Box::new(executor), move |event| {
        // The test may have ended already.
        let _ = report.send(event);
    });
    (worker.unwrap(), events)
}

fn finished(events: &Receiver<WorkerEvent>) -> Finished {
    match events.recv_timeout(PATIENCE).unwrap() {
        WorkerEvent::Finished(finished) => finished,
        other => panic!("{other:?}"),
    }
}

fn candle() -> CandleExecutor {
    CandleExecutor::new(Weights::new(ToySource::new(&[10])), Device::Cpu, 100)
}

/// Waits at a barrier twice per batch, so that a test can act while it runs.
struct Gate(Arc<Barrier>);

impl Executor for Gate {
    fn run(&mut self, _: &mut Job) -> JobOutcome {
        self.0.wait();
        self.0.wait();
        JobOutcome {
            result: Ok(BatchOutput::Parked),
            compute: Micros(1),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, _: RequestId) {}

    fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
        panic!("gates hold no models");
    }

    fn residency(&self) -> Residency {
        Residency::default()
    }
}

#[test]
fn a_batch_is_answered_on_the_workers_thread() {
    let (worker, events) = spawn(candle(), 4);
    worker.run(job(&[7, 8], 0, 3, Some(1))).unwrap();
    let finished = finished(&events);
    assert_eq!((finished.worker, finished.batch), (WorkerId(3), BatchId(7)));
    assert_eq!(finished.result.unwrap().rows().count(), 2);
    assert_eq!(finished.residency.resident, [VariantId(0)]);
    assert_eq!(finished.residency.free_bytes, 90);
}

/// Reports the cores that its batches run on.
#[cfg(target_os = "linux")]
struct CoresProbe(std::sync::mpsc::Sender<Vec<Vec<usize>>>);

#[cfg(target_os = "linux")]
impl Executor for CoresProbe {
    fn run(&mut self, _: &mut Job) -> JobOutcome {
        let each = rayon::broadcast(|_| switchyard_threads::cores().unwrap());
        self.0.send(each).unwrap();
        JobOutcome {
            result: Ok(BatchOutput::Parked),
            compute: Micros(1),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, _: RequestId) {}

    fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
        panic!("no models here");
    }

    fn residency(&self) -> Residency {
        Residency::default()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn batches_run_on_the_workers_cores() {
    let all = switchyard_threads::cores().unwrap();
    let (first, last) = (all[0], *all.last().unwrap());
    for cores in [vec![], vec![last], vec![last, first]] {
        let (report, reports) = channel();
        let options = WorkerOptions {
            threads: cores.len().max(1),
            cores: cores.clone(),
            ..options(4)
        };
        let worker = Worker::spawn(options, Box::new(CoresProbe(report)), |_| {}).unwrap();
        worker.run(job(&[1], 0, 1, None)).unwrap();
        let each = reports.recv_timeout(PATIENCE).unwrap();
        let one_each: Vec<Vec<usize>> = cores.iter().map(|core| vec![*core]).collect();
        assert_eq!(
            each,
            if cores.is_empty() {
                vec![all.clone()]
            } else {
                one_each
            }
        );
        // The thread that spawned the worker is not pinned.
        assert_eq!(switchyard_threads::cores().unwrap(), all);
    }
    // No machine has these cores.
    for core in [1023, 1024, usize::MAX] {
        let nowhere = WorkerOptions {
            cores: vec![core; 2],
            ..options(4)
        };
        assert!(Worker::spawn(nowhere, Box::new(candle()), |_| {}).is_err());
    }
}

#[test]
fn a_panic_fails_its_batch_and_nothing_else() {
    let (worker, events) = spawn(candle(), 4);
    worker.run(job(&[1, 2], 0, 1, None)).unwrap();
    let mut poisoned = job(&[5], 0, 3, Some(1));
    poisoned.rows[0].input = Some([InputTensor::F32(vec![POISON; WIDTH].into())].into());
    worker.run(poisoned).unwrap();
    worker.run(job(&[1, 2], 1, 3, Some(1))).unwrap();
    finished(&events).result.unwrap();
    let error = finished(&events).result.unwrap_err();
    assert!(matches!(error, ExecuteError::Panicked { .. }));
    assert_eq!(
        error.to_string(),
        "the batch panicked: toy poisoned in stage 0"
    );
    // Requests that were parked before the panic continue after it.
    finished(&events).result.unwrap();
}

#[test]
fn a_panic_between_stages_frees_parked_requests() {
    /// Panics in the second stage.
    struct LatePanic(CandleExecutor);
    impl Executor for LatePanic {
        fn run(&mut self, job: &mut Job) -> JobOutcome {
            assert!(job.from_stage == 0, "late");
            self.0.run(job)
        }
        fn release(&mut self, request: RequestId) {
            self.0.release(request);
        }
        fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
            self.0.preload(variant)
        }
        fn residency(&self) -> Residency {
            self.0.residency()
        }
    }
    let (worker, events) = spawn(LatePanic(candle()), 4);
    worker.run(job(&[1, 2], 0, 1, None)).unwrap();
    assert!(finished(&events).residency.free_bytes < 90);
    worker.run(job(&[1, 2], 1, 2, None)).unwrap();
    let failed = finished(&events);
    assert_eq!(
        failed.result.unwrap_err().to_string(),
        "the batch panicked: late"
    );
    assert_eq!(failed.residency.free_bytes, 90);
}

#[test]
fn a_release_follows_the_batches_before_it() {
    let (worker, events) = spawn(candle(), 4);
    worker.run(job(&[1], 0, 1, None)).unwrap();
    worker.release(RequestId(1)).unwrap();
    worker.run(job(&[2], 0, 3, Some(1))).unwrap();
    assert!(finished(&events).residency.free_bytes < 90);
    assert_eq!(finished(&events).residency.free_bytes, 90);
}

#[test]
fn a_preload_is_reported() {
    let (worker, events) = spawn(candle(), 4);
    worker.preload(VariantId(0)).unwrap();
    worker.preload(VariantId(6)).unwrap();
    let preloaded = |event| match event {
        WorkerEvent::Preloaded(preloaded) => preloaded,
        other => panic!("{other:?}"),
    };
    let first = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert_eq!(first.variant, VariantId(0));
    assert_eq!(first.residency.resident, [VariantId(0)]);
    first.result.unwrap();
    let second = preloaded(events.recv_timeout(PATIENCE).unwrap());
    assert_eq!(
        second.result.unwrap_err().to_string(),
        "toy/v6: no such toy"
    );
}

#[test]
fn a_panicking_preload_is_reported() {
    let (worker, events) = spawn(Gate(Arc::new(Barrier::new(1))), 4);
    worker.preload(VariantId(0)).unwrap();
    let WorkerEvent::Preloaded(preloaded) = events.recv_timeout(PATIENCE).unwrap() else {
        panic!("not a preload");
    };
    assert_eq!(
        preloaded.result.unwrap_err().to_string(),
        "variant 0: the load panicked: gates hold no models"
    );
}

#[test]
fn a_full_queue_gives_the_job_back() {
    let gate = Arc::new(Barrier::new(2));
    let (worker, events) = spawn(Gate(Arc::clone(&gate)), 1);
    worker.run(job(&[1], 0, 1, None)).unwrap();
    gate.wait(); // It runs: the queue is empty.
    worker.run(job(&[2], 0, 1, None)).unwrap();
    let Err(Refused::Full(back)) = worker.run(job(&[3], 0, 1, None)) else {
        panic!("taken beyond its bound");
    };
    assert_eq!(back.rows[0].request, RequestId(3));
    assert!(back.rows[0].input.is_some(), "untouched");
    assert!(matches!(
        worker.release(RequestId(9)),
        Err(Refused::Full(RequestId(9)))
    ));
    for _ in 0..3 {
        gate.wait();
    }
    assert_eq!(finished(&events).batch, BatchId(1));
    assert_eq!(finished(&events).batch, BatchId(2));
}

#[test]
fn dropping_a_worker_ends_the_running_batch_and_fails_the_waiting_one() {
    let gate = Arc::new(Barrier::new(2));
    let (worker, events) = spawn(Gate(Arc::clone(&gate)), 4);
    worker.run(job(&[1], 0, 1, None)).unwrap();
    worker.run(job(&[2], 0, 1, None)).unwrap();
    gate.wait();
    let dropping = std::thread::spawn(move || drop(worker));
    // Without the stop flag the second batch would wait at the gate forever.
    std::thread::sleep(Duration::from_millis(50));
    gate.wait();
    dropping.join().unwrap();
    finished(&events).result.unwrap();
    assert!(matches!(
        finished(&events).result,
        Err(ExecuteError::Stopped)
    ));
    assert!(events.recv().is_err(), "the thread is gone");
}

fn preloaded(event: WorkerEvent) -> Preloaded {
    match event {
        WorkerEvent::Preloaded(preloaded) => preloaded,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unload_follows_the_batches_before_it_and_is_reported() {
    let (worker, events) = spawn(candle(), 8);
    worker.run(job(&[1], 0, 3, Some(1))).unwrap();
    worker.unload(VariantId(0)).unwrap();
    assert_eq!(finished(&events).residency.resident, [VariantId(0)]);
    match events.recv_timeout(PATIENCE).unwrap() {
        WorkerEvent::Unloaded(unloaded) => {
            assert_eq!(unloaded.variant, VariantId(0));
            assert_eq!(unloaded.residency.resident, []);
        }
        other => panic!("{other:?}"),
    }
}

/// Panics outside of a batch.
struct Crashing(CandleExecutor);

impl Executor for Crashing {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        self.0.run(job)
    }
    fn release(&mut self, _: RequestId) {
        panic!("as a bug would");
    }
    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        self.0.preload(variant)
    }
    fn residency(&self) -> Residency {
        self.0.residency()
    }
}

#[test]
fn a_worker_thread_that_panics_reports_its_loss() {
    let (worker, events) = spawn(Crashing(candle()), 4);
    worker.release(RequestId(1)).unwrap();
    let WorkerEvent::Down(down) = events.recv_timeout(PATIENCE).unwrap() else {
        panic!("not lost");
    };
    assert_eq!(down.worker, WorkerId(3));
    assert_eq!(down.reason, "its thread panicked: as a bug would");
}

#[test]
fn a_lost_worker_answers_every_command_that_has_a_reply() {
    struct Lost;
    impl Executor for Lost {
        fn run(&mut self, _: &mut Job) -> JobOutcome {
            let reason = "gone".to_owned();
            JobOutcome {
                result: Err(ExecuteError::DeviceLost { reason }),
                compute: Micros(1),
                load: Micros::ZERO,
            }
        }
        fn release(&mut self, _: RequestId) {}
        fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
            panic!("it is lost");
        }
        fn residency(&self) -> Residency {
            Residency::default()
        }
    }
    let (worker, events) = spawn(Lost, 8);
    worker.run(job(&[1], 0, 1, None)).unwrap();
    worker.unload(VariantId(0)).unwrap();
    worker.preload(VariantId(0)).unwrap();
    worker.run(job(&[2], 0, 1, None)).unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(match events.recv_timeout(PATIENCE).unwrap() {
            WorkerEvent::Finished(finished) => finished.result.unwrap_err().to_string(),
            WorkerEvent::Down(down) | WorkerEvent::Leaving(down) => down.reason,
            WorkerEvent::Unloaded(_) => "unloaded".to_owned(),
            WorkerEvent::Preloaded(preloaded) => preloaded.result.unwrap_err().to_string(),
        });
    }
    assert_eq!(
        seen,
        [
            "device lost: gone",
            "device lost: gone",
            "unloaded",
            "variant 0: the worker stopped before the load began",
            "the worker stopped before the batch began",
        ]
    );
}

#[test]
fn replacements_of_a_busy_worker_leave_room_for_batches() {
    let gate = Arc::new(Barrier::new(2));
    let (worker, events) = spawn(Gate(Arc::clone(&gate)), 2);
    worker.run(job(&[1], 0, 1, None)).unwrap();
    gate.wait(); // It runs: the queue is empty.
    let weights = Weights::new(ToySource::new(&[10]));
    let model = weights.load(VariantId(0), &Device::Cpu).unwrap();
    for _ in 0..10 {
        worker.replace(VariantId(0), Arc::clone(&model)).unwrap();
    }
    worker.run(job(&[2], 0, 1, None)).unwrap();
    for _ in 0..3 {
        gate.wait();
    }
    assert_eq!(finished(&events).batch, BatchId(1));
    assert_eq!(finished(&events).batch, BatchId(2));
}

/// Runs until it is given up; its device leaves when it is watched.
struct Distant {
    began: Arc<Barrier>,
    given_up: Arc<(Mutex<bool>, Condvar)>,
}

impl Executor for Distant {
    fn run(&mut self, _: &mut Job) -> JobOutcome {
        self.began.wait();
        let (given_up, changed) = &*self.given_up;
        let waiting = given_up.lock().unwrap();
        let ended = changed.wait_timeout_while(waiting, PATIENCE, |given_up| !*given_up);
        assert!(!ended.unwrap().1.timed_out(), "it is not given up");
        let reason = "given up".to_owned();
        JobOutcome {
            result: Err(ExecuteError::Away { reason }),
            compute: Micros(1),
            load: Micros::ZERO,
        }
    }
    fn release(&mut self, _: RequestId) {}
    fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
        Ok(Micros::ZERO)
    }
    fn residency(&self) -> Residency {
        Residency::default()
    }
    fn watch(&mut self, report: ReportAbsence) -> Option<GiveUp> {
        report(Absence::Leaving("drains".to_owned()));
        let state = Arc::clone(&self.given_up);
        Some(Box::new(move || {
            *state.0.lock().unwrap() = true;
            state.1.notify_all();
        }))
    }
}

#[test]
fn the_absence_of_a_device_is_reported_and_a_dropped_worker_gives_its_batch_up() {
    let began = Arc::new(Barrier::new(2));
    let distant = Distant {
        began: Arc::clone(&began),
        given_up: Arc::default(),
    };
    let (worker, events) = spawn(distant, 4);
    let WorkerEvent::Leaving(left) = events.recv_timeout(PATIENCE).unwrap() else {
        panic!("it does not leave");
    };
    assert_eq!((left.worker, &*left.reason), (WorkerId(3), "drains"));
    worker.run(job(&[1], 0, 1, None)).unwrap();
    began.wait();
    drop(worker);
    assert_eq!(
        finished(&events).result.unwrap_err().to_string(),
        "given up"
    );
}
