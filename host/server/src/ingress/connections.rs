//! The connections being served, and which of them gives way when another one waits.
//!
//! A kept-alive connection costs a place for as long as its client likes. As long as nobody
//! waits that is what it is for. When somebody does, places are given up one at a time: by
//! whoever is answered next ([`Crowding`]), or by a connection on which nothing has happened
//! for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::Id;

/// How often idle connections are looked at while somebody waits. One that has been quiet
/// from one look to the next is idle: its next request, if it has one, is not on its way.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks after which a connection counts as idle when it has had an answer.
const IDLE_LOOKS: u32 = 2;

/// As above, before its first request: nobody would repeat that one by itself.
const SILENT_LOOKS: u32 = 20;

/// What a connection and the acceptor know of each other.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Beginnings and ends of exchanges: odd during one.
    turns: AtomicU64,
    give_way: Notify,
}

/// Somebody waits for a place. Read by every answer: one relaxed load where nobody does.
#[derive(Debug, Default)]
pub(super) struct Crowding(AtomicBool);

/// The places that are taken, by the task that serves there.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: HashMap<Id, Taken>,
    seated: u64,
}

#[derive(Debug)]
struct Taken {
    place: Arc<Place>,
    /// Of two that are equally idle the one that came first goes first.
    number: u64,
    /// Turns at the last look.
    turns: u64,
    /// Looks since then without a turn.
    quiet: u32,
    told: bool,
}

// === impl Place ===

impl Place {
    /// A request's head has been read.
    pub(super) fn begin(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer is ready to be written.
    pub(super) fn end(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Completes when the connection is to end with what it is doing.
    pub(super) async fn told_to_leave(&self) {
        self.give_way.notified().await;
    }
}

// === impl Crowding ===

impl Crowding {
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether this answer is to be its connection's last. One at a time: a place for one
    /// that waits, not a new connection for everybody.
    pub(super) fn take_turn(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

// === impl Places ===

impl Places {
    pub(super) fn seat(&mut self, task: Id, place: Arc<Place>) {
        self.seated += 1;
        let taken = Taken {
            place,
            number: self.seated,
            turns: 0,
            quiet: 0,
            told: false,
        };
        self.taken.insert(task, taken);
    }

    pub(super) fn leave(&mut self, task: Id) {
        self.taken.remove(&task);
    }

    /// Looks at every connection, and asks the one that has been idle longest to leave.
    pub(super) fn ask_one_to_leave(&mut self) {
        let mut idle: Option<&mut Taken> = None;
        for taken in self.taken.values_mut() {
            if taken.look() && idle.as_ref().is_none_or(|other| taken.goes_before(other)) {
                idle = Some(taken);
            }
        }
        if let Some(taken) = idle {
            taken.tell();
        }
    }

    /// Asks all of them.
    pub(super) fn ask_all_to_leave(&mut self) {
        self.taken.values_mut().for_each(Taken::tell);
    }
}

// === impl Taken ===

impl Taken {
    /// Whether it is idle and has not been told yet.
    fn look(&mut self) -> bool {
        let turns = self.place.turns.load(Ordering::Relaxed);
        let in_exchange = turns % 2 == 1;
        if in_exchange || turns != self.turns {
            self.quiet = 0;
        } else {
            self.quiet = self.quiet.saturating_add(1);
        }
        self.turns = turns;
        let enough = if turns == 0 { SILENT_LOOKS } else { IDLE_LOOKS };
        !self.told && self.quiet >= enough
    }

    fn goes_before(&self, other: &Self) -> bool {
        (self.quiet, other.number) > (other.quiet, self.number)
    }

    fn tell(&mut self) {
        self.told = true;
        self.place.give_way.notify_one();
    }
}
