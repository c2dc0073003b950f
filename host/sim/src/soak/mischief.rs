//! Counts of the faults of a case's policies, and the time of their calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::time::Micros;

/// One misbehaviour of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Act {
    /// Its call trapped.
    Traps,
    /// Its call took longer than its budget and was cut.
    Stalls,
    /// Its call took a long time and gave a plan.
    Dawdles,
    /// Its plan names anything.
    Lies,
    /// It keeps requests where nothing starts them, or decides nothing.
    Hoards,
    /// It takes batches back that it placed, or replaces its routes.
    ChangesItsMind,
    /// It rejects everything.
    Refuses,
    /// It asks for windows at once or in the past.
    Nags,
    /// It fails to take a catalog, or to save or restore its state.
    FailsCalls,
}

/// Counts by [`Act`], shared by a case and its policies.
#[derive(Clone, Debug, Default)]
pub(super) struct Mischief(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    acts: [AtomicU64; Act::ALL.len()],
    taken_us: AtomicU64,
    accused: Mutex<Option<String>>,
}

// === impl Act ===

impl Act {
    pub(super) const ALL: [Self; 9] = [
        Self::Traps,
        Self::Stalls,
        Self::Dawdles,
        Self::Lies,
        Self::Hoards,
        Self::ChangesItsMind,
        Self::Refuses,
        Self::Nags,
        Self::FailsCalls,
    ];

    /// Name in reports.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Traps => "policy traps",
            Self::Stalls => "policy stalls",
            Self::Dawdles => "policy dawdles",
            Self::Lies => "policy lies",
            Self::Hoards => "policy hoards",
            Self::ChangesItsMind => "policy changes its mind",
            Self::Refuses => "policy refuses all",
            Self::Nags => "policy nags",
            Self::FailsCalls => "policy fails other calls",
        }
    }
}

// === impl Mischief ===

impl Mischief {
    pub(super) fn note(&self, act: Act) {
        self.0.acts[act as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A call takes this long.
    pub(super) fn take(&self, time: Micros) {
        self.0.taken_us.fetch_add(time.0, Ordering::Relaxed);
    }

    /// The time that calls took since the last question.
    pub(super) fn taken(&self) -> Micros {
        Micros(self.0.taken_us.swap(0, Ordering::Relaxed))
    }

    /// A policy was shown a window that is wrong.
    pub(super) fn accuse(&self, detail: String) {
        let mut accused = self
            .0
            .accused
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        accused.get_or_insert(detail);
    }

    /// The first wrong window.
    pub(super) fn accused(&self) -> Option<String> {
        let accused = self
            .0
            .accused
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        accused.clone()
    }

    /// Counts by label.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.0.acts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        Act::ALL.into_iter().map(Act::label).zip(counts)
    }
}
