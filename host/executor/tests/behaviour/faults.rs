//! A card that runs out of memory and one that is lost, without a card: models that say what CUDA
//! says, and memory that is counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use candle_core::{Device, Error, Result, Tensor};
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_executor::memory::{DeviceMemory, HEADROOM_BYTES, MemoryGauge};
use switchyard_executor::{
    BatchOutput, CandleExecutor, ExecuteError, Executor, Fault, InputSpec, InputType, LoadError,
    LoadedModel, ModelCache, ModelSource, Weights, Worker, WorkerEvent, WorkerOptions,
};
use switchyard_models::StagedModel;

use crate::toy::{CLASSES, WIDTH, job, job_of};

/// As cudarc says it, and candle passes it on.
const FULL: &str = "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")";
const GONE: &str = "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")";

/// Bytes of each model.
const MODEL: u64 = 40;

/// A card's memory, and what it was asked.
struct Card {
    bytes: u64,
    used: AtomicU64,
    /// What a stage takes while it runs.
    workspace: AtomicU64,
    /// What every stage fails with from now on.
    broken: Mutex<Option<&'static str>>,
    stages: AtomicUsize,
}

/// Bytes of a card, until they are dropped.
struct Taken(Arc<Card>, u64);

/// One stage after another adds 1.
struct OnCard {
    card: Arc<Card>,
    _weights: Taken,
}

/// Models on a card, as many as somebody asks for.
struct CardSource(Arc<Card>);

