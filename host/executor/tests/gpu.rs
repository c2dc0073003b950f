//! Tests that need a GPU. Without a GPU each test says so and passes, unless
//! `SWITCHYARD_GPU=required`.
//!
//! `cargo xtask cuda test` runs them. On another machine than the one that built this program,
//! `SWITCHYARD_ZOO` names the folder of models.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used)]

#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::cuda_backend::cudarc::driver::{DriverError, LaunchConfig, sys};
use candle_core::{DType, Device, Result, Tensor};
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::zoo::{ZooEntry, ZooSource};
use switchyard_executor::{
    BatchOutput, CandleExecutor, DeviceFault, DeviceName, Executor, InputSpec, InputTensor,
    InputType, Job, JobRow, LoadError, LoadedModel, ModelSource, OpenedDevice, Weights, device,
};
use switchyard_models::{
    Precision, StagedModel, Zoo, load_variant, load_variant_at, load_variant_standing_in,
};

use crate::text_zoo::{Answers, MAX_TOKENS, write_app};

/// Largest difference of two logits, relative to the largest of them: cuBLAS sums in another order.
const TOLERANCE: f32 = 1e-3;

/// Largest difference of two probabilities in half precision, beyond the loss of the precision itself.
const HALF: f32 = 0.005;

/// Largest difference of two values of small encoders in half precision.
const HALF_TEXT: f32 = 0.02;

const GIB: usize = 1 << 30;

/// One test at a time uses the GPU.
static TURN: Mutex<()> = Mutex::new(());

fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match DeviceName::Cuda(0).open() {
        Ok(device) => Some((device, turn)),
        Err(error) => {
            let required = std::env::var("SWITCHYARD_GPU").is_ok_and(|gpu| gpu == "required");
            assert!(!required, "{error}");
            eprintln!("not tested, there is no GPU: {error}");
            None
        }
    }
}

fn zoo() -> Zoo {
    let shipped = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo");
    let dir = std::env::var_os("SWITCHYARD_ZOO").map_or_else(shipped, PathBuf::from);
    Zoo::open(&dir).unwrap()
}

/// Numbers without pattern in -0.5..0.5.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 37 + seed * 53) % 101) as f32 / 101.0 - 0.5)
        .collect()
}

fn logits(model: &dyn StagedModel, exit: usize, x: &Tensor) -> Vec<f32> {
    let mut x = x.clone();
    for stage in 0..model.exits()[exit] {
        x = model.run_stage(stage, &x).unwrap();
    }
    let logits = model.logits(exit, &x).unwrap();
    let logits = logits.to_dtype(DType::F32).unwrap();
    logits.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn every_shipped_network_answers_as_on_the_cpu() {
    let Some((gpu, _turn)) = gpu() else { return };
    for variant in zoo().apps.iter().flat_map(|app| &app.variants) {
        let name = &variant.card.name;
        let samples = variant.card.architecture.samples();
        let here = Tensor::from_vec(numbers(3 * samples, 1), (3, samples), &Device::Cpu).unwrap();
        let there = here.to_device(&gpu).unwrap();
        let ours = load_variant(&variant.dir, &Device::Cpu).unwrap().model;
        let full = load_variant(&variant.dir, &gpu).unwrap().model;
        let half = load_variant_at(&variant.dir, Precision::F16, &gpu).unwrap();
        let stand_in = load_variant_standing_in(&variant.dir, Precision::F16).unwrap();
        for exit in 0..ours.exits().len() {
            let (want, found) = (logits(&*ours, exit, &here), logits(&*full, exit, &there));
            let scale = want.iter().fold(0f32, |most, x| most.max(x.abs()));
            for (want, found) in want.iter().zip(&found) {
                let apart = (want - found).abs();
                assert!(
                    apart <= TOLERANCE * scale,
                    "{name} {exit}: {found}, not {want}"
                );
            }
            let probabilities = |model: &dyn StagedModel, x: &Tensor| {
                let answer = model.forward(exit, x).unwrap();
                answer.flatten_all().unwrap().to_vec1::<f32>().unwrap()
            };
            let want = probabilities(&*ours, &here);
            let loss = |found: Vec<f32>| {
                let pairs = want.iter().zip(&found);
                pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max)
            };
            // Rounding after each layer costs the same on any device, in another order.
            let own = loss(probabilities(&*stand_in.model, &here));
            let found = loss(probabilities(&*half.model, &there));
            let name = format!("{name}@f16 {exit}: {found}, and on the CPU {own}");
            assert!(found < 2.0 * own + HALF, "{name}");
        }
    }
}

