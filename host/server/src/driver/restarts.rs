//! Starts workers anew, on a thread of its own: the driver waits for neither threads nor devices.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use switchyard_core::ids::WorkerId;
use switchyard_executor::{Worker, WorkerEvent, WorkerOptions};
use switchyard_threads::ServiceThread;

use super::parts::BuildExecutor;

/// Pause before the second restart in a row; it doubles with each further one. The first restart
/// comes at once, so that the worker serves again within a second.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause of a worker of this process: a GPU that comes back is used soon, and one that does not
/// costs little.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Longest pause of a worker on another machine: one that is back serves within a second.
pub(crate) const REMOTE_PAUSE_MAX: Duration = Duration::from_millis(250);

/// A worker that has served for this long starts at once again.
const CALM: Duration = Duration::from_secs(60);

/// Threads of earlier starts of one worker that may still run. Each holds its memory and computes; a
/// worker that hangs every time must not fill the machine with them.
const STUCK_MAX: usize = 3;

/// Counts the starts of a worker from 0. Events of an earlier start are outdated.
pub type StartNumber = u64;

/// The end of a restart.
pub type Restarted = Result<Worker, String>;

/// Starts one worker, any number of times.
pub(super) struct WorkerStarter {
    pub(super) options: WorkerOptions,
    pub(super) build: BuildExecutor,
    pub(super) pause_max: Duration,
    /// Takes the events of a start.
    pub(super) on_event: Arc<dyn Fn(StartNumber, WorkerEvent) + Send + Sync>,
}

/// The pauses between the restarts of one worker.
#[derive(Debug)]
pub(super) struct Backoff {
    pause: Duration,
    pause_max: Duration,
    last: Option<Instant>,
}

/// A restart that is due at a time.
pub(super) struct DueRestart {
    pub(super) worker: WorkerId,
    pub(super) start: StartNumber,
    pub(super) at: Instant,
    /// Each thread of an earlier start holds a clone.
    pub(super) stuck: Arc<()>,
}

/// The thread that starts workers anew.
pub(super) struct Restarter {
    // Dropped in this order: closing the channel ends the thread.
    due: Sender<DueRestart>,
    _thread: ServiceThread,
}

// === impl WorkerStarter ===

impl WorkerStarter {
    pub(super) fn start(&mut self, start: StartNumber) -> Restarted {
        let executor = (self.build)()?;
        let on_event = Arc::clone(&self.on_event);
        let options = self.options.clone();
        Worker::spawn(options, executor, move |event| on_event(start, event))
            .map_err(|error| error.to_string())
    }
}

// === impl Backoff ===

impl Backoff {
    pub(super) fn new(pause_max: Duration) -> Self {
        Self {
            pause: Duration::ZERO,
            pause_max,
            last: None,
        }
    }

    /// The pause before the restart of a worker that was lost now.
    pub(super) fn next(&mut self, now: Instant) -> Duration {
        let is_calm = |last| now.saturating_duration_since(last) > CALM;
        if self.last.is_none_or(is_calm) {
            self.pause = Duration::ZERO;
        }
        let pause = self.pause;
        self.pause = (pause * 2).max(PAUSE).min(self.pause_max);
        self.last = Some(now + pause);
        pause
    }
}

// === impl Restarter ===

impl Restarter {
    /// `done` takes the end of each restart.
    pub(super) fn spawn(
        pool: &str,
        starters: Vec<WorkerStarter>,
        done: impl Fn(WorkerId, StartNumber, Restarted) + Send + 'static,
    ) -> io::Result<Self> {
        let (due, inbox) = unbounded();
        let name = format!("{pool}-restarts");
        let thread = ServiceThread::spawn(name, move || serve(starters, &inbox, &done))?;
        Ok(Self {
            due,
            _thread: thread,
        })
    }

    pub(super) fn restart(&self, due: DueRestart) {
        // The thread lives as long as this.
        let _ = self.due.send(due);
    }
}

fn serve(
    mut starters: Vec<WorkerStarter>,
    inbox: &Receiver<DueRestart>,
    done: &impl Fn(WorkerId, StartNumber, Restarted),
) {
    // At most one per worker: the driver asks again only after the end.
    let mut waiting: Vec<DueRestart> = Vec::new();
    loop {
        let next = waiting.iter().map(|due| due.at).min();
        let received = match next {
            Some(at) => inbox.recv_deadline(at),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(due) => waiting.push(due),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        for due in waiting.extract_if(.., |due| due.at <= now) {
            if let Some(starter) = starters.get_mut(due.worker.index()) {
                // The driver and this restart hold one clone each.
                let stuck = Arc::strong_count(&due.stuck).saturating_sub(2);
                let restarted = match stuck < STUCK_MAX {
                    true => starter.start(due.start),
                    false => Err(format!("{stuck} of its earlier threads do not end")),
                };
                done(due.worker, due.start, restarted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_comes_at_once_and_later_ones_after_growing_pauses() {
        let mut backoff = Backoff::new(PAUSE_MAX);
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = backoff.next(now);
            pauses.push(pause.as_secs());
            now += pause + Duration::from_millis(10);
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(backoff.next(now + CALM + PAUSE).as_secs(), 0, "it was calm");
        let mut remote = Backoff::new(REMOTE_PAUSE_MAX);
        let pauses = [0, 1, 2].map(|_| remote.next(now).as_millis());
        assert_eq!(
            pauses,
            [0, 250, 250],
            "one that is back serves within a second"
        );
    }
}
