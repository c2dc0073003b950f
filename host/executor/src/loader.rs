//! A thread next to a worker that makes variants resident while the worker computes.
//!
//! No batch waits for it. A batch whose variant is resident starts. For any other batch the worker
//! thread loads the variant, or takes over the load if this thread has begun it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_threads::{ServiceThread, panic_text};

use crate::cache::ModelCache;
use crate::error::{CacheError, LoadError};
use crate::event::{Preloaded, WorkerEvent};

/// The thread and its queue. Dropping it waits for the load that is under way.
#[derive(Debug)]
pub(crate) struct Loader {
    // Dropped in this order: closing the channel ends the thread.
    commands: Sender<LoaderCommand>,
    _thread: ServiceThread,
}

#[derive(Debug)]
enum LoaderCommand {
    /// Load a variant and report it.
    Preload(VariantId),
    /// Load the variants that waiting batches need.
    Prepare(Soon),
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoaderRefusal {
    /// The queue is full.
    Full,
    /// The thread has ended.
    Down,
}

// === impl Loader ===

impl Loader {
    pub(crate) fn spawn(
        worker: WorkerId,
        name: &str,
        commands_max: usize,
        cache: Arc<ModelCache>,
        on_event: impl FnMut(WorkerEvent) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = bounded(commands_max.max(1));
        let body = LoaderThread {
            worker,
            cache,
            on_event,
            inbox,
        };
        let thread = ServiceThread::spawn(format!("{name}-load"), move || body.serve())?;
        Ok(Self {
            commands,
            _thread: thread,
        })
    }

    pub(crate) fn preload(&self, variant: VariantId) -> Result<(), LoaderRefusal> {
        self.send(LoaderCommand::Preload(variant))
    }

    pub(crate) fn prepare(&self, soon: Soon) -> Result<(), LoaderRefusal> {
        self.send(LoaderCommand::Prepare(soon))
    }

    fn send(&self, command: LoaderCommand) -> Result<(), LoaderRefusal> {
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                TrySendError::Full(_) => LoaderRefusal::Full,
                TrySendError::Disconnected(_) => LoaderRefusal::Down,
            })
    }
}

// === the thread ===

struct LoaderThread<F> {
    worker: WorkerId,
    cache: Arc<ModelCache>,
    on_event: F,
    inbox: Receiver<LoaderCommand>,
}

impl<F: FnMut(WorkerEvent)> LoaderThread<F> {
    fn serve(mut self) {
        while let Ok(command) = self.inbox.recv() {
            match command {
                LoaderCommand::Preload(variant) => self.preload(variant),
                LoaderCommand::Prepare(soon) => self.prepare(&soon),
            }
        }
    }

    fn preload(&mut self, variant: VariantId) {
        let kept = self.cache.kept_for(variant);
        let result = self.load(variant, &kept, kept.len());
        let result = result.map(Option::unwrap_or_default);
        self.report(variant, result, true);
    }

    /// Loads the missing variants in the order in which they are needed, until the next command
    /// arrives.
    fn prepare(&mut self, soon: &Soon) {
        for (at, variant) in self.cache.missing(soon) {
            if !self.inbox.is_empty() {
                return;
            }
            match self.load(variant, soon, at) {
                Ok(None) | Err(CacheError::NoRoom { .. } | CacheError::TooLarge { .. }) => {}
                Ok(Some(took)) => self.report(variant, Ok(took), false),
                Err(error) if error.is_repeated() => {}
                Err(error) => self.report(variant, Err(error), false),
            }
        }
    }

    fn load(
        &self,
        variant: VariantId,
        soon: &[VariantId],
        sooner: usize,
    ) -> Result<Option<Micros>, CacheError> {
        let load = || self.cache.load_ahead(variant, soon, sooner);
        catch_unwind(AssertUnwindSafe(load)).unwrap_or_else(|panic| {
            self.cache.abandon(variant);
            let reason = format!("the load panicked: {}", panic_text(&*panic));
            Err(LoadError::new(self.cache.name(variant), reason).into())
        })
    }

    fn report(&mut self, variant: VariantId, result: Result<Micros, CacheError>, asked: bool) {
        let event = WorkerEvent::Preloaded(Preloaded {
            worker: self.worker,
            variant,
            result,
            asked,
            residency: self.cache.residency(),
        });
        (self.on_event)(event);
    }
}
