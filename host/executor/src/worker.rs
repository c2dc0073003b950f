//! A worker: a thread that owns an executor and is reached by typed commands.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use switchyard_core::ids::{BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use thiserror::Error;

use crate::error::{CacheError, ExecuteError, LoadError};
use crate::executor::{Executor, Ran};
use crate::job::{Finished, Job, Residency};
use crate::loader::{Loader, NotTaken};
use crate::source::LoadedModel;
use crate::threads;

/// How a worker is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Position in the catalog.
    pub id: WorkerId,
    /// Name in logs and of its threads.
    pub name: String,
    /// Threads that compute.
    pub threads: usize,
    /// The cores they run on, one each; none: any.
    pub cores: Vec<usize>,
    /// Commands that may wait for it. The core bounds what it has sent and not heard of again:
    /// one or two batches and a release per parked request, so that a few more than a worker's
    /// `parked_max` is never too little.
    pub commands_max: usize,
}

/// What a worker tells, from its own threads.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A batch has ended.
    Finished(Finished),
    /// A load that was asked for, or one ahead of time, has ended.
    Preloaded(Preloaded),
    /// A variant was let go of.
    Unloaded(Unloaded),
    /// The worker is lost. The batch at fault has been reported before; what waits, and what is
    /// still sent, is failed with [`ExecuteError::Stopped`].
    Down(WorkerDown),
}

/// The end of a load beside the batches.
#[derive(Debug)]
pub struct Preloaded {
    /// Where.
    pub worker: WorkerId,
    /// What was asked for.
    pub variant: VariantId,
    /// The time it took, zero when it was resident; or why it is not.
    pub result: Result<Micros, CacheError>,
    /// Somebody asked for it by [`Worker::preload`].
    pub asked: bool,
    /// What the worker's memory holds now.
    pub residency: Residency,
}

/// The end of an unload.
#[derive(Debug)]
pub struct Unloaded {
    /// Where.
    pub worker: WorkerId,
    /// What went.
    pub variant: VariantId,
    /// What the worker's memory holds now.
    pub residency: Residency,
}

/// A worker will run nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerDown {
    /// Which one.
    pub worker: WorkerId,
    /// What happened.
    pub reason: String,
}

/// A command that was not taken. It has had no effect.
#[derive(Debug, Error)]
pub enum Refused<T> {
    /// As many commands wait as may.
    #[error("the worker's command queue is full")]
    Full(T),
    /// Its thread has ended.
    #[error("the worker's thread has ended")]
    Down(T),
}

/// A thread with an executor, and one that loads models beside it. Dropping it lets the running batch end, fails what waits with
/// [`ExecuteError::Stopped`], and joins the thread.
#[derive(Debug)]
pub struct Worker {
    options: WorkerOptions,
    commands: Option<SyncSender<Command>>,
    loader: Option<Loader>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Command {
    Run(Job),
    Release(RequestId),
    Preload(VariantId),
    Unload(VariantId),
    Replace(VariantId, Weights),
}

/// So that a command can be shown.
struct Weights(Arc<LoadedModel>);

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name)
    }
}

// === impl Worker ===

impl Worker {
    /// Starts the threads. `on_event` is called on them, each with a clone of its own, so it should
    /// only pass the event on.
    ///
    /// The executor runs inside a rayon pool of the worker's own, see [`threads`].
    ///
    /// # Errors
    /// The operating system gives no threads, or not the cores asked for.
    pub fn spawn(
        options: WorkerOptions,
        executor: Box<dyn Executor>,
        on_event: impl FnMut(WorkerEvent) + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let pool = threads::pool(&options.name, options.threads, &options.cores)?;
        // Its reader sleeps at once where nothing waits. crossbeam's yields first, and what it yields
        // to on a small machine is what would send.
        let (commands, inbox) = sync_channel(options.commands_max.max(1));
        let stopping = Arc::new(AtomicBool::new(false));
        let loader = match executor.models() {
            Some(cache) => Some(Loader::spawn(
                options.id,
                &options.name,
                options.commands_max,
                cache,
                on_event.clone(),
            )?),
            None => None,
        };
        let body = Body {
            id: options.id,
            executor,
            on_event,
            stopping: Arc::clone(&stopping),
            inbox,
        };
        // The whole loop lives inside the pool: a batch costs no hop between threads.
        let thread = std::thread::Builder::new()
            .name(options.name.clone())
            .spawn(move || pool.install(move || body.serve()))?;
        Ok(Self {
            options,
            commands: Some(commands),
            loader,
            stopping,
            thread: Some(thread),
        })
    }

    /// How it was set up.
    pub fn options(&self) -> &WorkerOptions {
        &self.options
    }

    /// Hands over a batch; exactly one [`Finished`] follows, unless it is refused.
    ///
    /// # Errors
    /// Gives the job back when it was not taken.
    pub fn run(&self, job: Job) -> Result<(), Refused<Job>> {
        self.send(Command::Run(job)).map_err(|refused| {
            refused.map(|command| match command {
                Command::Run(job) => job,
                _ => unreachable!("a refused command comes back as it was sent"),
            })
        })
    }

