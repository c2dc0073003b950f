//! Batches on candle: assembly, model cache, stages, exits, parking.

use std::sync::Arc;
use std::time::Instant;

use candle_core::{Device, Tensor};
use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;

use crate::batch;
use crate::cache::{InUse, ModelCache};
use crate::error::{CacheError, ExecuteError};
use crate::executor::{Executor, Ran};
use crate::job::{BatchOutput, Job, Residency};
use crate::source::{LoadedModel, Weights};
use crate::stages::{self, Parked, Progress};

/// Runs batches with candle on one device.
pub struct CandleExecutor {
    cache: ModelCache,
    parked: Parked,
}

// === impl CandleExecutor ===

impl CandleExecutor {
    /// An executor that holds at most `budget_bytes` of models and parked activations.
    pub fn new(weights: Arc<Weights>, device: Device, budget_bytes: u64) -> Self {
        Self {
            cache: ModelCache::new(weights, device, budget_bytes),
            parked: Parked::default(),
        }
    }

    /// Never evicts this variant once it is loaded.
    #[must_use]
    pub fn with_pinned(mut self, variant: VariantId) -> Self {
        self.cache.pin(variant);
        self
    }

    fn execute(&mut self, model: &LoadedModel, job: &mut Job) -> Result<BatchOutput, ExecuteError> {
        stages::check(job, model)?;
        let range = job.from_stage as usize..job.to_stage as usize;
        let x = if job.from_stage == 0 {
            batch::assemble(&mut job.rows, model, self.cache.device())?
        } else {
            let from = Progress {
                variant: job.variant,
                stages_run: job.from_stage,
            };
            self.parked.take(&job.rows, from, &*model.model)?
        };
        let x = stages::run(model, range, x)?;
        match job.exit {
            Some(exit) => answer(model, exit.index(), &x, job.rows.len()),
            None => self.park(model, job, &x),
        }
    }

    fn park(
        &mut self,
        model: &LoadedModel,
        job: &Job,
        x: &Tensor,
    ) -> Result<BatchOutput, ExecuteError> {
        // A strided view would keep more memory than is accounted. The device may still be
        // computing: the time until it is done belongs to this batch.
        let activations = x
            .contiguous()
            .and_then(|x| self.cache.device().synchronize().map(|()| x))
            .map_err(|error| ExecuteError::compute(&model.name, "parking", &error))?;
        if activations.dims().first() != Some(&job.rows.len()) {
            let reason = format!(
                "gave {:?} for {} requests",
                activations.dims(),
                job.rows.len()
            );
            return Err(ExecuteError::job(&model.name, reason));
        }
        let progress = Progress {
            variant: job.variant,
            stages_run: job.to_stage,
        };
        let requests = job.rows.iter().map(|row| row.request);
        self.parked.park(requests, progress, activations);
        Ok(BatchOutput::Parked)
    }
}

impl Executor for CandleExecutor {
    fn run(&mut self, job: &mut Job) -> Ran {
        let start = Instant::now();
        let (acquired, load) = match self.cache.acquire(job.variant, self.parked.bytes()) {
            Ok((model, load)) => (Ok(model), load),
            Err(error) => (Err(error.into()), Micros::from(start.elapsed())),
        };
        let start = Instant::now();
        let result = acquired.and_then(|model: InUse| self.execute(&model, job));
        if !matches!(result, Ok(BatchOutput::Parked)) {
            // They have ended: answered, or failed with their batch.
            for row in &job.rows {
                self.parked.release(row.request);
            }
        }
        Ran {
            result,
            compute: Micros::from(start.elapsed()),
            load,
        }
    }

    fn release(&mut self, request: RequestId) {
        self.parked.release(request);
    }

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        let (_, load) = self.cache.acquire(variant, self.parked.bytes())?;
        Ok(load)
    }

    fn residency(&self) -> Residency {
        Residency {
            resident: self.cache.variants(),
            free_bytes: self.cache.free_bytes().saturating_sub(self.parked.bytes()),
        }
    }
}

/// Runs the head of an exit and copies its few numbers to the host.
fn answer(
    model: &LoadedModel,
    exit: usize,
    x: &Tensor,
    rows: usize,
) -> Result<BatchOutput, ExecuteError> {
    let failed = |error: candle_core::Error| {
        ExecuteError::compute(&model.name, format!("exit {exit}"), &error)
    };
    let probabilities = model.model.head(exit, x).map_err(failed)?;
    let (found, classes) = probabilities.dims2().map_err(failed)?;
    if found != rows {
        let reason = format!("exit {exit} gave {found} answers to {rows} requests");
        return Err(ExecuteError::job(&model.name, reason));
    }
    let probabilities = probabilities
        .flatten_all()
        .and_then(|flat| flat.to_vec1())
        .map_err(failed)?;
    Ok(BatchOutput::Answered {
        classes,
        probabilities,
    })
}
