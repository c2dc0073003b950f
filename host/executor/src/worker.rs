//! A worker: a thread that owns an executor and takes typed commands.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_threads::{ServiceThread, panic_text};
use thiserror::Error;

use crate::claim::{Claim, WaitingInputs};
use crate::command::{Replacements, WorkerCommand};
use crate::event::{WorkerDown, WorkerEvent};
use crate::executor::{Absence, Executor, GiveUp, ReleaseAtOnce};
use crate::job::Job;
use crate::loader::{Loader, LoaderRefusal};
use crate::pool::pool;
use crate::source::LoadedModel;
use crate::worker_thread::WorkerThread;

/// How a worker is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Position in the catalog.
    pub id: WorkerId,
    /// Name in logs and of its threads.
    pub name: String,
    /// Threads that compute.
    pub threads: usize,
    /// The cores they run on, one each; empty: any.
    pub cores: Vec<usize>,
    /// Commands that may wait for it. The core bounds the batches and releases that it sends before
    /// it learns of their end: one or two batches, and one release per parked request. So a few more
    /// than the worker's `parked_max` always suffice.
    pub commands_max: usize,
    /// Batches that it has at a time, if its executor runs several.
    pub outstanding: usize,
}

/// A command that was not taken. It has had no effect.
#[derive(Debug, Error)]
pub enum Refused<T> {
    /// `commands_max` commands wait.
    #[error("the worker's command queue is full")]
    Full(T),
    /// The worker's thread has ended.
    #[error("the worker's thread has ended")]
    Down(T),
}

/// A thread with an executor, and another one that loads models while batches run.
///
/// Dropping it lets the running batch end unless the executor can give it up, fails the waiting ones
/// with [`ExecuteError::Stopped`](crate::error::ExecuteError::Stopped), and joins both threads.
pub struct Worker {
    options: WorkerOptions,
    stopping: Arc<AtomicBool>,
    give_up: Option<GiveUp>,
    release_at_once: Option<ReleaseAtOnce>,
    replacements: Replacements,
    loader: Option<Loader>,
    /// At least one. Only the first has models.
    lanes: Vec<Lane>,
}

/// A thread that runs batches one after another.
struct Lane {
    // Dropped in this order: closing the channel ends the thread, which is joined last.
    commands: SyncSender<WorkerCommand>,
    _thread: ServiceThread,
    /// Batches that it has.
    batches: Arc<AtomicUsize>,
}

// === impl Worker ===

impl Worker {
    /// Starts the threads. The executor runs inside a rayon pool of the worker's own.
    ///
    /// Both threads report events by calling `on_event`, each its own clone: the worker thread
    /// after each batch, preload and unload, inside the rayon pool; the loader thread after each
    /// load. Neither holds a lock then. A thread takes its next command only once `on_event` has
    /// returned. So time spent in it delays this worker's next batch or load, and no other worker;
    /// the server spends it on the driver's inline turns, policy calls included. `on_event` may send
    /// commands to this worker, since none of them blocks. It must not panic, which would end the
    /// thread, and must not drop the worker, which joins the other thread. If the worker thread
    /// panics outside of a batch, it ends, and [`WorkerEvent::Down`] is its last event.
    ///
    /// # Errors
    /// The operating system refuses the threads or the cores.
    pub fn spawn(
        options: WorkerOptions,
        mut executor: Box<dyn Executor>,
        on_event: impl FnMut(WorkerEvent) + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
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
        let id = options.id;
        let give_up = executor.watch({
            let mut on_event = on_event.clone();
            Box::new(move |absence| {
                let down = |reason| WorkerDown { worker: id, reason };
                on_event(match absence {
                    Absence::Leaving(reason) => WorkerEvent::Leaving(down(reason)),
                    Absence::Lost(reason) => WorkerEvent::Down(down(reason)),
                });
            })
        });
        let release_at_once = executor.release_at_once();
        let replacements = Replacements::default();
        let others = (1..options.outstanding).map_while(|_| executor.another());
        let others: Vec<_> = others.collect();
        let lanes = std::iter::once(executor).chain(others).map(|executor| {
            let (stopping, replacements) = (Arc::clone(&stopping), replacements.clone());
            Lane::spawn(&options, executor, stopping, replacements, on_event.clone())
        });
        let lanes = lanes.collect::<std::io::Result<Vec<_>>>()?;
        Ok(Self {
            options,
            stopping,
            give_up,
            release_at_once,
            replacements,
            loader,
            lanes,
        })
    }

    /// How it was set up.
    pub fn options(&self) -> &WorkerOptions {
        &self.options
    }

    /// Sends a batch; exactly one [`Finished`](crate::job::Finished) follows, unless it is refused.
    ///
    /// # Errors
    /// Returns the job if it was not taken.
    pub fn run(&self, job: Job) -> Result<(), Refused<Job>> {
        self.start(job, None)
    }

    /// Sends a batch that is cancelled once the claim is dropped, unless it has begun. Exactly one
    /// [`Finished`](crate::job::Finished) follows also then, in its turn.
    ///
    /// # Errors
    /// Returns the job if it was not taken.
    pub fn run_claimed(&self, mut job: Job) -> Result<Claim, Refused<Job>> {
        let inputs = WaitingInputs::of(&mut job);
        match self.start(job, Some(inputs.clone())) {
            Ok(()) => Ok(Claim::on(inputs)),
            Err(refused) => Err(refused.map(|mut job| {
                inputs.put_back(&mut job);
                job
            })),
        }
    }

