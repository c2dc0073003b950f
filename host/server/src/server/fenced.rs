//! Executors that begin no batch while another scheduler is active: the last look before a batch, on the
//! thread that runs it.

use std::sync::Arc;

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    CacheError, ExecuteError, Executor, GiveUp, Job, JobOutcome, LoadedModel, ModelCache,
    ReleaseAtOnce, ReportAbsence, Residency,
};
use switchyard_remote::Fence;

use crate::driver::PoolExecutor;

/// An executor behind a fence.
struct FencedExecutor {
    inner: Box<dyn Executor>,
    fence: Arc<Fence>,
}

/// A worker whose executors are behind the fence, if there is one.
pub(super) fn fenced(executor: PoolExecutor, fence: Option<&Arc<Fence>>) -> PoolExecutor {
    let Some(fence) = fence.cloned() else {
        return executor;
    };
    let mut build = executor.build;
    PoolExecutor {
        build: Box::new(move || {
            Ok(Box::new(FencedExecutor {
                inner: build()?,
                fence: Arc::clone(&fence),
            }))
        }),
        ..executor
    }
}

impl Executor for FencedExecutor {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        match self.fence.enter() {
            Ok(_) => self.inner.run(job),
            Err(error) => JobOutcome {
                result: Err(ExecuteError::NotActive {
                    reason: error.to_string(),
                }),
                compute: Micros::ZERO,
                load: Micros::ZERO,
            },
        }
    }

    fn another(&self) -> Option<Box<dyn Executor>> {
        Some(Box::new(Self {
            inner: self.inner.another()?,
            fence: Arc::clone(&self.fence),
        }))
    }

    fn release(&mut self, request: RequestId) {
        self.inner.release(request);
    }

    fn release_at_once(&self) -> Option<ReleaseAtOnce> {
        self.inner.release_at_once()
    }

    fn runs_stages(&self) -> bool {
        self.inner.runs_stages()
    }

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        self.inner.preload(variant)
    }

    fn residency(&self) -> Residency {
        self.inner.residency()
    }

    fn unload(&mut self, variant: VariantId) {
        self.inner.unload(variant);
    }

    fn replace(&mut self, variant: VariantId, model: &Arc<LoadedModel>) {
        self.inner.replace(variant, model);
    }

    fn watch(&mut self, report: ReportAbsence) -> Option<GiveUp> {
        self.inner.watch(report)
    }

    fn models(&self) -> Option<Arc<ModelCache>> {
        self.inner.models()
    }
}
