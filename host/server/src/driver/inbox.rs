//! What waits for a driver thread: a bounded queue of which the driver takes as much at once as
//! it handles before it looks at the time again.
//!
//! Made for one busy reader: a sender takes a lock for as long as a push takes, and the reader takes
//! it once for many messages. Waking a thread costs more than handling a message does, so there are
//! three ways to send: to wake the reader if it sleeps; to leave that for when the rest has been sent;
//! and to read in its place while it sleeps on. `docs/performance.md` has what this was worth.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The way in; clones share it.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// The one reader.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

/// A message that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent<T> {
    /// As many wait as may.
    Full(T),
    /// The reader has ended.
    Closed(T),
}

/// The reader sleeps beside a message: it wakes when this is dropped.
#[must_use = "the reader wakes as soon as this is dropped"]
pub(crate) struct WakeOnDrop<'a, T>(&'a Shared<T>);

/// Somebody reads in the place of the reader, who sleeps on, until this leaves.
#[must_use = "the reader wakes as soon as this is dropped"]
pub(super) struct Attending<'a, T> {
    shared: &'a Shared<T>,
    has_left: bool,
}

/// Nobody can send any more, and nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended;

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    arrived: Condvar,
    room: Condvar,
    capacity: usize,
}

struct Queue<T> {
    messages: VecDeque<T>,
    senders: usize,
    /// Senders that wait for room.
    waiting: usize,
    reader: Reader,
    /// Somebody is about to wake it.
    promised: bool,
    /// When it is to look again although nothing came.
    until: Option<Instant>,
    /// Until when it sleeps, which may be earlier, so that it need not be woken to be told.
    sleeps_until: Option<Instant>,
    /// The reader has ended.
    closed: bool,
}

/// What the reader does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// It looks at the queue before it sleeps.
    Awake,
    Asleep,
    /// It sleeps, and somebody reads in its place, who looks at the queue before leaving.
    Replaced,
}

/// An inbox in which at most so many messages wait.
pub(super) fn inbox<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue {
            messages: VecDeque::new(),
            senders: 1,
            waiting: 0,
            reader: Reader::Awake,
            promised: false,
            until: None,
            sleeps_until: None,
            closed: false,
        }),
        arrived: Condvar::new(),
        room: Condvar::new(),
        capacity: capacity.max(1),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

// === impl Shared ===

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // Nothing in here panics between two states that belong together.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message where the reader finds it, and wakes the reader if it sleeps.
    fn put(&self, mut queue: MutexGuard<'_, Queue<T>>, message: T) {
        queue.messages.push_back(message);
        self.wake(queue);
    }

    fn wake(&self, mut queue: MutexGuard<'_, Queue<T>>) {
        if queue.reader == Reader::Asleep {
            queue.reader = Reader::Awake;
            drop(queue);
            self.arrived.notify_one();
        }
    }

    /// Lets the reader sleep on, and whoever calls read in its place. None: it does not sleep, and
    /// will see what there is.
    fn replace(&self, mut queue: MutexGuard<'_, Queue<T>>) -> Option<Attending<'_, T>> {
        if queue.reader != Reader::Asleep || queue.closed {
            return None;
        }
        (queue.reader, queue.promised) = (Reader::Replaced, false);
        Some(Attending {
            shared: self,
            has_left: false,
        })
    }

    /// Moves the oldest messages into `to`.
    fn take(&self, mut queue: MutexGuard<'_, Queue<T>>, count: usize, to: &mut VecDeque<T>) {
        if to.is_empty() && queue.messages.len() == count {
            std::mem::swap(to, &mut queue.messages);
        } else {
            to.extend(queue.messages.drain(..count));
        }
        let room = queue.waiting > 0;
        drop(queue);
        if room {
            self.room.notify_all();
        }
    }
}

// === impl Sender ===

impl<T> Sender<T> {
    /// Sends unless this many messages wait already.
    ///
    /// # Errors
    /// Gives the message back.
    pub(crate) fn try_send(&self, message: T, most: usize) -> Result<(), NotSent<T>> {
        let (queue, message) = self.admit(message, most)?;
        self.0.put(queue, message);
        Ok(())
    }

