//! A thread beside a worker that makes variants resident while the worker computes.
//!
//! No batch waits for it: a batch whose variant is resident starts, and one whose variant is not
//! has it loaded on the worker's own thread, or gets it from here when that very load is under
//! way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;

use crate::cache::ModelCache;
use crate::error::{CacheError, LoadError};
use crate::worker::{Preloaded, WorkerEvent, panic_text};

/// The thread and the way to it. Dropping it waits for the load that is under way.
#[derive(Debug)]
pub(crate) struct Loader {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Command {
    /// Somebody asks for a variant and waits for the end.
    Preload(VariantId),
    /// The batches that wait need these.
    Prepare(Soon),
}

/// A command that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// As many wait as may.
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
        let body = Body {
            worker,
            cache,
            on_event,
            inbox,
        };
        let thread = std::thread::Builder::new()
            .name(format!("{name}-load"))
            .spawn(move || body.serve())?;
        Ok(Self {
            commands: Some(commands),
            thread: Some(thread),
        })
    }

    pub(crate) fn preload(&self, variant: VariantId) -> Result<(), NotTaken> {
        self.send(Command::Preload(variant))
    }

    pub(crate) fn prepare(&self, soon: Soon) -> Result<(), NotTaken> {
        self.send(Command::Prepare(soon))
    }

    fn send(&self, command: Command) -> Result<(), NotTaken> {
        let Some(commands) = &self.commands else {
            return Err(NotTaken::Down);
        };
        commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => NotTaken::Full,
            TrySendError::Disconnected(_) => NotTaken::Down,
        })
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a loader thread panicked");
        }
    }
}

// === the thread ===

struct Body<F> {
    worker: WorkerId,
    cache: Arc<ModelCache>,
    on_event: F,
    inbox: Receiver<Command>,
}

impl<F: FnMut(WorkerEvent)> Body<F> {
    fn serve(mut self) {
        while let Ok(command) = self.inbox.recv() {
            match command {
                Command::Preload(variant) => self.preload(variant),
                Command::Prepare(soon) => self.prepare(&soon),
            }
        }
    }

    fn preload(&mut self, variant: VariantId) {
        // Nothing goes for it, unless it was to stay for ever.
        let others = self.cache.not_for(variant);
        let result = self.load(variant, &others, others.len());
        let result = result.map(Option::unwrap_or_default);
        self.report(variant, result, true);
    }

    /// Loads what is missing, in the order in which it is needed, until there is something
    /// newer to do.
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
