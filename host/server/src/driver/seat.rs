//! Who drives: the pool's own thread, or in its place, while that sleeps, whoever brings news.
//!
//! A batch that ends and calls that come in find the driver asleep as a rule. Waking it to let it
//! say what the worker is to do next, and wake that, takes longer than to say it: so the worker's
//! thread, or the one that reads requests, drives for a moment. One at a time does, which the inbox
//! sees to, so that messages are handled in the order in which they came. Whatever changes the pool is
//! the own thread's, and so are turns for a while after one that took long or in which the policy did
//! something wrong (`pace`): the first slow turn of a policy may still be that of a thread with something
//! else to do, within its budget.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::inbox::{Attending, Ended, Receiver, Sender, WakeOnDrop};
use super::message::Message;
use super::thread::Driver;

/// Messages handled before the scheduler is polled: more of them share a window, but none
/// waits for ever.
const MESSAGES_MAX: usize = 1_024;

/// Turns that somebody takes who has something else to do.
const TURNS_MAX: usize = 4;

/// Holds the driver while its thread runs.
#[derive(Default)]
pub(super) struct Seat {
    driver: Mutex<Option<Driver>>,
    /// The driver's turns are.
    is_quick: AtomicBool,
}

/// Leaves nobody in the seat, also when the driver panics: requests inside then end with an error.
struct Vacate<'a>(&'a Seat);

// === impl Seat ===

impl Seat {
    /// Drives until told to stop: the pool's own thread.
    pub(super) fn drive(&self, mut driver: Driver, inbox: Receiver<Message>) {
        // Dropped before the driver with its workers: one that reports into a full inbox must not
        // wait for a thread that waits for it.
        let (_vacate, inbox) = (Vacate(self), inbox);
        driver.begin();
        *self.driver() = Some(driver);
        let mut messages = VecDeque::new();
        loop {
            let mut seated = self.driver();
            let Some(driver) = seated.as_mut() else {
                return;
            };
            driver.turn(&mut messages);
            self.see_pace(driver);
            if driver.is_stopping() {
                driver.end();
                return;
            }
            let until = driver.next_wakeup();
            drop(seated);
            if let Err(Ended) = inbox.take(MESSAGES_MAX, until, &mut messages) {
                return;
            }
        }
    }

    /// Sends what a worker has to say, and drives if nobody does.
    pub(super) fn report(&self, inbox: &Sender<Message>, message: Message) {
        // An error means that the driver has ended; nobody waits for this any more.
        if !self.is_quick.load(Ordering::Relaxed) {
            let _ = inbox.send(message);
        } else if let Ok(Some(attending)) = inbox.send_and_attend(message) {
            self.attend(attending);
        }
    }

    /// Wakes the driver that a promise was made to, or drives in its place.
    pub(super) fn keep(&self, promise: WakeOnDrop<'_, Message>) {
        if self.is_quick.load(Ordering::Relaxed)
            && let Some(attending) = promise.attend()
        {
            self.attend(attending);
        }
    }

    fn attend(&self, attending: Attending<'_, Message>) {
        let mut seated = self.driver();
        let Some(driver) = seated.as_mut() else {
            return;
        };
        let mut messages = driver.spare_messages();
        for _ in 0..TURNS_MAX {
            attending.take(MESSAGES_MAX, Message::is_passing, &mut messages);
            if messages.is_empty() {
                break;
            }
            driver.turn(&mut messages);
            if !self.see_pace(driver) {
                break;
            }
        }
        driver.keep_spare(messages);
        attending.leave(driver.next_wakeup());
    }

    /// How turns went decides who takes the next one.
    fn see_pace(&self, driver: &Driver) -> bool {
        let is_quick = driver.is_quick();
        self.is_quick.store(is_quick, Ordering::Relaxed);
        is_quick
    }

    /// # Panics
    /// The driver did, on another thread: its own one follows, and takes the pool down with it.
    fn driver(&self) -> MutexGuard<'_, Option<Driver>> {
        self.driver.lock().expect("the driver has not panicked")
    }
}

// === impl Vacate ===

impl Drop for Vacate<'_> {
    fn drop(&mut self) {
        let driver = self.0.driver.lock();
        let driver = driver.unwrap_or_else(PoisonError::into_inner).take();
        // Its workers are joined, of which one may look into the seat.
        drop(driver);
    }
}