    /// Drops a request's parked activations, after the batches handed over before this.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn release(&self, request: RequestId) -> Result<(), Refused<RequestId>> {
        self.send(Command::Release(request))
            .map_err(|refused| refused.map(|_| request))
    }

    /// Makes a variant resident beside the batches; a [`Preloaded`] follows. An executor that
    /// has no models to load beside does so after the batches handed over before this.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn preload(&self, variant: VariantId) -> Result<(), Refused<VariantId>> {
        match &self.loader {
            Some(loader) => loader.preload(variant).map_err(|not| match not {
                NotTaken::Full => Refused::Full(variant),
                NotTaken::Down => Refused::Down(variant),
            }),
            None => self
                .send(Command::Preload(variant))
                .map_err(|refused| refused.map(|_| variant)),
        }
    }

    /// Says what the batches that wait need, so that it is loaded while others compute. A hint:
    /// one too many is dropped.
    pub fn prepare(&self, soon: Soon) {
        if let Some(loader) = &self.loader {
            let _ = loader.prepare(soon);
        }
    }

    /// Lets go of a variant, pinned or not, after the batches handed over before this.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn unload(&self, variant: VariantId) -> Result<(), Refused<VariantId>> {
        self.send(Command::Unload(variant))
            .map_err(|refused| refused.map(|_| variant))
    }

    /// Runs the batches handed over after this on other weights of a variant.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn replace(
        &self,
        variant: VariantId,
        model: Arc<LoadedModel>,
    ) -> Result<(), Refused<VariantId>> {
        self.send(Command::Replace(variant, Weights(model)))
            .map_err(|refused| refused.map(|_| variant))
    }

    fn send(&self, command: Command) -> Result<(), Refused<Command>> {
        let Some(commands) = &self.commands else {
            return Err(Refused::Down(command));
        };
        commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(command) => Refused::Full(command),
            TrySendError::Disconnected(command) => Refused::Down(command),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.commands = None;
        self.loader = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(worker = self.options.name, "the worker thread panicked");
        }
    }
}

// === impl Refused ===

impl<T> Refused<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<U> {
        match self {
            Self::Full(command) => Refused::Full(f(command)),
            Self::Down(command) => Refused::Down(f(command)),
        }
    }
}

// === the thread ===

struct Body<F> {
    id: WorkerId,
    executor: Box<dyn Executor>,
    on_event: F,
    stopping: Arc<AtomicBool>,
    inbox: Receiver<Command>,
}

impl<F: FnMut(WorkerEvent)> Body<F> {
    fn serve(mut self) {
        let mut lost = false;
        // A lost worker goes on taking commands: one that is sent while it goes down must be
        // answered too.
        while let Ok(command) = self.inbox.recv() {
            if lost || self.stopping.load(Ordering::Relaxed) {
                self.refuse(command);
                continue;
            }
            match command {
                Command::Run(job) => {
                    if let Err(reason) = self.run(job) {
                        lost = true;
                        self.report_down(reason);
                    }
                }
                Command::Release(request) => self.executor.release(request),
                Command::Preload(variant) => self.preload(variant),
                Command::Unload(variant) => {
                    self.executor.unload(variant);
                    self.report_residency(variant);
                }
                Command::Replace(variant, Weights(model)) => {
                    self.executor.replace(variant, &model);
                }
            }
        }
    }

    /// Runs a batch and reports it. An error says why the worker is lost.
    fn run(&mut self, mut job: Job) -> Result<(), String> {
        let start = Instant::now();
        let executor = &mut self.executor;
        let ran = catch_unwind(AssertUnwindSafe(|| executor.run(&mut job)));
        let ran = ran.unwrap_or_else(|panic| {
            for row in &job.rows {
                self.executor.release(row.request);
            }
            Ran {
                result: Err(ExecuteError::Panicked {
                    reason: panic_text(&*panic),
                }),
                compute: Micros::from(start.elapsed()),
                load: Micros::ZERO,
            }
        });
        let lost = match &ran.result {
            Err(error) if error.is_fatal() => Err(error.to_string()),
            _ => Ok(()),
        };
        self.report(job.batch, ran);
        lost
    }

    fn preload(&mut self, variant: VariantId) {
        let executor = &mut self.executor;
        let loaded = catch_unwind(AssertUnwindSafe(|| executor.preload(variant)));
        let result = loaded.unwrap_or_else(|panic| {
            let reason = format!("the load panicked: {}", panic_text(&*panic));
            Err(LoadError::new(format!("variant {}", variant.0), reason).into())
        });
        let event = WorkerEvent::Preloaded(Preloaded {
            worker: self.id,
            variant,
            result,
            asked: true,
            residency: self.executor.residency(),
        });
        (self.on_event)(event);
    }

    fn report_residency(&mut self, variant: VariantId) {
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

    fn refuse(&mut self, command: Command) {
        match command {
            Command::Run(job) => {
                let ran = Ran {
                    result: Err(ExecuteError::Stopped),
                    compute: Micros::ZERO,
                    load: Micros::ZERO,
                };
                self.report(job.batch, ran);
            }
            Command::Release(request) => self.executor.release(request),
            // Nobody waits for these of a worker that ends.
            Command::Preload(_) | Command::Unload(_) | Command::Replace(..) => {}
        }
    }

    fn report(&mut self, batch: BatchId, ran: Ran) {
        let finished = Finished {
            worker: self.id,
            batch,
            result: ran.result,
            compute: ran.compute,
            load: ran.load,
            residency: self.executor.residency(),
        };
        (self.on_event)(WorkerEvent::Finished(finished));
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
