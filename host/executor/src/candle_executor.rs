//! Runs batches with candle: assembly, model cache, stages, exits, parking.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{Device, Tensor};
use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;

use crate::batch::{self, BatchInputs};
use crate::cache::{ModelCache, ModelInUse, ReplacedModel};
use crate::cuda::{self, Staging};
use crate::error::{CacheError, ExecuteError};
use crate::executor::{Executor, JobOutcome};
use crate::fault::DeviceFault;
use crate::graphs;
use crate::job::{BatchOutput, Job, Residency};
use crate::parked::{self, ContinuedRows, ParkedActivations, StageProgress};
use crate::source::LoadedModel;
use crate::stages;
use crate::weights::Weights;

/// Runs batches with candle on one device.
pub struct CandleExecutor {
    cache: Arc<ModelCache>,
    parked: ParkedActivations,
    /// Weights that were replaced while activations that they made were parked.
    superseded: Vec<SupersededWeights>,
    staging: Staging,
    /// If the device has no memory for a batch, evict the models that are not in use and try once
    /// more.
    retries: bool,
    /// Most bytes of activations that are parked.
    parked_bytes_max: u64,
}

/// The first tensor of a batch; cheap to keep for a second attempt.
#[derive(Clone)]
enum BatchStart {
    /// Inputs on the CPU, which computes them.
    OnCpu(Tensor),
    /// Inputs on the host, to be uploaded to a device.
    ToDevice(Arc<BatchInputs>),
    /// Activations that were parked after the stage before.
    Parked(Vec<ContinuedRows>),
}

struct SupersededWeights {
    variant: VariantId,
    generation: u64,
    model: Arc<LoadedModel>,
}

// === impl CandleExecutor ===

impl CandleExecutor {
    /// An executor with a budget of `budget_bytes` for models and parked activations.
    pub fn new(weights: Arc<Weights>, device: Device, budget_bytes: u64) -> Self {
        Self::over(ModelCache::new(weights, device, budget_bytes))
    }

    /// An executor with this cache.
    pub fn over(cache: ModelCache) -> Self {
        Self {
            retries: !cache.device().is_cpu(),
            cache: Arc::new(cache),
            parked: ParkedActivations::default(),
            superseded: Vec::new(),
            staging: Staging::default(),
            parked_bytes_max: u64::MAX,
        }
    }

    /// If the device has no memory for a batch, evicts the models that are not in use and tries once
    /// more. The default on GPUs.
    #[must_use]
    pub fn with_retries(self) -> Self {
        Self {
            retries: true,
            ..self
        }
    }

    /// Refuses batches that would park more activations. The core bounds the number of requests; this is
    /// for a worker without one.
    #[must_use]
    pub fn with_parked_bytes_max(self, parked_bytes_max: u64) -> Self {
        Self {
            parked_bytes_max,
            ..self
        }
    }

    /// Never evicts this variant once it is loaded.
    #[must_use]
    pub fn with_pinned(self, variant: VariantId) -> Self {
        self.cache.pin(variant);
        self
    }

    /// Weighs load times by variant when something must be evicted.
    #[must_use]
    pub fn with_loads(self, loads: Vec<Micros>) -> Self {
        self.cache.set_loads(loads);
        self
    }

    fn execute(&mut self, model: &ModelInUse, job: &mut Job) -> Result<BatchOutput, ExecuteError> {
        stages::check(job, model)?;
        if let Some(graph) = model.model.graph() {
            return graphs::run(graph, model, &mut job.rows);
        }
        let start = self.start(model, job)?;
        let again = self.retries.then(|| start.clone());
        match (self.attempt(model, job, start), again) {
            (Err(error), Some(again)) if error.fault() == Some(DeviceFault::OutOfMemory) => {
                self.make_space(job.variant, &error);
                self.attempt(model, job, again)
            }
            (result, _) => result,
        }
        .map_err(|error| self.judged(error))
    }

    fn start(&mut self, model: &ModelInUse, job: &mut Job) -> Result<BatchStart, ExecuteError> {
        if job.from_stage == 0 {
            let inputs = batch::gather(&mut job.rows, model)?;
            return match self.cache.device().is_cpu() {
                true => inputs.into_tensor(model).map(BatchStart::OnCpu),
                false => Ok(BatchStart::ToDevice(Arc::new(inputs))),
            };
        }
        let from = StageProgress {
            variant: job.variant,
            stages_run: job.from_stage,
        };
        let parts = self.parked.take(&job.rows, from, &*model.model)?;
        Ok(BatchStart::Parked(parts))
    }

