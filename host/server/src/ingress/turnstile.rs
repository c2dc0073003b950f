//! The order of the work on the HTTP threads under a flood of requests.
//!
//! Without it each request that has been read is decoded, and each answer that has come is written,
//! before a connection that came later is looked at. With thousands of busy connections a health
//! check then waits for all of them: `switchyard overload --live --connections 3500` shows half the
//! time with turnstiles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, yield_now};

/// Requests or answers that come before all other work that is ready.
const PLACES: usize = 8;

/// Requests under way up to which all pass: waiting for a place costs a tenth of the requests per
/// second.
const CROWD: usize = 256;

/// Where requests and answers pass.
#[derive(Debug)]
pub(super) struct Turnstiles {
    requests: Turnstile,
    answers: Turnstile,
    under_way: AtomicUsize,
}

/// A request from its head to its answer.
pub(super) struct UnderWay<'a>(&'a Turnstiles);

/// Lets a few through in each round of the runtime's tasks, first come first served.
#[derive(Debug)]
pub(super) struct Turnstile {
    round: Arc<Round>,
    turning: AbortHandle,
}

#[derive(Debug)]
struct Round {
    /// Those left in this round.
    places: Semaphore,
    waiting: AtomicUsize,
    is_over: Notify,
}

// === impl Turnstiles ===

impl Turnstiles {
    /// Need a runtime, which turns them until they are dropped.
    pub(super) fn start() -> Self {
        Self {
            requests: Turnstile::start(),
            answers: Turnstile::start(),
            under_way: AtomicUsize::new(0),
        }
    }

    /// Whether requests wait for places.
    pub(super) fn is_crowded(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > CROWD
    }

    /// Counts a request until the value is dropped.
    pub(super) fn enter(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }
}

// === impl UnderWay ===

impl UnderWay<'_> {
    /// Waits for a place to decode a request; returns the time waited.
    pub(super) async fn request(&self) -> Duration {
        self.pass(&self.0.requests).await
    }

    /// Waits for a place to write an answer.
    pub(super) async fn answer(&self) {
        self.pass(&self.0.answers).await;
    }

    async fn pass(&self, turnstile: &Turnstile) -> Duration {
        match self.0.is_crowded() {
            true => turnstile.pass().await,
            false => Duration::ZERO,
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Turnstile ===

impl Turnstile {
    fn start() -> Self {
        let round = Arc::new(Round {
            places: Semaphore::new(PLACES),
            waiting: AtomicUsize::new(0),
            is_over: Notify::new(),
        });
        let turning = tokio::spawn(turn(Arc::clone(&round))).abort_handle();
        Self { round, turning }
    }

    /// Waits for a place; returns the time waited.
    async fn pass(&self) -> Duration {
        let round = &*self.round;
        if let Ok(place) = round.places.try_acquire() {
            place.forget();
            return Duration::ZERO;
        }
        let began = Instant::now();
        let _waiter = Waiter::new(round);
        round.is_over.notify_one();
        // An error: it was closed, which it never is.
        if let Ok(place) = round.places.acquire().await {
            place.forget();
        }
        began.elapsed()
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        self.turning.abort();
    }
}

async fn turn(round: Arc<Round>) {
    loop {
        round.is_over.notified().await;
        loop {
            // All other tasks that are ready run, and the system is asked for further ones.
            yield_now().await;
            let left = round.places.available_permits();
            round.places.add_permits(PLACES.saturating_sub(left));
            if round.waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
    }
}

/// Counts a waiting request, also one whose client leaves.
struct Waiter<'a>(&'a Round);

impl<'a> Waiter<'a> {
    fn new(round: &'a Round) -> Self {
        round.waiting.fetch_add(1, Ordering::Relaxed);
        Self(round)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another task is looked at after each few of them.
    #[tokio::test]
    async fn a_flood_of_requests_does_not_hold_up_other_tasks() {
        let turnstile = Arc::new(Turnstile::start());
        let passed = Arc::new(AtomicUsize::new(0));
        for _ in 0..1_000 {
            let (turnstile, passed) = (Arc::clone(&turnstile), Arc::clone(&passed));
            tokio::spawn(async move {
                turnstile.pass().await;
                passed.fetch_add(1, Ordering::Relaxed);
            });
        }
        let (mut before, mut most) = (0, 0);
        while before < 1_000 {
            yield_now().await;
            let now = passed.load(Ordering::Relaxed);
            most = most.max(now - before);
            before = now;
        }
        assert!(most <= 2 * PLACES, "{most}");
    }

    #[tokio::test]
    async fn few_requests_never_wait() {
        let turnstiles = Turnstiles::start();
        let few: Vec<_> = (0..CROWD).map(|_| turnstiles.enter()).collect();
        for request in &few {
            assert_eq!(request.request().await, Duration::ZERO);
        }
        assert_eq!(turnstiles.requests.round.places.available_permits(), PLACES);
        let one_more = turnstiles.enter();
        one_more.request().await;
        assert!(turnstiles.requests.round.places.available_permits() < PLACES);
        drop((few, one_more));
        assert_eq!(turnstiles.under_way.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn requests_that_leave_take_no_place() {
        let turnstile = Turnstile::start();
        for _ in 0..10 * PLACES {
            let given_up = tokio::time::timeout(Duration::ZERO, turnstile.pass());
            // Waited or passed: both are fine.
            let _ = given_up.await;
        }
        let passed = tokio::time::timeout(Duration::from_secs(5), turnstile.pass());
        assert!(passed.await.is_ok(), "no place is left");
    }
}