impl Card {
    fn of(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            used: AtomicU64::new(0),
            workspace: AtomicU64::new(0),
            broken: Mutex::new(None),
            stages: AtomicUsize::new(0),
        })
    }

    fn take(self: &Arc<Self>, bytes: u64) -> std::result::Result<Taken, &'static str> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let taken = Taken(Arc::clone(self), bytes);
        // Dropped again, where it is too much.
        if used > self.bytes {
            Err(FULL)
        } else {
            Ok(taken)
        }
    }

    fn free(&self) -> u64 {
        self.bytes - self.used.load(Ordering::Relaxed)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.used.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl StagedModel for OnCard {
    fn stages(&self) -> usize {
        3
    }

    fn exits(&self) -> &[usize] {
        &[1, 3]
    }

    fn classes(&self) -> usize {
        CLASSES
    }

    fn run_stage(&self, _stage: usize, x: &Tensor) -> Result<Tensor> {
        self.card.stages.fetch_add(1, Ordering::Relaxed);
        if let Some(said) = *self.card.broken.lock().unwrap() {
            return Err(Error::Cuda(said.into()));
        }
        let workspace = self.card.workspace.load(Ordering::Relaxed);
        let _workspace = self
            .card
            .take(workspace)
            .map_err(|said| Error::Cuda(said.into()))?;
        x + 1.0
    }

    fn logits(&self, _exit: usize, x: &Tensor) -> Result<Tensor> {
        x.narrow(1, 0, CLASSES)
    }
}

impl ModelSource for CardSource {
    fn name(&self, variant: VariantId) -> String {
        format!("card/v{}", variant.0)
    }

    fn memory_bytes(&self, _variant: VariantId) -> std::result::Result<u64, LoadError> {
        Ok(MODEL)
    }

    fn load(
        &self,
        variant: VariantId,
        _device: &Device,
    ) -> std::result::Result<LoadedModel, LoadError> {
        let name = self.name(variant);
        let weights = self
            .0
            .take(MODEL)
            .map_err(|said| LoadError::new(&name, said))?;
        Ok(LoadedModel {
            name,
            model: Arc::new(OnCard {
                card: Arc::clone(&self.0),
                _weights: weights,
            }),
            inputs: Arc::new([InputSpec {
                name: "x".to_owned(),
                input_type: InputType::F32,
                row_shape: vec![WIDTH],
            }]),
            reads: vec![0],
            bytes: MODEL,
        })
    }
}

/// What the driver would say of a card: its headroom beside what is counted here.
struct Driver(Arc<Card>);

impl MemoryGauge for Driver {
    fn read(&self) -> Option<DeviceMemory> {
        Some(DeviceMemory {
            total: self.0.bytes + HEADROOM_BYTES,
            free: self.0.free() + HEADROOM_BYTES,
            idle: 0,
        })
    }
}

/// A worker of a budget that the card does not have.
fn cache(card: &Arc<Card>) -> ModelCache {
    let weights = Weights::new(Arc::new(CardSource(Arc::clone(card))));
    ModelCache::new(weights, Device::Cpu, 1_000)
}

fn executor(card: &Arc<Card>) -> CandleExecutor {
    CandleExecutor::over(cache(card)).with_retries()
}

fn probabilities(executor: &mut CandleExecutor, variant: u32) -> Vec<f32> {
    match executor.run(&mut job_of(variant, 1)).result.unwrap() {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        BatchOutput::Parked => panic!("not answered"),
    }
}

#[test]
fn a_batch_that_does_not_fit_runs_without_what_is_not_in_use() {
    let card = Card::of(100);
    let mut executor = executor(&card);
    let first = probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // Two models are 80 bytes: a batch of 30 does not fit beside both.
    card.workspace.store(30, Ordering::Relaxed);
    assert_eq!(probabilities(&mut executor, 0), first);
    let residency = executor.residency();
    assert_eq!(residency.resident, [VariantId(0)]);
    assert_eq!(residency.counts.evictions, 1);
    assert_eq!(card.free(), 60);
}

#[test]
fn what_does_not_fit_even_then_fails_once_and_with_the_reason() {
    let card = Card::of(100);
    let mut executor = executor(&card);
    probabilities(&mut executor, 0);
    card.workspace.store(90, Ordering::Relaxed);
    let before = card.stages.load(Ordering::Relaxed);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    let tried = card.stages.load(Ordering::Relaxed) - before;
    assert_eq!(tried, 2, "the batch and one more attempt");
    assert!(!error.is_fatal());
    assert_eq!(
        error.to_string(),
        format!("card/v0: stage 0: the device is out of memory: {FULL}")
    );
    card.workspace.store(0, Ordering::Relaxed);
    probabilities(&mut executor, 0);
}

#[test]
fn a_load_that_does_not_fit_is_tried_again_at_once_where_it_may_help() {
    let card = Card::of(100);
    let mut executor = executor(&card);
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // The budget has room for a third, the card has not.
    probabilities(&mut executor, 2);
    assert_eq!(executor.residency().resident, [VariantId(2)]);

    let none = Card::of(10);
    let mut executor = self::executor(&none);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    assert_eq!(error.fault(), Some(Fault::OutOfMemory));
    assert_eq!(error.to_string(), format!("card/v0: {FULL}"));
}

/// A worker of the processor does not try again: its memory is not the kind that runs out so.
#[test]
fn what_does_not_fit_fails_at_once_where_nobody_asked_for_more() {
    let card = Card::of(100);
    let mut executor = CandleExecutor::over(cache(&card));
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    card.workspace.store(30, Ordering::Relaxed);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    assert!(matches!(error, ExecuteError::OutOfMemory { .. }), "{error}");
    assert_eq!(executor.residency().resident.len(), 2);
}

#[test]
fn parked_requests_are_tried_again_too() {
    let card = Card::of(100);
    let mut executor = executor(&card);
    let whole = probabilities(&mut executor, 0);
    let parked = executor.run(&mut job(&[1], 0, 1, None)).result;
    assert_eq!(parked.unwrap(), BatchOutput::Parked);
    // Another request: one that has ended is not parked any more.
    executor.run(&mut job_of(1, 2)).result.unwrap();
    card.workspace.store(30, Ordering::Relaxed);
    let rest = executor.run(&mut job(&[1], 1, 3, Some(1))).result.unwrap();
    assert_eq!(rest.rows().next().unwrap(), whole);
    // Its activations are gone, as after any batch.
    executor.release(RequestId(1));
    assert_eq!(executor.residency().free_bytes, 1_000 - MODEL);
}

#[test]
fn a_lost_card_takes_its_worker_off() {
    let card = Card::of(100);
    let (tell, told) = mpsc::channel();
    let options = WorkerOptions {
        id: WorkerId(3),
        name: "card".to_owned(),
        threads: 1,
        cores: Vec::new(),
        commands_max: 8,
    };
    let worker = Worker::spawn(options, Box::new(executor(&card)), move |event| {
        let _ = tell.send(event);
    });
    let worker = worker.unwrap();
    let finished = || loop {
        if let WorkerEvent::Finished(finished) = told.recv().unwrap() {
            return finished.result;
        }
    };
    worker.run(job_of(0, 1)).unwrap();
    finished().unwrap();
    *card.broken.lock().unwrap() = Some(GONE);
    worker.run(job_of(0, 2)).unwrap();
    let error = finished().unwrap_err();
    assert!(error.is_fatal());
    let said = format!("device lost: card/v0: stage 0: {GONE}");
    assert_eq!(error.to_string(), said);
    let WorkerEvent::Down(down) = told.recv().unwrap() else {
        panic!("the worker goes on");
    };
    assert_eq!((down.worker, down.reason), (WorkerId(3), said));
    // Who sends still is told so; the process lives.
    worker.run(job_of(0, 3)).unwrap();
    assert!(matches!(finished(), Err(ExecuteError::Stopped)));
}

#[test]
fn what_others_have_taken_of_a_card_is_not_loaded_into() {
    let card = Card::of(100);
    let cache = cache(&card).with_gauge(Box::new(Driver(Arc::clone(&card))));
    let mut executor = CandleExecutor::over(cache).with_retries();
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // By its own books the worker has room for 25 models. The card is never asked for what it has
    // not: the least recently used model goes first.
    probabilities(&mut executor, 2);
    let residency = executor.residency();
    assert_eq!(residency.resident, [VariantId(1), VariantId(2)]);
    assert_eq!(residency.counts.load_errors, 0);
    let _neighbour = card.take(20).map_err(str::to_owned).unwrap();
    probabilities(&mut executor, 0);
    assert_eq!(
        executor.residency().resident.len(),
        2,
        "20 bytes more were not needed"
    );
}