    fn attempt(
        &mut self,
        model: &ModelInUse,
        job: &Job,
        start: BatchStart,
    ) -> Result<BatchOutput, ExecuteError> {
        let whole = 0..job.rows.len();
        let parts = match start {
            BatchStart::OnCpu(x) => return self.run_on(model, model.generation(), job, whole, x),
            BatchStart::ToDevice(inputs) => {
                let x = inputs.upload(model, &mut self.staging, self.cache.device())?;
                return self.run_on(model, model.generation(), job, whole, x);
            }
            BatchStart::Parked(parts) => parts,
        };
        let mut output = None;
        let mut begin = 0;
        // One part, unless the weights were replaced between the stages of these requests.
        for part in parts {
            let rows = begin..begin + part.rows;
            begin = rows.end;
            let old = match part.generation == model.generation() {
                true => None,
                false => Some(self.superseded(job, part.generation)?),
            };
            let weights = old.as_deref().unwrap_or(model);
            let ran = self.run_on(weights, part.generation, job, rows, part.activations)?;
            output = Some(match output {
                None => ran,
                Some(before) => join(before, ran),
            });
        }
        output.ok_or_else(|| ExecuteError::job(&model.name, "a batch without requests"))
    }

    /// The model, and the time its load took. If the device has no memory for it, models that are not
    /// in use are evicted and the load is tried once more.
    fn acquire(
        &mut self,
        variant: VariantId,
        soon: &[VariantId],
    ) -> (Result<ModelInUse, CacheError>, Micros) {
        let start = Instant::now();
        let mut acquired = self.cache.acquire(variant, soon);
        if let Err(error) = &acquired
            && self.retries
            && error.fault() == Some(DeviceFault::OutOfMemory)
            && !error.is_repeated()
        {
            self.make_space(variant, error);
            acquired = self.cache.acquire(variant, soon);
        }
        match acquired {
            Ok((model, Micros::ZERO)) => (Ok(model), Micros::ZERO),
            Ok((model, load)) => (Ok(model), load.max(Micros::from(start.elapsed()))),
            Err(error) => (Err(error), Micros::from(start.elapsed())),
        }
    }

    /// Evicts the models that are not in use, after `error`.
    fn make_space(&self, variant: VariantId, error: &dyn std::error::Error) {
        let evicted = self.cache.evict_idle(variant);
        cuda::trim(self.cache.device());
        tracing::warn!(
            variant = self.cache.name(variant),
            evicted,
            error = error.to_string(),
            "out of memory: evicted the models that are not in use, trying again"
        );
    }

    /// Checks whether a failed computation failed because the device is lost: it may be the first to
    /// notice.
    fn judged(&self, error: ExecuteError) -> ExecuteError {
        if !matches!(error, ExecuteError::Compute { .. }) {
            return error;
        }
        match self.cache.device().synchronize() {
            Err(found) if DeviceFault::of(&found.to_string()) == Some(DeviceFault::Lost) => {
                ExecuteError::DeviceLost {
                    reason: format!("{error}; then {found}"),
                }
            }
            _ => error,
        }
    }

    /// Runs the job's stages for some of its rows.
    fn run_on(
        &mut self,
        model: &LoadedModel,
        generation: u64,
        job: &Job,
        rows: Range<usize>,
        x: Tensor,
    ) -> Result<BatchOutput, ExecuteError> {
        let stages = job.from_stage as usize..job.to_stage as usize;
        let x = stages::run(model, stages, x)?;
        match job.exit {
            Some(exit) => stages::answer(model, exit.index(), &x, rows.len()),
            None => self.park(model, generation, job, rows, &x),
        }
    }

    fn superseded(&self, job: &Job, generation: u64) -> Result<Arc<LoadedModel>, ExecuteError> {
        let mut kept = self.superseded.iter();
        let kept = kept.find(|s| (s.variant, s.generation) == (job.variant, generation));
        kept.map(|s| Arc::clone(&s.model)).ok_or_else(|| {
            let first = job.rows.first().map(|row| row.request).unwrap_or_default();
            let reason = "its weights were evicted and then replaced";
            ExecuteError::not_parked(first, reason)
        })
    }

