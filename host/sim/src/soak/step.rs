//! The steps of a case. Each holds all its numbers, so that a step means the same when others are left out.

use super::hostile::PolicyKind;
use super::pool::CatalogChange;

/// One thing that happens to a pool. A worker's number counts round the workers that there are; `back`
/// counts requests back from the newest.
#[derive(Clone, Debug, PartialEq)]
pub enum SoakStep {
    /// A request arrives.
    Arrive {
        /// Its app.
        app: u32,
        /// Time to its deadline.
        slack_us: u64,
        /// The variant that its client pinned.
        pinned: Option<u32>,
        /// Its cost in rows of the profile.
        rows: f64,
    },
    /// Time passes; batches end and the scheduler is woken.
    Wait {
        /// The time.
        us: u64,
    },
    /// The neighbours of a request are counted.
    Evidence {
        /// The request.
        back: u64,
    },
    /// Counts come with another number of classes than the app has.
    WrongEvidence {
        /// The request.
        back: u64,
    },
    /// Counts come for a request that ended long ago, or never arrived.
    LateEvidence {
        /// The request's id, from a range that reaches beyond those that arrived.
        id: u64,
    },
    /// More requests at once than may be pending.
    Burst {
        /// Their app.
        app: u32,
        /// Requests.
        count: u32,
        /// Time to their deadlines.
        slack_us: u64,
    },
    /// An id arrives a second time.
    ArriveTwice {
        /// The request.
        back: u64,
    },
    /// A client goes away.
    Cancel {
        /// Its request.
        back: u64,
    },
    /// A worker's next batches take a multiple of the profile's time.
    Slow {
        /// The worker.
        worker: u32,
        /// The multiple; 1 ends it.
        factor: u64,
    },
    /// A worker fails its batch and serves on.
    Fail {
        /// The worker.
        worker: u32,
        /// Another try may succeed.
        repeatable: bool,
    },
    /// A worker ends the batch that it was sent last, before those that it was sent earlier.
    Overtake {
        /// The worker.
        worker: u32,
    },
    /// A worker vanishes, and its driver says so with the batch.
    Lose {
        /// The worker.
        worker: u32,
    },
    /// A worker vanishes.
    Down {
        /// The worker.
        worker: u32,
    },
    /// A worker takes no more batches; its running one may end.
    Leave {
        /// The worker.
        worker: u32,
    },
    /// A worker comes back.
    Up {
        /// The worker.
        worker: u32,
    },
    /// A worker's batch does not end.
    Hang {
        /// The worker.
        worker: u32,
    },
    /// The batch of a worker that counts as lost ends after all.
    AnswerLate {
        /// The worker.
        worker: u32,
        /// It failed.
        fails: bool,
    },
    /// A worker answers its last batch again.
    AnswerTwice {
        /// The worker.
        worker: u32,
    },
    /// A worker answers a batch of an earlier incarnation.
    AnswerOld {
        /// The worker.
        worker: u32,
    },
    /// A worker answers the batch of another one.
    AnswerOther {
        /// The worker.
        worker: u32,
    },
    /// A worker's resident variants change.
    Residency {
        /// The worker.
        worker: u32,
        /// One bit per variant.
        mask: u32,
    },
    /// The driver's timer is late: time passes and nothing is told.
    Sleep {
        /// The time.
        us: u64,
    },
    /// Another policy takes over.
    Swap {
        /// Its kind.
        policy: PolicyKind,
        /// Its seed.
        seed: u64,
    },
    /// The policy's file is gone.
    Remove,
    /// A canary begins.
    Canary {
        /// The policy that serves.
        serving: PolicyKind,
        /// The candidate.
        candidate: PolicyKind,
        /// Seed of policies and slots.
        seed: u64,
    },
    /// An operator ends the canary.
    EndCanary {
        /// The candidate serves from now on.
        promotes: bool,
        /// Seed of the policy that follows.
        seed: u64,
    },
    /// The catalog changes.
    Recatalog {
        /// The change.
        change: CatalogChange,
    },
    /// Decisions are watched from now on, or no longer.
    Watch {
        /// Whether they are.
        on: bool,
    },
    /// The server shuts down.
    Drain,
}

// === impl SoakStep ===

impl SoakStep {
    /// Name in reports; none for the usual events.
    pub fn fault(&self) -> Option<&'static str> {
        Some(match self {
            Self::Arrive { .. } | Self::Wait { .. } | Self::Evidence { .. } => return None,
            Self::WrongEvidence { .. } => "evidence of wrong shape",
            Self::LateEvidence { .. } => "evidence late",
            Self::Burst { .. } => "burst of arrivals",
            Self::ArriveTwice { .. } => "id used twice",
            Self::Cancel { .. } => "client cancels",
            Self::Slow { .. } => "worker slow",
            Self::Fail { .. } => "batch fails",
            Self::Overtake { .. } => "batch overtakes",
            Self::Lose { .. } | Self::Down { .. } => "worker dies",
            Self::Leave { .. } => "worker leaves",
            Self::Up { .. } => "worker returns",
            Self::Hang { .. } => "batch hangs",
            Self::AnswerLate { .. } => "answer late",
            Self::AnswerTwice { .. } => "answer twice",
            Self::AnswerOld { .. } => "answer of an earlier incarnation",
            Self::AnswerOther { .. } => "answer of another worker",
            Self::Residency { .. } => "models evicted",
            Self::Sleep { .. } => "timer late",
            Self::Swap { .. } => "policy swapped",
            Self::Remove => "policy removed",
            Self::Canary { .. } => "canary begins",
            Self::EndCanary { .. } => "canary ends",
            Self::Recatalog { .. } => "catalog changes",
            Self::Watch { .. } => "watch changes",
            Self::Drain => "drain",
        })
    }
}
