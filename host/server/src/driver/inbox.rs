//! What waits for a driver thread: a bounded queue of which the driver takes as much at once as
//! it handles before it looks at the time again.
//!
//! Made for one busy reader: a sender takes a lock for as long as a push takes and wakes the
//! reader only when it sleeps, or leaves that for when it has sent the rest of what it has, and the
//! reader takes the lock once for many messages. crossbeam's
//! channel, which was here before, yields before it sleeps, on two cores about every second request at
//! 16 connections; `docs/performance.md` has what the change was worth.

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
    /// The reader waits for a message.
    asleep: bool,
    /// Somebody is about to wake it.
    promised: bool,
    /// The reader has ended.
    closed: bool,
}

/// An inbox in which at most so many messages wait.
pub(super) fn inbox<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue {
            messages: VecDeque::new(),
            senders: 1,
            waiting: 0,
            asleep: false,
            promised: false,
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
        let asleep = std::mem::take(&mut queue.asleep);
        drop(queue);
        if asleep {
            self.arrived.notify_one();
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
        let promise = queue.asleep && !std::mem::replace(&mut queue.promised, true);
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
        self.0.put(queue, message);
        Ok(())
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

impl<T> Drop for WakeOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.wake(self.0.lock());
    }
}

// === impl Receiver ===

impl<T> Receiver<T> {
    /// Moves what waits into `to`, at most so many, oldest first. Where nothing waits, sleeps
    /// until something does or until this time; nothing is moved when it is time itself that
    /// ends the wait.
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
        while queue.messages.is_empty() {
            if queue.senders == 0 {
                return Err(Ended);
            }
            queue.asleep = true;
            queue = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self
                    .0
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => {
                    let waited = self.0.arrived.wait_timeout(queue, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        (queue.asleep, queue.promised) = (false, false);
        if to.is_empty() && queue.messages.len() <= most {
            std::mem::swap(to, &mut queue.messages);
        } else {
            let taken = queue.messages.len().min(most);
            to.extend(queue.messages.drain(..taken));
        }
        let room = queue.waiting > 0;
        drop(queue);
        if room {
            self.0.room.notify_all();
        }
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
