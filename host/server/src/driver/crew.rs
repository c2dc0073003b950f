//! The workers of a pool, each with its restarts.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use switchyard_core::ids::WorkerId;
use switchyard_executor::Worker;

use super::parts::WorkerAddress;
use super::restarts::{Backoff, DueRestart, Restarter, StartNumber};

/// Pause before the next look at a slot without a server: there may be hundreds.
const FREE_PAUSE: Duration = Duration::from_secs(1);

/// The workers of a pool.
pub(super) struct Crew {
    members: Vec<CrewMember>,
    restarter: Restarter,
}

struct CrewMember {
    worker: Worker,
    start: StartNumber,
    /// When the start that is under way began, or begins.
    restart_at: Option<Instant>,
    starts: StartNumber,
    backoff: Backoff,
    /// Why it was lost last; empty while it serves.
    lost_by: String,
    stuck: Arc<()>,
    address: Option<WorkerAddress>,
}

/// A worker in its first start.
pub(super) struct FirstStart {
    pub(super) worker: Worker,
    /// The longest pause between two restarts.
    pub(super) pause_max: Duration,
    pub(super) address: Option<WorkerAddress>,
}

// === impl Crew ===

impl Crew {
    /// Of workers by id.
    pub(super) fn new(workers: Vec<FirstStart>, restarter: Restarter) -> Self {
        let member = |first: FirstStart| CrewMember {
            worker: first.worker,
            start: 0,
            restart_at: None,
            starts: 0,
            backoff: Backoff::new(first.pause_max),
            lost_by: String::new(),
            stuck: Arc::new(()),
            address: first.address,
        };
        Self {
            members: workers.into_iter().map(member).collect(),
            restarter,
        }
    }

    pub(super) fn get(&self, worker: WorkerId) -> Option<&Worker> {
        Some(&self.members.get(worker.index())?.worker)
    }

    /// All workers, by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.members.iter().map(|member| &member.worker)
    }

    /// The address of a worker's server: `None` if the worker runs in this process, `Some(None)` if its slot
    /// is free.
    pub(super) fn address(&self, worker: WorkerId) -> Option<Option<String>> {
        let member = self.members.get(worker.index())?;
        member.address.as_ref().map(|address| address())
    }

    /// Whether an event of this start of a worker is up to date.
    pub(super) fn is_current(&self, worker: WorkerId, start: StartNumber) -> bool {
        let member = self.members.get(worker.index());
        member.is_some_and(|member| member.start == start)
    }

    /// Starts a worker anew after its pause, which is returned; none if the loss is known. The old
    /// one stays until then: a batch that is overdue may still end. If that was so, the restart is
    /// still under way at the next loss.
    pub(super) fn restart(&mut self, worker: WorkerId) -> Option<Duration> {
        let member = self.members.get_mut(worker.index())?;
        let now = Instant::now();
        if let Some(at) = member.restart_at {
            let serves = member.lost_by.is_empty();
            return serves.then(|| at.saturating_duration_since(now));
        }
        let is_free = member.address.as_ref().is_some_and(|at| at().is_none());
        let least = if is_free { FREE_PAUSE } else { Duration::ZERO };
        let pause = member.backoff.next(now).max(least);
        member.starts += 1;
        member.restart_at = Some(now + pause);
        self.restarter.restart(DueRestart {
            worker,
            start: member.starts,
            at: now + pause,
            stuck: Arc::clone(&member.stuck),
        });
        Some(pause)
    }

    /// Keeps why a worker is lost. False: for the same reason as at the last look.
    pub(super) fn is_news(&mut self, worker: WorkerId, reason: &str) -> bool {
        let Some(member) = self.members.get_mut(worker.index()) else {
            return false;
        };
        let is_news = member.lost_by != reason;
        member.lost_by.replace_range(.., reason);
        is_news
    }

    /// The restart of a worker has ended, well or not.
    pub(super) fn restart_ended(&mut self, worker: WorkerId) {
        if let Some(member) = self.members.get_mut(worker.index()) {
            member.restart_at = None;
        }
    }

    /// Puts a started worker into service; the one before is dropped.
    pub(super) fn replace(&mut self, worker: WorkerId, start: StartNumber, started: Worker) {
        if let Some(member) = self.members.get_mut(worker.index()) {
            member.start = start;
            member.lost_by.clear();
            let old = std::mem::replace(&mut member.worker, started);
            drop_elsewhere(old, Arc::clone(&member.stuck));
        }
    }

    /// Drops a started worker: the old one serves again.
    pub(super) fn dismiss(&self, worker: WorkerId, started: Worker) {
        if let Some(member) = self.members.get(worker.index()) {
            drop_elsewhere(started, Arc::clone(&member.stuck));
        }
    }
}

/// Dropping a worker joins its threads, which may hang: a thread of its own waits for them.
fn drop_elsewhere(worker: Worker, stuck: Arc<()>) {
    let name = format!("{}-end", worker.options().name);
    let spawned = thread::Builder::new().name(name).spawn(move || {
        drop(worker);
        drop(stuck);
    });
    if let Err(error) = spawned {
        // The closure, and with it the worker, was dropped and joined here.
        tracing::error!(%error, "no thread to end a worker on");
    }
}
