//! Tiny hand-made models, and jobs for them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use candle_core::{Device, Result, Tensor};
use switchyard_core::catalog::{App, Catalog, Exit, Late, Penalty, Task, Variant};
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::profile::Profile;
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_executor::{
    InputSpec, InputTensor, InputType, Job, JobRow, LoadError, LoadedModel, ModelSource,
};
use switchyard_models::StagedModel;

pub(crate) const WIDTH: usize = 4;
pub(crate) const CLASSES: usize = 3;

/// An input value at which every toy panics.
pub(crate) const POISON: f32 = 1e9;

/// Stage i computes `relu(x * (i + 1) + 0.5)`.
pub(crate) struct Toy {
    exits: Vec<usize>,
    /// Added in every stage: it tells one toy's weights from another's.
    shift: f32,
}

impl StagedModel for Toy {
    fn stages(&self) -> usize {
        *self.exits.last().unwrap()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        CLASSES
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let largest: f32 = x.max_all()?.to_scalar()?;
        assert!(largest < POISON, "toy poisoned in stage {stage}");
        x.affine((stage + 1) as f64, 0.5 + f64::from(self.shift))?
            .relu()
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let weights: Vec<f32> = (0..WIDTH * CLASSES)
            .map(|i| ((i * 7 + exit) % 5) as f32 / 10.0 - 0.2)
            .collect();
        x.matmul(&Tensor::from_vec(weights, (WIDTH, CLASSES), x.device())?)
    }
}

/// Toys by position; counts its loads.
pub(crate) struct ToySource {
    pub(crate) models: Vec<ToySpec>,
    pub(crate) loads: AtomicUsize,
    shift: Mutex<f32>,
    /// Bytes that a load takes and the source does not expect.
    surplus: AtomicU64,
    broken: Mutex<Option<String>>,
    /// If set, a load waits here at its begin and its end.
    pub(crate) gate: Mutex<Option<Arc<Barrier>>>,
}

#[derive(Clone)]
pub(crate) struct ToySpec {
    pub(crate) bytes: u64,
    pub(crate) exits: Vec<usize>,
    pub(crate) load: Duration,
}

impl ToySource {
    /// One toy of three stages and two exits per entry, taking these bytes.
    pub(crate) fn new(bytes: &[u64]) -> Arc<Self> {
        let models = bytes.iter().map(|&bytes| ToySpec {
            bytes,
            exits: vec![1, 3],
            load: Duration::ZERO,
        });
        Self::of(models.collect())
    }

    pub(crate) fn of(models: Vec<ToySpec>) -> Arc<Self> {
        Arc::new(Self {
            models,
            loads: AtomicUsize::new(0),
            shift: Mutex::new(0.0),
            surplus: AtomicU64::new(0),
            broken: Mutex::new(None),
            gate: Mutex::new(None),
        })
    }

    /// Later loads have other weights.
    pub(crate) fn shift(&self, shift: f32) {
        *self.shift.lock().unwrap() = shift;
    }

    /// Later loads take more bytes than the source expects.
    pub(crate) fn take_more(&self, bytes: u64) {
        self.surplus.store(bytes, Ordering::Relaxed);
    }

    /// Later loads fail ...
    pub(crate) fn break_it(&self, reason: &str) {
        *self.broken.lock().unwrap() = Some(reason.to_owned());
    }

    /// ... until now.
    pub(crate) fn mend(&self) {
        *self.broken.lock().unwrap() = None;
    }

    pub(crate) fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }

    fn spec(&self, variant: VariantId) -> std::result::Result<&ToySpec, LoadError> {
        let known = self.models.get(variant.index());
        known.ok_or_else(|| LoadError::new(self.name(variant), "no such toy"))
    }
}

impl ModelSource for ToySource {
    fn name(&self, variant: VariantId) -> String {
        format!("toy/v{}", variant.0)
    }

    fn memory_bytes(&self, variant: VariantId) -> std::result::Result<u64, LoadError> {
        Ok(self.spec(variant)?.bytes)
    }

    fn load(
        &self,
        variant: VariantId,
        _device: &Device,
    ) -> std::result::Result<LoadedModel, LoadError> {
        let spec = self.spec(variant)?;
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.wait();
            gate.wait();
        }
        std::thread::sleep(spec.load);
        if let Some(reason) = &*self.broken.lock().unwrap() {
            return Err(LoadError::new(self.name(variant), reason));
        }
        self.loads.fetch_add(1, Ordering::Relaxed);
        Ok(LoadedModel {
            name: self.name(variant),
            model: Arc::new(Toy {
                exits: spec.exits.clone(),
                shift: *self.shift.lock().unwrap(),
            }),
            inputs: Arc::new([InputSpec {
                name: "x".to_owned(),
                datatype: switchyard_models::card::Datatype::Fp32,
                input_type: InputType::F32,
                row_shape: vec![WIDTH],
                open: Vec::new(),
            }]),
            reads: vec![0],
            bytes: spec.bytes + self.surplus.load(Ordering::Relaxed),
        })
    }
}

/// The same toys as a catalog, without workers or profile.
pub(crate) fn catalog(source: &ToySource) -> Catalog {
    let variants = source.models.iter().enumerate().map(|(i, spec)| Variant {
        name: format!("v{i}"),
        app: AppId(0),
        stages: *spec.exits.last().unwrap() as u32,
        exits: spec
            .exits
            .iter()
            .map(|&after| Exit {
                name: format!("after{after}"),
                after_stage: after as u32,
                accuracy: 0.5,
                recall: vec![0.5; CLASSES],
                confusion: None,
            })
            .collect(),
        memory_bytes: spec.bytes,
        max_batch: 8,
        quality_unknown: false,
    });
    Catalog {
        generation: 1,
        apps: vec![App {
            name: "toy".to_owned(),
            task: Task::Classify,
            classes: (0..CLASSES).map(|class| format!("c{class}")).collect(),
            slo: Micros::from_millis(100),
            penalty: Penalty::Step,
            prior: vec![0.5; CLASSES],
            frequencies: vec![1.0 / CLASSES as f64; CLASSES],
            sneakpeek: None,
            late: Late::Serve,
        }],
        variants: variants.collect(),
        kinds: vec!["cpu-1t".to_owned()],
        workers: Vec::new(),
        profile: Profile::default(),
    }
}

/// The input of a request: a function of its id.
pub(crate) fn input(request: u64) -> Vec<f32> {
    (0..WIDTH as u64)
        .map(|i| ((request * 31 + i * 17) % 11) as f32 / 11.0 - 0.4)
        .collect()
}

/// Stages `[from, to)` of variant 0 for these requests.
pub(crate) fn job(requests: &[u64], from_stage: u32, to_stage: u32, exit: Option<u32>) -> Job {
    let rows = requests.iter().map(|&request| JobRow {
        request: RequestId(request),
        input: (from_stage == 0).then(|| [InputTensor::F32(input(request).into())].into()),
    });
    Job {
        batch: BatchId(requests.first().copied().unwrap_or_default()),
        app: AppId(0),
        variant: VariantId(0),
        from_stage,
        to_stage,
        exit: exit.map(ExitId),
        rows: rows.collect(),
        soon: Soon::new(),
        until: None,
    }
}

/// All stages of another variant.
pub(crate) fn job_of(variant: u32, request: u64) -> Job {
    Job {
        variant: VariantId(variant),
        ..job(&[request], 0, 3, Some(1))
    }
}