/// One variant of the zoo, by its folder.
struct VariantFolder(PathBuf);

impl ModelSource for VariantFolder {
    fn name(&self, _variant: VariantId) -> String {
        "images/resnet20".to_owned()
    }

    fn memory_bytes(&self, _variant: VariantId) -> std::result::Result<u64, LoadError> {
        Ok(2 << 20)
    }

    fn load(
        &self,
        variant: VariantId,
        device: &Device,
    ) -> std::result::Result<LoadedModel, LoadError> {
        let name = self.name(variant);
        let loaded = load_variant(&self.0, device);
        let loaded = loaded.map_err(|error| LoadError::new(&name, error.to_string()))?;
        Ok(LoadedModel {
            name,
            model: loaded.model,
            inputs: Arc::new([InputSpec {
                name: "image".to_owned(),
                datatype: switchyard_models::card::Datatype::Fp32,
                input_type: InputType::F32,
                row_shape: vec![3, 32, 32],
                open: Vec::new(),
            }]),
            reads: vec![0],
            bytes: loaded.bytes,
        })
    }
}

fn job(variant: u32, requests: &[u64], stages: [u32; 2], exit: Option<u32>, width: usize) -> Job {
    let rows = requests.iter().map(|&request| JobRow {
        request: RequestId(request),
        input: (stages[0] == 0)
            .then(|| [InputTensor::F32(numbers(width, request as usize).into())].into()),
    });
    Job {
        batch: BatchId(0),
        app: AppId(0),
        variant: VariantId(variant),
        from_stage: stages[0],
        to_stage: stages[1],
        exit: exit.map(ExitId),
        rows: rows.collect(),
        soon: Soon::new(),
        until: None,
    }
}

fn answers(output: BatchOutput) -> Vec<f32> {
    match output {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        other => panic!("not answered: {other:?}"),
    }
}

/// Batches of every size through one staging buffer, and requests that are parked on the GPU between
/// stages and continue in other batches.
#[test]
fn batches_and_parked_requests_are_answered_as_on_the_cpu() {
    let Some((gpu, _turn)) = gpu() else { return };
    const WIDTH: usize = 3 * 32 * 32;
    let dir = zoo()
        .app("images")
        .unwrap()
        .variant("resnet20")
        .unwrap()
        .dir
        .clone();
    let on = |device: &Device| {
        let source: Arc<dyn ModelSource> = Arc::new(VariantFolder(dir.clone()));
        CandleExecutor::new(Weights::new(source), device.clone(), 1 << 30)
    };
    let (mut here, mut there) = (on(&Device::Cpu), on(&gpu));
    let whole = |executor: &mut CandleExecutor, requests: &[u64]| {
        let outcome = executor.run(&mut job(0, requests, [0, 6], Some(1), WIDTH));
        assert!(outcome.compute.0 > 0);
        answers(outcome.result.unwrap())
    };
    let close = |ours: &[f32], theirs: &[f32]| {
        assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    };
    // 100 rows are more than 1 MiB: several copies are under way at once.
    for size in [1, 2, 7, 100, 3, 32, 1] {
        let requests: Vec<u64> = (0..size).collect();
        close(&whole(&mut here, &requests), &whole(&mut there, &requests));
    }
    for requests in [[1, 2], [3, 4]] {
        let parked = there
            .run(&mut job(0, &requests, [0, 2], None, WIDTH))
            .result;
        assert_eq!(parked.unwrap(), BatchOutput::Parked);
    }
    let rest = there
        .run(&mut job(0, &[4, 1], [2, 6], Some(1), WIDTH))
        .result;
    close(&whole(&mut here, &[4, 1]), &answers(rest.unwrap()));
    let free = there.residency().free_bytes;
    there.release(RequestId(2));
    there.release(RequestId(3));
    assert!(
        there.residency().free_bytes > free,
        "parked activations are accounted"
    );
}