    fn start(&self, job: Job, inputs: Option<WaitingInputs>) -> Result<(), Refused<Job>> {
        let has = |lane: &&Lane| lane.batches.load(Ordering::Relaxed);
        let Some(lane) = self.lanes.iter().min_by_key(has) else {
            return Err(Refused::Down(job));
        };
        lane.batches.fetch_add(1, Ordering::Relaxed);
        let sent = lane.send(WorkerCommand::Run(job, inputs));
        sent.map_err(|refused| {
            lane.batches.fetch_sub(1, Ordering::Relaxed);
            refused.map(|command| match command {
                WorkerCommand::Run(job, _) => job,
                _ => unreachable!("a refused command comes back as it was sent"),
            })
        })
    }

    /// Drops a request's parked activations, after the batches sent before this unless the executor does
    /// it at once.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn release(&self, request: RequestId) -> Result<(), Refused<RequestId>> {
        if let Some(release) = &self.release_at_once {
            release(request);
            return Ok(());
        }
        self.send(WorkerCommand::Release(request))
            .map_err(|refused| refused.map(|_| request))
    }

    /// Makes a variant resident; a [`Preloaded`](crate::event::Preloaded) follows. The loader thread
    /// does it while batches run; an executor that has no model cache does it after the batches
    /// sent before this.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn preload(&self, variant: VariantId) -> Result<(), Refused<VariantId>> {
        match &self.loader {
            Some(loader) => loader.preload(variant).map_err(|refusal| match refusal {
                LoaderRefusal::Full => Refused::Full(variant),
                LoaderRefusal::Down => Refused::Down(variant),
            }),
            None => self
                .send(WorkerCommand::Preload(variant))
                .map_err(|refused| refused.map(|_| variant)),
        }
    }

    /// Names the variants that the waiting batches need, so that they are loaded while others
    /// compute. A hint: if the loader's queue is full it is dropped.
    pub fn prepare(&self, soon: Soon) {
        if let Some(loader) = &self.loader {
            let _ = loader.prepare(soon);
        }
    }

    /// Unloads a variant, pinned or not, after the batches sent before this; an
    /// [`Unloaded`](crate::event::Unloaded) follows.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn unload(&self, variant: VariantId) -> Result<(), Refused<VariantId>> {
        self.send(WorkerCommand::Unload(variant))
            .map_err(|refused| refused.map(|_| variant))
    }

    /// Runs the batches sent after this on other weights of a variant, also those sent after an
    /// earlier replacement that still waits.
    ///
    /// # Errors
    /// The command was not taken.
    pub fn replace(
        &self,
        variant: VariantId,
        model: Arc<LoadedModel>,
    ) -> Result<(), Refused<VariantId>> {
        if !self.replacements.put(variant, model) {
            return Ok(());
        }
        self.send(WorkerCommand::Replace(variant))
            .map_err(|refused| {
                self.replacements.take(variant);
                refused.map(|_| variant)
            })
    }

    fn send(&self, command: WorkerCommand) -> Result<(), Refused<WorkerCommand>> {
        match self.lanes.first() {
            Some(lane) => lane.send(command),
            None => Err(Refused::Down(command)),
        }
    }
}

// === impl Lane ===

impl Lane {
    fn spawn(
        options: &WorkerOptions,
        executor: Box<dyn Executor>,
        stopping: Arc<AtomicBool>,
        replacements: Replacements,
        on_event: impl FnMut(WorkerEvent) + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let pool = pool(&options.name, options.threads, &options.cores)?;
        // Its receiver sleeps at once if nothing waits. crossbeam's yields first; on a machine with
        // few cores it yields to the thread that is about to send.
        let (commands, inbox) = sync_channel(options.commands_max.max(1));
        let (id, batches) = (options.id, Arc::new(AtomicUsize::new(0)));
        let mut on_end = on_event.clone();
        let body = WorkerThread {
            id,
            executor,
            on_event,
            stopping,
            inbox,
            replacements,
            batches: Arc::clone(&batches),
        };
        // The whole loop runs inside the pool, so that no batch hops between threads.
        let thread = ServiceThread::spawn(options.name.clone(), move || {
            let served = catch_unwind(AssertUnwindSafe(|| pool.install(move || body.serve())));
            if let Err(panic) = served {
                let reason = format!("its thread panicked: {}", panic_text(&*panic));
                tracing::error!(worker = id.0, reason, "worker lost");
                on_end(WorkerEvent::Down(WorkerDown { worker: id, reason }));
            }
        })?;
        Ok(Self {
            commands,
            _thread: thread,
            batches,
        })
    }

    fn send(&self, command: WorkerCommand) -> Result<(), Refused<WorkerCommand>> {
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                TrySendError::Full(command) => Refused::Full(command),
                TrySendError::Disconnected(command) => Refused::Down(command),
            })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Before the channel closes: the thread fails the batches that wait instead of running them.
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(give_up) = &self.give_up {
            give_up();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Worker").field(&self.options).finish()
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
