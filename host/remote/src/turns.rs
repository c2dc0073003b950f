//! The batches that a server has. It runs one after another, in the order in which they were sent: the time
//! of a batch begins when those before it have ended.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::sleep_until;

/// The batches of a server.
pub(crate) struct Turns {
    /// Longest time of each.
    limit: Duration,
    order: watch::Sender<Order>,
}

/// A batch of a server, until this is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
    /// Longest time to its end, with the batches before it.
    pub(crate) longest: Duration,
}

/// The order of the batches. No clock.
#[derive(Debug)]
struct Order {
    next: u64,
    waiting: BTreeSet<u64>,
    /// When the first of them began, or begins at the latest.
    begins: Instant,
}

// === impl Turns ===

impl Turns {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            order: watch::Sender::new(Order::new(Instant::now())),
        }
    }

    /// A batch is sent.
    pub(crate) fn send(&self) -> Turn<'_> {
        let (mut number, mut longest) = (0, Duration::ZERO);
        self.order.send_modify(|order| {
            (number, longest) = order.send(Instant::now(), self.limit);
        });
        Turn {
            turns: self,
            number,
            longest,
        }
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// Waits until the time of the batch has passed.
    pub(crate) async fn passed(&self) {
        let mut order = self.turns.order.subscribe();
        let is_first = |order: &Order| order.waiting.first() == Some(&self.number);
        // No error: `self` holds the sender.
        let begins = match order.wait_for(is_first).await {
            Ok(order) => order.begins,
            Err(_) => return,
        };
        sleep_until((begins + self.turns.limit).into()).await;
    }

    /// The batch is given up, and its server may still run it.
    pub(crate) fn give_up(self) {
        let limit = self.turns.limit;
        let now = Instant::now();
        let given_up = |order: &mut Order| order.give_up(self.number, now, limit);
        self.turns.order.send_modify(given_up);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let end = |order: &mut Order| order.end(self.number, Instant::now());
        self.turns.order.send_modify(end);
    }
}

// === impl Order ===

impl Order {
    fn new(now: Instant) -> Self {
        Self {
            next: 0,
            waiting: BTreeSet::new(),
            begins: now,
        }
    }

    /// The number of a new batch, and its longest time.
    fn send(&mut self, now: Instant, limit: Duration) -> (u64, Duration) {
        if self.waiting.is_empty() {
            self.begins = self.begins.max(now);
        }
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number);
        let end = self.begins + limit * self.waiting.len() as u32;
        (number, end.saturating_duration_since(now))
    }

    /// The server has ended a batch. Does nothing if the batch was given up.
    fn end(&mut self, number: u64, now: Instant) {
        let was_first = self.waiting.first() == Some(&number);
        if self.waiting.remove(&number) && was_first {
            self.begins = now;
        }
    }

    /// A batch was given up. The server skips it if it has not begun; otherwise it may take all its time.
    fn give_up(&mut self, number: u64, now: Instant, limit: Duration) {
        let has_begun = self.waiting.first() == Some(&number) && self.begins <= now;
        if self.waiting.remove(&number) && has_begun {
            self.begins += limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_time_of_a_batch_begins_when_those_before_it_have_ended() {
        let start = Instant::now();
        let mut order = Order::new(start);
        let (a, of_a) = order.send(start, LIMIT);
        let (b, of_b) = order.send(start, LIMIT);
        assert_eq!((of_a, of_b), (s(10), s(20)));
        order.end(a, start + s(6));
        assert_eq!(order.begins, start + s(6));
        let (c, of_c) = order.send(start + s(9), LIMIT);
        assert_eq!(of_c, s(17), "7 s of the one before, and its own");
        // A server that runs two at a time: the first one gets no further time.
        order.end(c, start + s(10));
        assert_eq!(order.begins, start + s(6));
        order.end(b, start + s(12));
        assert_eq!(order.send(start + s(30), LIMIT).1, s(10), "it was idle");
    }

    #[test]
    fn a_batch_that_is_given_up_while_it_runs_has_its_time() {
        let start = Instant::now();
        let mut order = Order::new(start);
        let (a, _) = order.send(start, LIMIT);
        order.give_up(a, start + s(1), LIMIT);
        order.end(a, start + s(1));
        let (b, of_b) = order.send(start + s(1), LIMIT);
        assert_eq!(of_b, s(19), "the first one may run for 9 s");
        // Batches that have not begun take no time.
        order.give_up(b, start + s(2), LIMIT);
        let (c, of_c) = order.send(start + s(2), LIMIT);
        assert_eq!(of_c, s(18));
        // An answer shows that the server has ended those before.
        order.end(c, start + s(4));
        assert_eq!(order.send(start + s(4), LIMIT).1, s(10));
    }
}
