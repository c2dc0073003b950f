use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::combining::{Combined, Combining, NotSent};

/// The turns of a state, for the tests.
#[derive(Default)]
struct Seen {
    /// The messages of each turn that had some, and the name of its thread.
    turns: Vec<(Vec<u32>, String)>,
    empty_turns: usize,
    has_ended: bool,
}

/// Multiples of 7 are for the timer thread.
struct Recording {
    seen: Arc<Mutex<Seen>>,
    is_quick: bool,
    wakeup: Option<Instant>,
    /// A turn with this message panics.
    fatal: Option<u32>,
    /// A turn with this message sets `wakeup`.
    wakes_after: Option<(u32, Duration)>,
}

impl Combined for Recording {
    type Message = u32;

    fn is_inline(message: &u32) -> bool {
        !message.is_multiple_of(7)
    }

    fn turn(&mut self, messages: &mut VecDeque<u32>) {
        let messages: Vec<u32> = messages.drain(..).collect();
        if self.fatal.is_some_and(|fatal| messages.contains(&fatal)) {
            panic!("as a bug would");
        }
        self.wakeup = self.wakeup.filter(|wakeup| *wakeup > Instant::now());
        if let Some((_, after)) = self.wakes_after.filter(|(m, _)| messages.contains(m)) {
            self.wakeup = Some(Instant::now() + after);
        }
        let mut seen = self.seen.lock().unwrap();
        if messages.is_empty() {
            seen.empty_turns += 1;
        } else {
            let name = thread::current().name().unwrap_or_default().to_owned();
            seen.turns.push((messages, name));
        }
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    fn end(&mut self) {
        self.seen.lock().unwrap().has_ended = true;
    }
}

/// A state with its timer thread, which sleeps.
struct Bed {
    combining: Arc<Combining<Recording>>,
    seen: Arc<Mutex<Seen>>,
    timer: thread::JoinHandle<()>,
}

const TIMER: &str = "timer";

fn bed(capacity: usize, change: impl FnOnce(&mut Recording)) -> Bed {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut state = Recording {
        seen: Arc::clone(&seen),
        is_quick: true,
        wakeup: None,
        fatal: None,
        wakes_after: None,
    };
    change(&mut state);
    let combining = Arc::new(Combining::new(capacity));
    let running = Arc::clone(&combining);
    let timer = thread::Builder::new().name(TIMER.to_owned());
    let timer = timer.spawn(move || running.run(state)).unwrap();
    let bed = Bed {
        combining,
        seen,
        timer,
    };
    bed.until(|seen| seen.empty_turns > 0);
    // The first turn lets inline turns begin; the timer thread then sleeps.
    thread::sleep(Duration::from_millis(20));
    bed
}

impl Bed {
    fn until(&self, holds: impl Fn(&Seen) -> bool) {
        let began = Instant::now();
        while !holds(&self.seen.lock().unwrap()) {
            assert!(began.elapsed() < Duration::from_secs(20), "it never holds");
            thread::yield_now();
        }
    }

    fn handled(&self) -> Vec<u32> {
        let seen = self.seen.lock().unwrap();
        seen.turns.iter().flat_map(|(m, _)| m).copied().collect()
    }

    fn last_thread(&self) -> String {
        let seen = self.seen.lock().unwrap();
        let last = seen.turns.last();
        last.map_or_else(String::new, |(_, name)| name.clone())
    }

    /// Stops the timer thread and returns all messages.
    fn stop(self) -> Vec<u32> {
        self.combining.stop();
        let handled = self.handled_after_join();
        assert!(self.seen.lock().unwrap().has_ended);
        handled
    }

