//! The thread of a worker: runs commands one after another and reports each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use switchyard_core::ids::{BatchId, VariantId, WorkerId};
use switchyard_core::time::Micros;
use switchyard_threads::panic_text;

use crate::command::{Replacements, WorkerCommand};
use crate::error::{CacheError, ExecuteError, LoadError};
use crate::event::{Preloaded, Unloaded, WorkerDown, WorkerEvent};
use crate::executor::{Executor, JobOutcome};
use crate::fault::DeviceFault;
use crate::job::{Finished, Job};

/// Owns the executor. Reports events while it holds no lock.
pub(crate) struct WorkerThread<F> {
    pub(crate) id: WorkerId,
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) on_event: F,
    /// Set once the worker is being dropped: batches that wait fail.
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) inbox: Receiver<WorkerCommand>,
    pub(crate) replacements: Replacements,
    /// Batches that the thread has.
    pub(crate) batches: Arc<AtomicUsize>,
}

// === impl WorkerThread ===

impl<F: FnMut(WorkerEvent)> WorkerThread<F> {
    /// Serves until the inbox is closed and empty.
    pub(crate) fn serve(mut self) {
        let mut is_lost = false;
        // A lost worker still takes commands: a batch that is sent while it goes down needs its
        // `Finished`.
        while let Ok(command) = self.inbox.recv() {
            if is_lost || self.stopping.load(Ordering::Relaxed) {
                self.refuse(command);
                continue;
            }
            match command {
                WorkerCommand::Run(mut job, inputs) => {
                    if inputs.is_some_and(|inputs| !inputs.put_back(&mut job)) {
                        self.skip(&job);
                    } else if let Err(reason) = self.run(job) {
                        is_lost = true;
                        self.report_down(reason);
                    }
                }
                WorkerCommand::Release(request) => self.executor.release(request),
                WorkerCommand::Preload(variant) => {
                    if let Err(reason) = self.preload(variant) {
                        is_lost = true;
                        self.report_down(reason);
                    }
                }
                WorkerCommand::Unload(variant) => {
                    self.executor.unload(variant);
                    self.report_unloaded(variant);
                }
                WorkerCommand::Replace(variant) => {
                    if let Some(model) = self.replacements.take(variant) {
                        self.executor.replace(variant, &model);
                    }
                }
            }
        }
    }

    /// Ends a batch that was cancelled.
    fn skip(&mut self, job: &Job) {
        for row in &job.rows {
            self.executor.release(row.request);
        }
        self.report_finished(job.batch, JobOutcome::not_begun(ExecuteError::Cancelled));
    }

    /// Runs a batch and reports it. An error is the reason why the worker is lost.
    fn run(&mut self, mut job: Job) -> Result<(), String> {
        let start = Instant::now();
        let executor = &mut self.executor;
        let outcome = catch_unwind(AssertUnwindSafe(|| executor.run(&mut job)));
        let outcome = outcome.unwrap_or_else(|panic| {
            for row in &job.rows {
                self.executor.release(row.request);
            }
            JobOutcome {
                result: Err(ExecuteError::Panicked {
                    reason: panic_text(&*panic),
                }),
                compute: Micros::from(start.elapsed()),
                load: Micros::ZERO,
            }
        });
        let lost = match &outcome.result {
            Err(error) if error.is_fatal() => Err(error.to_string()),
            _ => Ok(()),
        };
        self.report_finished(job.batch, outcome);
        lost
    }

    /// Makes a variant resident and reports it. An error is the reason why the worker is lost: its
    /// loads end with it.
    fn preload(&mut self, variant: VariantId) -> Result<(), String> {
        let executor = &mut self.executor;
        let loaded = catch_unwind(AssertUnwindSafe(|| executor.preload(variant)));
        let result = loaded.unwrap_or_else(|panic| {
            let reason = format!("the load panicked: {}", panic_text(&*panic));
            Err(LoadError::new(format!("variant {}", variant.0), reason).into())
        });
        if let Err(error) = &result
            && error.fault() == Some(DeviceFault::Lost)
        {
            return Err(error.to_string());
        }
        self.report_preloaded(variant, result);
        Ok(())
    }

    /// Ends a command of a worker that stops or is lost.
    fn refuse(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Run(job, _) => {
                self.report_finished(job.batch, JobOutcome::not_begun(ExecuteError::Stopped));
            }
            WorkerCommand::Release(request) => self.executor.release(request),
            WorkerCommand::Preload(variant) => {
                let reason = "the worker stopped before the load began";
                let error = LoadError::new(format!("variant {}", variant.0), reason);
                self.report_preloaded(variant, Err(error.into()));
            }
            // Its memory goes with the worker.
            WorkerCommand::Unload(variant) => self.report_unloaded(variant),
            WorkerCommand::Replace(_) => {}
        }
    }

    fn report_finished(&mut self, batch: BatchId, outcome: JobOutcome) {
        let finished = Finished {
            worker: self.id,
            batch,
            result: outcome.result,
            compute: outcome.compute,
            load: outcome.load,
            residency: self.executor.residency(),
        };
        // Before the report, which may bring the next batch.
        self.batches.fetch_sub(1, Ordering::Relaxed);
        (self.on_event)(WorkerEvent::Finished(finished));
    }

    fn report_preloaded(&mut self, variant: VariantId, result: Result<Micros, CacheError>) {
        let event = WorkerEvent::Preloaded(Preloaded {
            worker: self.id,
            variant,
            result,
            asked: true,
            residency: self.executor.residency(),
        });
        (self.on_event)(event);
    }

    fn report_unloaded(&mut self, variant: VariantId) {
        let event = WorkerEvent::Unloaded(Unloaded {
            worker: self.id,
            variant,
            residency: self.executor.residency(),
        });
        (self.on_event)(event);
    }

    fn report_down(&mut self, reason: String) {
        tracing::error!(worker = self.id.0, reason, "worker lost");
        let down = WorkerDown {
            worker: self.id,
            reason,
        };
        (self.on_event)(WorkerEvent::Down(down));
    }
}
