//! A GPU that runs out of memory, and one that is lost, without a GPU: models that fail with CUDA's
//! messages, and memory that is counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use candle_core::{Device, Error, Result, Tensor};
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_executor::memory::{DeviceMemory, HEADROOM_BYTES, MemoryGauge};
use switchyard_executor::{
    BatchOutput, CandleExecutor, DeviceFault, ExecuteError, Executor, InputSpec, InputType,
    LoadError, LoadedModel, ModelCache, ModelSource, Weights, Worker, WorkerEvent, WorkerOptions,
};
use switchyard_models::StagedModel;

use crate::toy::{CLASSES, WIDTH, job, job_of};

/// In the words of cudarc, which candle passes on.
const FULL: &str = "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")";
const GONE: &str = "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")";

/// Bytes of each model.
const MODEL: u64 = 40;

/// The memory of a GPU that does not exist, and its failures.
struct ToyGpu {
    bytes: u64,
    used: AtomicU64,
    /// Bytes that a stage takes while it runs.
    workspace: AtomicU64,
    /// Bytes that a load takes beyond the expected ones.
    surplus: AtomicU64,
    /// The message that every stage fails with.
    broken: Mutex<Option<&'static str>>,
    stages: AtomicUsize,
}

/// Bytes of the GPU, until this is dropped.
struct TakenBytes(Arc<ToyGpu>, u64);

/// Each stage adds 1.
struct GpuModel {
    gpu: Arc<ToyGpu>,
    _weights: TakenBytes,
}

/// Any number of models on a GPU.
struct GpuSource(Arc<ToyGpu>);

impl ToyGpu {
    fn of(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            used: AtomicU64::new(0),
            workspace: AtomicU64::new(0),
            surplus: AtomicU64::new(0),
            broken: Mutex::new(None),
            stages: AtomicUsize::new(0),
        })
    }

    fn take(self: &Arc<Self>, bytes: u64) -> std::result::Result<TakenBytes, &'static str> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let taken = TakenBytes(Arc::clone(self), bytes);
        // Too much is dropped again.
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