    fn handled_after_join(&self) -> Vec<u32> {
        let began = Instant::now();
        while !self.timer.is_finished() {
            assert!(began.elapsed() < Duration::from_secs(20), "it never ends");
            thread::yield_now();
        }
        self.handled()
    }
}

#[test]
fn messages_are_handled_in_order_and_before_the_end() {
    let bed = bed(8, |state| state.is_quick = false);
    for message in 1..=5 {
        bed.combining.send(message).unwrap();
    }
    let combining = Arc::clone(&bed.combining);
    assert_eq!(bed.stop(), [1, 2, 3, 4, 5]);
    assert_eq!(combining.send(6), Err(NotSent::Stopped));
    assert_eq!(combining.try_send(6), Err(NotSent::Stopped));
    assert_eq!(combining.send_inline(6), Err(NotSent::Stopped));
}

#[test]
fn a_thread_that_sends_inline_takes_the_turn() {
    let bed = bed(8, |_| {});
    bed.combining.send_inline(1).unwrap();
    assert_eq!(bed.handled(), [1], "before the call returns");
    assert_ne!(bed.last_thread(), TIMER);
    bed.stop();
}

#[test]
fn the_timer_thread_takes_slow_turns_and_its_own_messages() {
    let slow = bed(8, |state| state.is_quick = false);
    slow.combining.send_inline(1).unwrap();
    slow.until(|seen| !seen.turns.is_empty());
    assert_eq!(slow.last_thread(), TIMER);
    slow.stop();

    let quick = bed(8, |_| {});
    quick.combining.send_inline(7).unwrap();
    quick.until(|seen| !seen.turns.is_empty());
    assert_eq!(quick.last_thread(), TIMER);
    quick.stop();
}

#[test]
fn full_is_the_bound_of_the_sender_or_of_the_queue() {
    // No timer thread: the messages stay.
    let combining: Combining<Recording> = Combining::new(2);
    let burst = |message, most| {
        let sent = combining.send_in_burst(message, most);
        let mut sent = std::pin::pin!(sent);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        sent.as_mut().poll(&mut context)
    };
    assert!(burst(1, 1).is_pending(), "the first of a burst yields");
    assert_eq!(burst(2, 1), std::task::Poll::Ready(Err(NotSent::Full)));
    assert_eq!(burst(2, 8), std::task::Poll::Ready(Ok(())));
    assert_eq!(burst(3, 8), std::task::Poll::Ready(Err(NotSent::Full)));
    assert_eq!(combining.try_send(3), Err(NotSent::Full));
}

#[tokio::test]
async fn a_burst_is_one_turn() {
    let bed = bed(64, |_| {});
    let sent = (1..7).map(|message| {
        let combining = Arc::clone(&bed.combining);
        tokio::spawn(async move { combining.send_in_burst(message, 64).await })
    });
    for sent in sent.collect::<Vec<_>>() {
        sent.await.unwrap().unwrap();
    }
    let turns = bed.seen.lock().unwrap().turns.len();
    assert_eq!((turns, bed.handled()), (1, vec![1, 2, 3, 4, 5, 6]));
    assert_ne!(bed.last_thread(), TIMER);
    bed.stop();
}

#[tokio::test]
async fn a_burst_whose_first_task_is_cancelled_is_handled() {
    let bed = bed(64, |_| {});
    {
        let mut first = std::pin::pin!(bed.combining.send_in_burst(1, 64));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        bed.combining.send_in_burst(2, 64).await.unwrap();
    }
    bed.until(|seen| !seen.turns.is_empty());
    assert_eq!(bed.last_thread(), TIMER);
    assert_eq!(bed.stop(), [1, 2]);
}

#[test]
fn a_wakeup_set_by_an_inline_turn_is_kept() {
    let after = Duration::from_millis(30);
    let bed = bed(8, |state| state.wakes_after = Some((1, after)));
    let empty_turns = bed.seen.lock().unwrap().empty_turns;
    let began = Instant::now();
    bed.combining.send_inline(1).unwrap();
    assert_ne!(bed.last_thread(), TIMER);
    bed.until(|seen| seen.empty_turns > empty_turns);
    assert!(began.elapsed() >= after);
    bed.stop();
}

#[test]
fn a_panic_on_any_thread_ends_the_timer_thread() {
    for fatal in [1, 7] {
        let bed = bed(8, |state| state.fatal = Some(fatal));
        let combining = Arc::clone(&bed.combining);
        // The inline turn panics on this thread, the other one on the timer thread.
        let sent = thread::spawn(move || combining.send_inline(fatal)).join();
        assert_eq!(sent.is_err(), fatal == 1);
        assert_eq!(bed.handled_after_join(), Vec::<u32>::new());
        assert_eq!(bed.combining.send(2), Err(NotSent::Stopped));
        assert_eq!(Arc::strong_count(&bed.seen), 1, "the state is dropped");
    }
}

/// Senders of all kinds through a small queue: no message is lost, doubled or out of its sender's
/// order, on whichever thread it is handled.
#[test]
fn nothing_is_lost_between_threads() {
    const SENDERS: u32 = 4;
    const EACH: u32 = 5_000;
    let bed = bed(16, |_| {});
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let combining = &bed.combining;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            scope.spawn(move || {
                for i in 0..EACH {
                    let message = sender * EACH + i;
                    match i % 4 {
                        0 => combining.send(message).unwrap(),
                        1 => combining.send_inline(message).unwrap(),
                        2 => {
                            while combining.try_send(message).is_err() {
                                thread::yield_now();
                            }
                        }
                        _ => runtime.block_on(async {
                            while combining.send_in_burst(message, 8).await.is_err() {
                                tokio::task::yield_now().await;
                            }
                        }),
                    }
                }
            });
        }
    });
    bed.until(|seen| {
        let counts = seen.turns.iter().map(|(messages, _)| messages.len());
        counts.sum::<usize>() == (SENDERS * EACH) as usize
    });
    let mut next = [0; SENDERS as usize];
    for message in bed.stop() {
        let next = &mut next[(message / EACH) as usize];
        assert_eq!(message % EACH, *next);
        *next += 1;
    }
    assert_eq!(next, [EACH; SENDERS as usize]);
}
