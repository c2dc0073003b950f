//! Keeps a scheduler from acting without its lease. Whatever acts asks here at the last moment: the answer
//! is a comparison with the monotonic clock, so that a process that was paused does not act on a lease that
//! has ended meanwhile.

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;

/// Whether this process may act.
#[derive(Debug, Default)]
pub struct Fence(watch::Sender<FenceState>);

#[derive(Debug, Default)]
struct FenceState {
    /// Counts the times that the lease was obtained.
    term: u64,
    /// The end of the lease, unless it is renewed; none: not held.
    until: Option<Instant>,
    /// The scheduler that is active; empty: unknown.
    active: String,
}

/// A time in which the lease is held without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term(u64);

/// Another scheduler is active, or none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("stands by: {}", active.as_ref().map_or_else(
    || "no scheduler is active; try again".to_owned(),
    |active| format!("the active scheduler is `{active}`"),
))]
pub struct NotActive {
    /// The active one, if it is known.
    pub active: Option<String>,
}

// === impl Fence ===

impl Fence {
    /// The term of now.
    ///
    /// # Errors
    /// The lease is not held.
    pub fn enter(&self) -> Result<Term, NotActive> {
        let state = self.0.borrow();
        state.check().map(|()| Term(state.term))
    }

    /// Whether the lease is held still, without a gap.
    ///
    /// # Errors
    /// The term has ended.
    pub fn check(&self, term: Term) -> Result<(), NotActive> {
        let state = self.0.borrow();
        match state.term == term.0 {
            true => state.check(),
            false => Err(state.not_active()),
        }
    }

    /// Whether the lease is held.
    pub fn is_held(&self) -> bool {
        self.enter().is_ok()
    }

    /// Waits for the end of a term. Cancel safe.
    pub async fn ended(&self, term: Term) {
        let has_ended = |state: &FenceState| state.term != term.0 || state.until.is_none();
        // No error: the sender is part of `self`.
        let _ = self.0.subscribe().wait_for(has_ended).await;
    }

    /// Waits until the lease is held, or until it is not. Cancel safe.
    pub async fn turned(&self, is_held: bool) {
        let has_turned = |state: &FenceState| state.until.is_some() == is_held;
        let _ = self.0.subscribe().wait_for(has_turned).await;
    }

    /// The lease is held until then.
    pub(super) fn take(&self, until: Instant, name: &str) {
        self.0.send_modify(|state| {
            state.term += 1;
            state.until = Some(until);
            name.clone_into(&mut state.active);
        });
        tracing::info!(name, "this scheduler is active");
    }

    /// The lease was renewed. `false`: too late, it had ended before.
    pub(super) fn extend(&self, until: Instant) -> bool {
        let mut is_held = false;
        self.0.send_if_modified(|state| {
            is_held = state.check().is_ok();
            if is_held {
                state.until = Some(until);
            }
            false
        });
        is_held
    }

    /// The lease is not held any more, or perhaps not.
    pub(super) fn step_down(&self) {
        let was_held = self.0.send_if_modified(|state| {
            let was_held = state.until.take().is_some();
            if was_held {
                state.active.clear();
            }
            was_held
        });
        if was_held {
            tracing::warn!("this scheduler stands by: its lease has ended");
        }
    }

    /// Another scheduler has the lease.
    pub(super) fn stands_by(&self, active: &str) {
        let is_news = self.0.send_if_modified(|state| {
            let is_news = state.active != active;
            active.clone_into(&mut state.active);
            is_news
        });
        if is_news {
            tracing::info!(active, "this scheduler stands by");
        }
    }
}

// === impl FenceState ===

impl FenceState {
    fn check(&self) -> Result<(), NotActive> {
        match self.until {
            Some(until) if Instant::now() < until => Ok(()),
            _ => Err(self.not_active()),
        }
    }

    fn not_active(&self) -> NotActive {
        // Its own name if it has just lost the lease.
        let is_known = !self.active.is_empty() && self.until.is_none();
        NotActive {
            active: is_known.then(|| self.active.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    fn later(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn nothing_acts_without_the_lease_or_past_its_end() {
        let fence = Fence::default();
        let reason = |fence: &Fence| fence.enter().unwrap_err().to_string();
        assert_eq!(
            reason(&fence),
            "stands by: no scheduler is active; try again"
        );
        fence.stands_by("10.0.0.1:8000");
        let other = "stands by: the active scheduler is `10.0.0.1:8000`";
        assert_eq!(reason(&fence), other);
        fence.take(later(60_000), "here");
        let term = fence.enter().unwrap();
        assert!(fence.extend(later(50)));
        assert_eq!(fence.check(term), Ok(()));
        std::thread::sleep(Duration::from_millis(60));
        // The clock alone decides, before any task has run.
        assert!(fence.check(term).is_err() && !fence.is_held());
        assert!(!fence.extend(later(60_000)), "a renewal after the end");
        fence.step_down();
        fence.take(later(60_000), "here");
        assert!(fence.is_held());
        assert!(fence.check(term).is_err(), "requests of an earlier term");
    }

    #[tokio::test]
    async fn the_end_of_a_term_wakes_those_who_wait_for_it() {
        let fence = Fence::default();
        fence.take(later(60_000), "here");
        let term = fence.enter().unwrap();
        let ended = fence.ended(term);
        tokio::pin!(ended);
        assert!(fence.extend(later(60_000)));
        let early = tokio::time::timeout(Duration::from_millis(20), &mut ended).await;
        assert!(early.is_err());
        fence.step_down();
        ended.await;
    }
}