impl Drop for TakenBytes {
    fn drop(&mut self) {
        self.0.used.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl StagedModel for GpuModel {
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
        self.gpu.stages.fetch_add(1, Ordering::Relaxed);
        if let Some(message) = *self.gpu.broken.lock().unwrap() {
            return Err(Error::Cuda(message.into()));
        }
        let workspace = self.gpu.workspace.load(Ordering::Relaxed);
        let _workspace = self
            .gpu
            .take(workspace)
            .map_err(|message| Error::Cuda(message.into()))?;
        x + 1.0
    }

    fn logits(&self, _exit: usize, x: &Tensor) -> Result<Tensor> {
        x.narrow(1, 0, CLASSES)
    }
}

impl ModelSource for GpuSource {
    fn name(&self, variant: VariantId) -> String {
        format!("gpu/v{}", variant.0)
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
        let bytes = MODEL + self.0.surplus.load(Ordering::Relaxed);
        let weights = self
            .0
            .take(bytes)
            .map_err(|message| LoadError::new(&name, message))?;
        Ok(LoadedModel {
            name,
            model: Arc::new(GpuModel {
                gpu: Arc::clone(&self.0),
                _weights: weights,
            }),
            inputs: Arc::new([InputSpec {
                name: "x".to_owned(),
                datatype: switchyard_models::card::Datatype::Fp32,
                input_type: InputType::F32,
                row_shape: vec![WIDTH],
                open: Vec::new(),
            }]),
            reads: vec![0],
            bytes,
        })
    }
}

/// The driver's view of the GPU: the memory that is counted here, and the headroom.
struct ToyDriver(Arc<ToyGpu>);

impl MemoryGauge for ToyDriver {
    fn read(&self) -> Option<DeviceMemory> {
        Some(DeviceMemory {
            total: self.0.bytes + HEADROOM_BYTES,
            free: self.0.free() + HEADROOM_BYTES,
            idle: 0,
        })
    }
}

/// A cache with a larger budget than the GPU's memory.
fn cache(gpu: &Arc<ToyGpu>) -> ModelCache {
    let weights = Weights::new(Arc::new(GpuSource(Arc::clone(gpu))));
    ModelCache::new(weights, Device::Cpu, 1_000)
}

fn executor(gpu: &Arc<ToyGpu>) -> CandleExecutor {
    CandleExecutor::over(cache(gpu)).with_retries()
}

fn probabilities(executor: &mut CandleExecutor, variant: u32) -> Vec<f32> {
    match executor.run(&mut job_of(variant, 1)).result.unwrap() {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        other => panic!("not answered: {other:?}"),
    }
}

#[test]
fn a_batch_that_does_not_fit_runs_after_idle_models_are_evicted() {
    let gpu = ToyGpu::of(100);
    let mut executor = executor(&gpu);
    let first = probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // Two models are 80 bytes: a batch of 30 does not fit next to both.
    gpu.workspace.store(30, Ordering::Relaxed);
    assert_eq!(probabilities(&mut executor, 0), first);
    let residency = executor.residency();
    assert_eq!(residency.resident, [VariantId(0)]);
    assert_eq!(residency.counts.evictions, 1);
    assert_eq!(gpu.free(), 60);
}

#[test]
fn a_batch_that_never_fits_fails_once_with_the_reason() {
    let gpu = ToyGpu::of(100);
    let mut executor = executor(&gpu);
    probabilities(&mut executor, 0);
    gpu.workspace.store(90, Ordering::Relaxed);
    let before = gpu.stages.load(Ordering::Relaxed);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    let tried = gpu.stages.load(Ordering::Relaxed) - before;
    assert_eq!(tried, 2, "the batch and one more attempt");
    assert!(!error.is_fatal());
    assert_eq!(
        error.to_string(),
        format!("gpu/v0: stages 0 to 3: the device is out of memory: {FULL}")
    );
    gpu.workspace.store(0, Ordering::Relaxed);
    probabilities(&mut executor, 0);
}

#[test]
fn a_load_that_does_not_fit_is_tried_again_at_once_if_models_were_evicted() {
    let gpu = ToyGpu::of(100);
    let mut executor = executor(&gpu);
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // The budget has room for a third one, the GPU has not.
    probabilities(&mut executor, 2);
    assert_eq!(executor.residency().resident, [VariantId(2)]);

    let none = ToyGpu::of(10);
    let mut executor = self::executor(&none);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    assert_eq!(error.fault(), Some(DeviceFault::OutOfMemory));
    assert_eq!(error.to_string(), format!("gpu/v0: {FULL}"));
}

/// A worker on the CPU does not try again: CPU memory does not run out with such an error.
#[test]
fn without_retries_a_batch_that_does_not_fit_fails_at_once() {
    let gpu = ToyGpu::of(100);
    let mut executor = CandleExecutor::over(cache(&gpu));
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    gpu.workspace.store(30, Ordering::Relaxed);
    let error = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    assert!(matches!(error, ExecuteError::OutOfMemory { .. }), "{error}");
    assert_eq!(executor.residency().resident.len(), 2);
}

#[test]
fn parked_requests_are_tried_again_too() {
    let gpu = ToyGpu::of(100);
    let mut executor = executor(&gpu);
    let whole = probabilities(&mut executor, 0);
    let parked = executor.run(&mut job(&[1], 0, 1, None)).result;
    assert_eq!(parked.unwrap(), BatchOutput::Parked);
    // Another request: a request that has ended is not parked any more.
    executor.run(&mut job_of(1, 2)).result.unwrap();
    gpu.workspace.store(30, Ordering::Relaxed);
    let rest = executor.run(&mut job(&[1], 1, 3, Some(1))).result.unwrap();
    assert_eq!(rest.rows().next().unwrap(), whole);
    // Its activations are released, as after any batch.
    executor.release(RequestId(1));
    assert_eq!(executor.residency().free_bytes, 1_000 - MODEL);
}

#[test]
fn a_lost_gpu_takes_its_worker_down() {
    let gpu = ToyGpu::of(100);
    let (report, events) = mpsc::channel();
    let options = WorkerOptions {
        id: WorkerId(3),
        name: "gpu".to_owned(),
        threads: 1,
        cores: Vec::new(),
        commands_max: 8,
        outstanding: 1,
    };
    let worker = Worker::spawn(options, Box::new(executor(&gpu)), move |event| {
        let _ = report.send(event);
    });
    let worker = worker.unwrap();
    let finished = || loop {
        if let WorkerEvent::Finished(finished) = events.recv().unwrap() {
            return finished.result;
        }
    };
    worker.run(job_of(0, 1)).unwrap();
    finished().unwrap();
    *gpu.broken.lock().unwrap() = Some(GONE);
    worker.run(job_of(0, 2)).unwrap();
    let error = finished().unwrap_err();
    assert!(error.is_fatal());
    let message = format!("device lost: gpu/v0: stages 0 to 3: {GONE}");
    assert_eq!(error.to_string(), message);
    let WorkerEvent::Down(down) = events.recv().unwrap() else {
        panic!("the worker continues");
    };
    assert_eq!((down.worker, down.reason), (WorkerId(3), message));
    // A batch that is sent now fails; the process lives.
    worker.run(job_of(0, 3)).unwrap();
    assert!(matches!(finished(), Err(ExecuteError::Stopped)));
}

#[test]
fn memory_that_others_took_is_not_loaded_into() {
    let gpu = ToyGpu::of(100);
    let cache = cache(&gpu).with_gauge(Box::new(ToyDriver(Arc::clone(&gpu))));
    let mut executor = CandleExecutor::over(cache).with_retries();
    probabilities(&mut executor, 0);
    probabilities(&mut executor, 1);
    // By its own books the worker has room for 25 models. It never asks the GPU for memory that it
    // lacks: the least recently used model is evicted first.
    probabilities(&mut executor, 2);
    let residency = executor.residency();
    assert_eq!(residency.resident, [VariantId(1), VariantId(2)]);
    assert_eq!(residency.counts.load_errors, 0);
    let _neighbour = gpu.take(20).map_err(str::to_owned).unwrap();
    probabilities(&mut executor, 0);
    assert_eq!(
        executor.residency().resident.len(),
        2,
        "20 bytes more were not needed"
    );
}

/// The GPU's free memory is without the model's: its bytes count once.
#[test]
fn a_model_that_takes_more_than_expected_is_counted_once() {
    let gpu = ToyGpu::of(100);
    let cache = cache(&gpu).with_gauge(Box::new(ToyDriver(Arc::clone(&gpu))));
    let mut executor = CandleExecutor::over(cache).with_retries();
    probabilities(&mut executor, 0);
    gpu.surplus.store(20, Ordering::Relaxed);
    probabilities(&mut executor, 1);
    let residency = executor.residency();
    assert_eq!(residency.resident, [VariantId(0), VariantId(1)]);
    assert_eq!(residency.free_bytes, 1_000 - 100);
}