    /// As [`try_send`](Self::try_send), but lets a reader that sleeps sleep on: whoever has more to
    /// send soon wakes it once for all of it. None: it is awake, or will be woken by another.
    ///
    /// # Errors
    /// Gives the message back.
    pub(crate) fn try_leave(
        &self,
        message: T,
        most: usize,
    ) -> Result<Option<WakeOnDrop<'_, T>>, NotSent<T>> {
        let (mut queue, message) = self.admit(message, most)?;
        queue.messages.push_back(message);
        let asleep = queue.reader == Reader::Asleep;
        let promise = asleep && !std::mem::replace(&mut queue.promised, true);
        Ok(promise.then(|| WakeOnDrop(&self.0)))
    }

    fn admit(&self, message: T, most: usize) -> Result<(MutexGuard<'_, Queue<T>>, T), NotSent<T>> {
        let queue = self.0.lock();
        if queue.closed {
            return Err(NotSent::Closed(message));
        }
        if queue.messages.len() >= most.min(self.0.capacity) {
            return Err(NotSent::Full(message));
        }
        Ok((queue, message))
    }

    /// Sends, and waits for room where there is none.
    ///
    /// # Errors
    /// Gives the message back: the reader has ended.
    pub(crate) fn send(&self, message: T) -> Result<(), T> {
        let (queue, message) = self.admit_waiting(message)?;
        self.0.put(queue, message);
        Ok(())
    }

    /// As [`send`](Self::send), but rather than waking a reader that sleeps, the sender reads in its
    /// place. None: it is awake, and will see the message.
    ///
    /// # Errors
    /// Gives the message back: the reader has ended.
    pub(super) fn send_and_attend(&self, message: T) -> Result<Option<Attending<'_, T>>, T> {
        let (mut queue, message) = self.admit_waiting(message)?;
        queue.messages.push_back(message);
        Ok(self.0.replace(queue))
    }

    fn admit_waiting(&self, message: T) -> Result<(MutexGuard<'_, Queue<T>>, T), T> {
        let mut queue = self.0.lock();
        while !queue.closed && queue.messages.len() >= self.0.capacity {
            queue.waiting += 1;
            queue = self
                .0
                .room
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        if queue.closed {
            return Err(message);
        }
        Ok((queue, message))
    }

    /// Messages that may wait.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.senders -= 1;
        if queue.senders == 0 {
            drop(queue);
            self.0.arrived.notify_one();
        }
    }
}

// === impl WakeOnDrop ===

impl<'a, T> WakeOnDrop<'a, T> {
    /// Reads in the place of the reader instead of waking it. None: it has woken meanwhile.
    pub(super) fn attend(self) -> Option<Attending<'a, T>> {
        // Dropping this then wakes nobody: the reader does not count as asleep.
        self.0.replace(self.0.lock())
    }
}

impl<T> Drop for WakeOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.wake(self.0.lock());
    }
}

// === impl Attending ===

impl<T> Attending<'_, T> {
    /// Moves what waits into `to`, at most so many, oldest first, up to the first that is not
    /// `ours`: that one is the reader's.
    pub(super) fn take(&self, most: usize, ours: impl Fn(&T) -> bool, to: &mut VecDeque<T>) {
        let queue = self.shared.lock();
        let taken = queue.messages.iter().take(most).take_while(|m| ours(m));
        let count = taken.count();
        self.shared.take(queue, count, to);
    }

    /// Leaves the queue to its reader, who is to look again at this time. It wakes if something is
    /// left for it, or if it would sleep for too long.
    pub(super) fn leave(mut self, until: Option<Instant>) {
        self.has_left = true;
        let mut queue = self.shared.lock();
        queue.until = until;
        let late = until.is_some_and(|until| queue.sleeps_until.is_none_or(|then| until < then));
        queue.reader = Reader::Asleep;
        if late || !queue.messages.is_empty() {
            self.shared.wake(queue);
        }
    }
}

impl<T> Drop for Attending<'_, T> {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut queue = self.shared.lock();
        queue.reader = Reader::Asleep;
        // Rather for nothing than never.
        queue.until = Some(Instant::now());
        self.shared.wake(queue);
    }
}

// === impl Receiver ===

impl<T> Receiver<T> {
    /// Moves what waits into `to`, at most so many, oldest first. Where nothing waits, sleeps
    /// until something does or until this time, or another that somebody gave who read in its place;
    /// nothing is moved when it is time itself that ends the wait.
    ///
    /// # Errors
    /// Nothing will ever come.
    pub(super) fn take(
        &self,
        most: usize,
        until: Option<Instant>,
        to: &mut VecDeque<T>,
    ) -> Result<(), Ended> {
        let mut queue = self.0.lock();
        queue.until = until;
        loop {
            if queue.reader != Reader::Replaced {
                if !queue.messages.is_empty() {
                    break;
                }
                if queue.senders == 0 {
                    return Err(Ended);
                }
                if queue.until.is_some_and(|until| until <= Instant::now()) {
                    break;
                }
                queue.reader = Reader::Asleep;
                queue.sleeps_until = queue.until;
            } else {
                // Whoever reads says when to wake.
                queue.sleeps_until = None;
            }
            queue = match queue.sleeps_until {
                None => self
                    .0
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let waited = self.0.arrived.wait_timeout(queue, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        (queue.reader, queue.promised) = (Reader::Awake, false);
        let count = queue.messages.len().min(most);
        self.0.take(queue, count, to);
        Ok(())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        let left = std::mem::take(&mut queue.messages);
        drop(queue);
        self.0.room.notify_all();
        // Outside the lock: a message may hold a sender of its own.
        drop(left);
    }
}

#[cfg(test)]
mod tests;