    fn park(
        &mut self,
        model: &LoadedModel,
        generation: u64,
        job: &Job,
        rows: Range<usize>,
        x: &Tensor,
    ) -> Result<BatchOutput, ExecuteError> {
        // A strided view would keep more memory than is accounted. The device may still compute; the
        // time until it is done belongs to this batch.
        let activations = x
            .contiguous()
            .and_then(|x| self.cache.device().synchronize().map(|()| x))
            .map_err(|error| ExecuteError::compute(&model.name, "parking", &error))?;
        if activations.dims().first() != Some(&rows.len()) {
            let reason = format!("gave {:?} for {} requests", activations.dims(), rows.len());
            return Err(ExecuteError::job(&model.name, reason));
        }
        let bytes = parked::bytes_of(&activations);
        let (before, most) = (self.parked.bytes(), self.parked_bytes_max);
        if bytes > most.saturating_sub(before) {
            return Err(ExecuteError::Compute {
                variant: model.name.clone(),
                part: "parking".to_owned(),
                reason: format!("{bytes} bytes of activations next to {before}, at most {most}"),
            });
        }
        let progress = StageProgress {
            variant: job.variant,
            stages_run: job.to_stage,
        };
        let requests = job.rows[rows].iter().map(|row| row.request);
        self.parked
            .park(requests, progress, generation, activations);
        Ok(BatchOutput::Parked)
    }

    /// After each change of the parked activations: drops superseded weights without any, and tells
    /// the cache which part of the budget is not for models.
    fn account(&mut self) {
        if !self.superseded.is_empty() {
            let parked = &self.parked;
            self.superseded
                .retain(|s| parked.holds(s.variant, s.generation));
        }
        let superseded: u64 = self.superseded.iter().map(|s| s.model.bytes).sum();
        self.cache
            .set_parked_bytes(self.parked.bytes() + superseded);
    }
}

impl Executor for CandleExecutor {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let (acquired, load) = self.acquire(job.variant, &job.soon);
        let start = Instant::now();
        let result = match acquired {
            Ok(model) => self.execute(&model, job),
            Err(error) => Err(error.into()),
        };
        if !matches!(result, Ok(BatchOutput::Parked)) {
            // These requests have ended: answered, or failed with their batch.
            for row in &job.rows {
                self.parked.release(row.request);
            }
        }
        self.account();
        JobOutcome {
            result,
            compute: Micros::from(start.elapsed()),
            load,
        }
    }

    fn release(&mut self, request: RequestId) {
        self.parked.release(request);
        self.account();
    }

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        let (acquired, load) = self.acquire(variant, &[]);
        acquired.map(|_| load)
    }

    fn residency(&self) -> Residency {
        self.cache.residency()
    }

    fn unload(&mut self, variant: VariantId) {
        self.cache.unload(variant);
    }

    fn replace(&mut self, variant: VariantId, model: &Arc<LoadedModel>) {
        if let Some(ReplacedModel { generation, model }) = self.cache.replace(variant, model)
            && self.parked.holds(variant, generation)
        {
            self.superseded.push(SupersededWeights {
                variant,
                generation,
                model,
            });
        }
        self.account();
    }

    fn models(&self) -> Option<Arc<ModelCache>> {
        Some(Arc::clone(&self.cache))
    }
}

/// Joins the outputs of two parts of one batch.
fn join(mut first: BatchOutput, second: BatchOutput) -> BatchOutput {
    if let (
        BatchOutput::Answered { probabilities, .. },
        BatchOutput::Answered {
            probabilities: more,
            ..
        },
    ) = (&mut first, &second)
    {
        probabilities.extend_from_slice(more);
    }
    first
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::toy::ToyModel;

    #[test]
    fn an_answer_that_is_no_number_fails_its_batch_and_may_be_tried_row_by_row() {
        let model = LoadedModel {
            name: "app/toy".to_owned(),
            model: Arc::new(ToyModel),
            inputs: Vec::new().into(),
            reads: Vec::new(),
            bytes: 0,
        };
        let answered = |scores: [[f32; 2]; 2]| {
            let x = Tensor::new(&scores, &Device::Cpu).unwrap();
            stages::answer(&model, 0, &x, 2)
        };
        assert!(answered([[0.0, 1.0], [2.0, 3.0]]).is_ok());
        let failed = answered([[0.0, 1.0], [f32::NAN, 3.0]]).unwrap_err();
        assert!(failed.is_repeatable());
        let text = failed.to_string();
        assert!(text.starts_with("app/toy: the answer: has NaN"), "{text}");
    }
}
