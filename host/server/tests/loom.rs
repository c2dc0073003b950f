//! Flat combining in all interleavings of its threads, up to a number of preemptions.
//!
//! A message that no thread handles makes the model wait for ever, which loom reports as a
//! deadlock.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use loom::sync::Arc;
use loom::sync::mpsc::{Receiver, Sender, channel};
use loom::thread::{self, JoinHandle};

#[path = "../src/driver/combining.rs"]
#[allow(dead_code)] // The model has no use for some ways to send.
mod combining;

/// The types that `combining` synchronises with.
mod sync {
    use std::future::poll_fn;
    use std::task::Poll;

    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// As tokio's: pending once.
    pub(super) async fn yield_now() {
        let mut has_yielded = false;
        poll_fn(|_| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

use combining::{Combined, Combining, NotSent};

/// Of each thread before another one may run. Bugs of this kind need one or two.
const PREEMPTIONS: usize = 2;

/// A message for the timer thread.
const FOR_TIMER: u32 = 100;

/// After this message a turn is due at once.
const WAKES: u32 = 200;

/// Reports the messages that it handles.
struct State {
    handled: Sender<u32>,
    is_quick: bool,
    wakes: bool,
}

impl Combined for State {
    type Message = u32;

    fn is_inline(message: &u32) -> bool {
        *message != FOR_TIMER
    }

    fn turn(&mut self, messages: &mut VecDeque<u32>) {
        if std::mem::take(&mut self.wakes) {
            self.handled.send(WAKES).unwrap();
        }
        for message in messages.drain(..) {
            if message == WAKES {
                self.wakes = true;
            } else {
                self.handled.send(message).unwrap();
            }
        }
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakes.then(Instant::now)
    }

    fn end(&mut self) {}
}

/// A state and its timer thread.
struct Bed {
    combining: Arc<Combining<State>>,
    handled: Receiver<u32>,
    timer: JoinHandle<()>,
}

impl Bed {
    fn start(capacity: usize, is_quick: bool) -> Self {
        let (sender, handled) = channel();
        let combining = Arc::new(Combining::new(capacity));
        let running = Arc::clone(&combining);
        let timer = thread::spawn(move || {
            running.run(State {
                handled: sender,
                is_quick,
                wakes: false,
            });
        });
        Self {
            combining,
            handled,
            timer,
        }
    }

    /// Sends on a thread.
    fn spawn(
        &self,
        send: impl FnOnce(&Combining<State>) -> Result<(), NotSent> + 'static,
    ) -> JoinHandle<()> {
        let combining = Arc::clone(&self.combining);
        thread::spawn(move || send(&combining).unwrap())
    }

    /// Waits until each of these messages has been handled once, and stops the timer thread.
    fn finish(self, sent: &[u32], senders: Vec<JoinHandle<()>>) {
        let mut handled: Vec<_> = sent.iter().map(|_| self.handled.recv().unwrap()).collect();
        handled.sort_unstable();
        assert_eq!(handled, sent);
        for sender in senders {
            sender.join().unwrap();
        }
        self.combining.stop();
        self.timer.join().unwrap();
        assert!(self.handled.try_recv().is_err(), "a message came twice");
        assert_eq!(self.combining.send(1), Err(NotSent::Stopped));
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut explored = loom::model::Builder::new();
    explored.preemption_bound = Some(PREEMPTIONS);
    explored.check(model);
}

/// Runs a future to its end on this thread.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::yield_now(),
        }
    }
}

#[test]
fn inline_turns_strand_no_message() {
    explore(|| {
        let bed = Bed::start(8, true);
        let senders = [2, 3].map(|message| {
            let send = move |combining: &Combining<State>| combining.send_inline(message);
            bed.spawn(send)
        });
        bed.combining.send_inline(1).unwrap();
        bed.finish(&[1, 2, 3], senders.into());
    });
}

#[test]
fn slow_turns_strand_no_message() {
    explore(|| {
        let bed = Bed::start(8, false);
        let other = bed.spawn(|combining| combining.send_inline(2));
        bed.combining.send_inline(1).unwrap();
        bed.finish(&[1, 2], vec![other]);
    });
}

#[test]
fn the_timer_thread_gets_its_messages() {
    explore(|| {
        let bed = Bed::start(8, true);
        let other = bed.spawn(|combining| combining.send_inline(FOR_TIMER));
        bed.combining.send_inline(1).unwrap();
        bed.finish(&[1, FOR_TIMER], vec![other]);
    });
}

#[test]
fn bursts_strand_no_message() {
    explore(|| {
        let bed = Bed::start(8, true);
        let other = bed.spawn(|combining| wait_for(combining.send_in_burst(2, 8)));
        wait_for(bed.combining.send_in_burst(1, 8)).unwrap();
        bed.finish(&[1, 2], vec![other]);
    });
}

#[test]
fn a_burst_and_a_worker_strand_no_message() {
    explore(|| {
        let bed = Bed::start(8, true);
        let worker = bed.spawn(|combining| combining.send_inline(2));
        let task = bed.spawn(|combining| wait_for(combining.send_in_burst(3, 8)));
        wait_for(bed.combining.send_in_burst(1, 8)).unwrap();
        bed.finish(&[1, 2, 3], vec![worker, task]);
    });
}

#[test]
fn a_cancelled_burst_strands_no_message() {
    explore(|| {
        let bed = Bed::start(8, true);
        let other = bed.spawn(|combining| wait_for(combining.send_in_burst(2, 8)));
        let mut context = Context::from_waker(Waker::noop());
        // Dropped while it yields.
        let _ = pin!(bed.combining.send_in_burst(1, 8)).poll(&mut context);
        bed.finish(&[1, 2], vec![other]);
    });
}

#[test]
fn a_wakeup_of_an_inline_turn_reaches_the_timer_thread() {
    explore(|| {
        let bed = Bed::start(8, true);
        bed.combining.send_inline(WAKES).unwrap();
        bed.finish(&[WAKES], vec![]);
    });
}

#[test]
fn a_sender_that_waits_for_room_gets_it() {
    explore(|| {
        let bed = Bed::start(1, true);
        let other = bed.spawn(|combining| combining.send(2));
        bed.combining.send_inline(1).unwrap();
        bed.finish(&[1, 2], vec![other]);
    });
}