/// Texts of different lengths in one batch, and parked ones of two batches, in f32 and half precision.
#[test]
fn texts_are_answered_as_on_the_cpu() {
    let Some((gpu, _turn)) = gpu() else { return };
    let dir = tempfile::tempdir().unwrap();
    write_app(dir.path(), "mood", Answers::Classes, &["tiny"]);
    write_app(dir.path(), "sense", Answers::Embeddings, &["tiny"]);
    let zoo = Zoo::open(dir.path()).unwrap();
    let whole = Manifest::all(&zoo).unwrap();
    let half: Vec<ZooEntry> = whole.source.entries().to_vec();
    let half = half.into_iter().map(|entry| ZooEntry {
        precision: Precision::F16,
        ..entry
    });
    let half = ZooSource::new(half.collect());
    let on = |source: &Arc<ZooSource>, device: &Device| {
        let source: Arc<dyn ModelSource> = Arc::clone(source) as _;
        CandleExecutor::new(Weights::new(source), device.clone(), 1 << 30)
    };
    let job = |variant: u32, stages: [u32; 2], texts: &[(u64, &str)]| Job {
        rows: texts
            .iter()
            .map(|&(request, text)| JobRow {
                request: RequestId(request),
                input: (stages[0] == 0).then(|| [InputTensor::Text(text.into())].into()),
            })
            .collect(),
        ..job(variant, &[], stages, (stages[1] == 2).then_some(0), 0)
    };
    let close = |ours: &[f32], theirs: &[f32], bound: f32| {
        assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() < bound, "{a} {b}");
        }
    };
    let long = "w9 w8 ".repeat(MAX_TOKENS);
    let texts = [(1, "w4"), (2, "W5 w6"), (3, long.as_str()), (4, "")];
    let mut here = on(&whole.source, &Device::Cpu);
    for (source, bound) in [(&whole.source, TOLERANCE), (&half, HALF_TEXT)] {
        let mut there = on(source, &gpu);
        for variant in [0, 1] {
            let all = |executor: &mut CandleExecutor| {
                answers(
                    executor
                        .run(&mut job(variant, [0, 2], &texts))
                        .result
                        .unwrap(),
                )
            };
            let ours = all(&mut here);
            close(&ours, &all(&mut there), bound);
            for text in [texts[0], texts[2]] {
                let parked = there.run(&mut job(variant, [0, 1], &[text])).result;
                assert_eq!(parked.unwrap(), BatchOutput::Parked);
            }
            let rest = [texts[0], texts[2]];
            let rest = there.run(&mut job(variant, [1, 2], &rest)).result.unwrap();
            let width = ours.len() / texts.len();
            let want = [&ours[..width], &ours[2 * width..3 * width]].concat();
            close(&want, &answers(rest), bound);
        }
    }
}

/// Models of `model` bytes of the GPU, whose stage takes `workspace` more.
struct LargeSource {
    model: usize,
    workspace: usize,
}

struct LargeModel {
    _weights: Tensor,
    workspace: usize,
}

impl StagedModel for LargeModel {
    fn stages(&self) -> usize {
        1
    }

    fn exits(&self) -> &[usize] {
        &[1]
    }

    fn classes(&self) -> usize {
        2
    }

    fn run_stage(&self, _stage: usize, x: &Tensor) -> Result<Tensor> {
        Tensor::zeros(self.workspace, DType::U8, x.device())?;
        Ok(x.clone())
    }

    fn logits(&self, _exit: usize, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

impl ModelSource for LargeSource {
    fn name(&self, variant: VariantId) -> String {
        format!("large/v{}", variant.0)
    }

    fn memory_bytes(&self, _variant: VariantId) -> std::result::Result<u64, LoadError> {
        Ok(self.model as u64)
    }

    fn load(
        &self,
        variant: VariantId,
        device: &Device,
    ) -> std::result::Result<LoadedModel, LoadError> {
        let name = self.name(variant);
        let weights = Tensor::zeros(self.model, DType::U8, device)
            .map_err(|error| LoadError::new(&name, error.to_string()))?;
        Ok(LoadedModel {
            name,
            model: Arc::new(LargeModel {
                _weights: weights,
                workspace: self.workspace,
            }),
            inputs: Arc::new([InputSpec {
                name: "x".to_owned(),
                datatype: switchyard_models::card::Datatype::Fp32,
                input_type: InputType::F32,
                row_shape: vec![2],
                open: Vec::new(),
            }]),
            reads: vec![0],
            bytes: self.model as u64,
        })
    }
}

/// Fills the GPU except for some GiB, runs out of the rest, and continues.
#[test]
fn a_full_gpu_evicts_idle_models_and_continues() {
    let Some((gpu, _turn)) = gpu() else { return };
    let memory = device::memory(&gpu).unwrap();
    assert!(memory.free <= memory.total && memory.total > 0);
    let left = 10 * GIB;
    let fill = (memory.available() as usize).saturating_sub(left);
    let filler = (fill > 0).then(|| Tensor::zeros(fill, DType::U8, &gpu).unwrap());
    let source: Arc<dyn ModelSource> = Arc::new(LargeSource {
        model: 3 * GIB,
        workspace: 6 * GIB,
    });
    // By its books the worker has room for any number of models.
    let mut executor = CandleExecutor::new(Weights::new(source), gpu.clone(), u64::MAX);
    let mut run = |variant| {
        let mut job = job(variant, &[1], [0, 1], Some(0), 2);
        executor.run(&mut job).result.map(answers)
    };
    run(0).unwrap();
    let second = run(1).unwrap();
    assert_eq!(run(1).unwrap(), second);
    assert_eq!(
        executor.residency().resident,
        [VariantId(1)],
        "3 + 3 + 6 are more than 10"
    );

    // Too much even alone: the batch fails, and the worker continues.
    let source: Arc<dyn ModelSource> = Arc::new(LargeSource {
        model: GIB,
        workspace: 30 * GIB,
    });
    let mut other = CandleExecutor::new(Weights::new(source), gpu.clone(), u64::MAX);
    let error = other
        .run(&mut job(0, &[1], [0, 1], Some(0), 2))
        .result
        .unwrap_err();
    assert_eq!(error.fault(), Some(DeviceFault::OutOfMemory), "{error}");
    assert!(!error.is_fatal());
    drop(filler);
}

#[test]
fn the_drivers_errors_have_the_names_that_are_read() {
    let Some((_gpu, _turn)) = gpu() else { return };
    use sys::CUresult as Code;
    for (code, fault) in [
        (
            Code::CUDA_ERROR_OUT_OF_MEMORY,
            Some(DeviceFault::OutOfMemory),
        ),
        (Code::CUDA_ERROR_ILLEGAL_ADDRESS, Some(DeviceFault::Lost)),
        (Code::CUDA_ERROR_LAUNCH_FAILED, Some(DeviceFault::Lost)),
        (Code::CUDA_ERROR_ECC_UNCORRECTABLE, Some(DeviceFault::Lost)),
        (Code::CUDA_ERROR_INVALID_VALUE, None),
    ] {
        let message = DriverError(code).to_string();
        assert_eq!(DeviceFault::of(&message), fault, "{message}");
    }
}

/// Each worker has a stream of its own. The GPU's name is its kind.
#[test]
fn a_gpu_is_opened_once_for_each_worker() {
    let Some((first, _turn)) = gpu() else { return };
    let second = DeviceName::Cuda(0).open().unwrap();
    assert_ne!(OpenedDevice::of(&first), OpenedDevice::of(&second));
    assert_eq!(OpenedDevice::of(&first), OpenedDevice::of(&first.clone()));
    let kind = DeviceName::Cuda(0).kind(1);
    assert!(kind.starts_with("cuda-"), "{kind}");
    assert!(DeviceName::Cuda(4_000).open().is_err());
}

/// Ends every use of GPUs by this process: run alone, by its name.
#[test]
#[ignore = "run alone: no other test can use the GPU after it"]
fn a_lost_gpu_is_a_fatal_error() {
    const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
                       .visible .entry trap_now() {\n  trap;\n  ret;\n}\n";
    let Some((gpu, _turn)) = gpu() else { return };
    let dir = zoo()
        .app("images")
        .unwrap()
        .variant("resnet20")
        .unwrap()
        .dir
        .clone();
    let source: Arc<dyn ModelSource> = Arc::new(VariantFolder(dir));
    let mut executor = CandleExecutor::new(Weights::new(source), gpu.clone(), 1 << 30);
    let whole = || job(0, &[1], [0, 6], Some(1), 3 * 32 * 32);
    executor.run(&mut whole()).result.unwrap();
    let cuda = gpu.as_cuda_device().unwrap();
    let trap = cuda
        .get_or_load_custom_func("trap_now", "trap", PTX)
        .unwrap();
    // SAFETY: the kernel takes no argument and touches no memory.
    unsafe { trap.builder().launch(LaunchConfig::for_num_elems(1)) }.unwrap();
    let error = executor.run(&mut whole()).result.unwrap_err();
    assert!(error.is_fatal(), "{error}");
    eprintln!("expected: {error}");
}
