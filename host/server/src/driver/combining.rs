//! Flat combining: one bounded queue, one lock around the state, one timer thread.
//!
//! A thread that brings a message puts it into the queue. It may then take the turn itself: if
//! `try_lock` gives it the state, it handles the messages of all threads, else it leaves. Waking the
//! timer thread takes longer than such an inline turn. The timer thread takes the turns that are due
//! at a time, that were slow, or that hold a message which no other thread may handle.
//!
//! No message is stranded: a thread leaves its message only to a thread that holds the lock, and a
//! thread that has held the lock looks at the queue after it has let go. It then takes another turn,
//! or wakes the timer thread, which looks at the queue before it sleeps. `tests/loom.rs` checks this
//! in all interleavings.
//!
//! Lock order: the state, then the queue.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Instant;

use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, yield_now};

/// Messages of one turn. More messages share a window, but none waits for ever.
const MESSAGES_MAX: usize = 1_024;

/// Inline turns in a row; the timer thread takes the next one.
const INLINE_TURNS_MAX: usize = 4;

/// The state behind the lock.
pub(super) trait Combined {
    /// The input of a turn.
    type Message;

    /// Whether an inline turn may handle the message; otherwise only the timer thread does.
    fn is_inline(message: &Self::Message) -> bool;

    /// Handles these messages, which may be none, and does the work that is due.
    fn turn(&mut self, messages: &mut VecDeque<Self::Message>);

    /// Whether the next turn may be an inline one.
    fn is_quick(&self) -> bool;

    /// The time of the next turn if no message comes before.
    fn next_wakeup(&self) -> Option<Instant>;

    /// Called once, after the last turn.
    fn end(&mut self);
}

/// A state, its queue and the sleep of its timer thread.
pub(super) struct Combining<S: Combined> {
    /// `None` before the timer thread runs and after it has ended.
    held: Mutex<Option<Held<S>>>,
    is_quick: AtomicBool,
    queue: Mutex<Queue<S::Message>>,
    capacity: usize,
    /// Wakes the timer thread.
    timer: Condvar,
    /// Wakes senders that wait for room.
    room: Condvar,
}

/// Why a message was not sent. The message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    /// The queue has no room.
    Full,
    /// The state has ended or was stopped.
    Stopped,
}

/// The contents of the lock.
struct Held<S: Combined> {
    state: S,
    /// Empty between turns; kept for its memory.
    messages: VecDeque<S::Message>,
}

struct Queue<M> {
    messages: VecDeque<M>,
    /// Senders that wait for room.
    waiting: usize,
    /// A thread is about to look at the queue, so that a burst needs no further one.
    is_attended: bool,
    /// The timer thread sleeps.
    is_asleep: bool,
    /// The end of that sleep, which may be earlier than `wakeup`.
    sleeps_until: Option<Instant>,
    /// The next turn of the timer thread if no message comes before.
    wakeup: Option<Instant>,
    is_stopped: bool,
}

/// Has the timer thread take a turn, unless defused.
struct TimerTurnOnDrop<'a, S: Combined>(&'a Combining<S>);

/// Drops the state when the timer thread returns or panics.
struct EndOnDrop<'a, S: Combined>(&'a Combining<S>);

// === impl Combining ===

impl<S: Combined> Combining<S> {
    /// A queue of at most `capacity` messages.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            held: Mutex::new(None),
            is_quick: AtomicBool::new(false),
            queue: Mutex::new(Queue {
                messages: VecDeque::new(),
                waiting: 0,
                is_attended: false,
                is_asleep: false,
                sleeps_until: None,
                wakeup: None,
                is_stopped: false,
            }),
            capacity: capacity.max(1),
            timer: Condvar::new(),
            room: Condvar::new(),
        }
    }

    // ---- senders ----------------------------------------------------------------------

    /// Sends to the timer thread; waits for room.
    ///
    /// # Errors
    /// The state has ended or was stopped.
    pub(super) fn send(&self, message: S::Message) -> Result<(), NotSent> {
        let queue = self.push_waiting(message)?;
        self.wake_timer(queue);
        Ok(())
    }

    /// Sends to the timer thread if there is room.
    ///
    /// # Errors
    /// There is no room, or the state has ended or was stopped.
    pub(super) fn try_send(&self, message: S::Message) -> Result<(), NotSent> {
        let queue = self.push(message, self.capacity)?;
        self.wake_timer(queue);
        Ok(())
    }

    /// Sends and takes an inline turn; waits for room.
    ///
    /// # Errors
    /// The state has ended or was stopped.
    pub(super) fn send_inline(&self, message: S::Message) -> Result<(), NotSent> {
        let queue = self.push_waiting(message)?;
        if self.is_quick() {
            drop(queue);
            self.take_inline_turns();
        } else {
            self.wake_timer(queue);
        }
        Ok(())
    }

    /// Sends as one of many, unless `most` messages wait. The first task of a burst yields once, so
    /// that its thread runs the other ones, and then takes an inline turn for all of them.
    ///
    /// # Errors
    /// There is no room, or the state has ended or was stopped.
    pub(super) async fn send_in_burst(
        &self,
        message: S::Message,
        most: usize,
    ) -> Result<(), NotSent> {
        if self.begin_burst(message, most)? {
            // The task may be cancelled here.
            let turn = TimerTurnOnDrop(self);
            yield_now().await;
            turn.defuse();
            self.end_burst();
        }
        Ok(())
    }

    /// Whether the message is the first one of a burst.
    fn begin_burst(&self, message: S::Message, most: usize) -> Result<bool, NotSent> {
        let mut queue = self.push(message, most)?;
        Ok(!std::mem::replace(&mut queue.is_attended, true))
    }

    fn end_burst(&self) {
        let queue = self.queue();
        if queue.messages.is_empty() {
            return; // Another thread was here meanwhile.
        }
        if self.is_quick() {
            drop(queue);
            self.take_inline_turns();
        } else {
            self.wake_timer(queue);
        }
    }

    fn push(
        &self,
        message: S::Message,
        most: usize,
    ) -> Result<MutexGuard<'_, Queue<S::Message>>, NotSent> {
        let mut queue = self.queue();
        if queue.is_stopped {
            return Err(NotSent::Stopped);
        }
        if queue.messages.len() >= most.min(self.capacity) {
            return Err(NotSent::Full);
        }
        queue.messages.push_back(message);
        Ok(queue)
    }

    fn push_waiting(
        &self,
        message: S::Message,
    ) -> Result<MutexGuard<'_, Queue<S::Message>>, NotSent> {
        let mut queue = self.queue();
        while !queue.is_stopped && queue.messages.len() >= self.capacity {
            queue.waiting += 1;
            queue = self
                .room
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        if queue.is_stopped {
            return Err(NotSent::Stopped);
        }
        queue.messages.push_back(message);
        Ok(queue)
    }

    // ---- inline turns -----------------------------------------------------------------

    fn take_inline_turns(&self) {
        for left in (0..INLINE_TURNS_MAX).rev() {
            if !self.try_inline_turn() {
                return;
            }
            // The state is free again: a thread that found it locked has left its message here.
            let mut queue = self.queue();
            let Some(next) = queue.messages.front() else {
                queue.is_attended = false;
                return;
            };
            if left == 0 || !S::is_inline(next) || !self.is_quick() {
                self.wake_timer(queue);
                return;
            }
        }
    }

    /// False: another thread holds the state and looks at the queue afterwards, or the state has
    /// ended.
    fn try_inline_turn(&self) -> bool {
        // A panic poisons the lock. The timer thread sees that and ends.
        let after_panic = TimerTurnOnDrop(self);
        let has_turned = if let Ok(mut held) = self.held.try_lock()
            && let Some(Held { state, messages }) = held.as_mut()
        {
            self.take_inline(messages);
            if !messages.is_empty() {
                self.turn(state, messages);
            }
            true
        } else {
            false
        };
        after_panic.defuse();
        has_turned
    }

    fn turn(&self, state: &mut S, messages: &mut VecDeque<S::Message>) {
        state.turn(messages);
        self.is_quick.store(state.is_quick(), Ordering::Relaxed);
        self.set_wakeup(state.next_wakeup());
    }

    /// Called with the state locked, so that the last turn's time stands.
    fn set_wakeup(&self, wakeup: Option<Instant>) {
        let mut queue = self.queue();
        queue.wakeup = wakeup;
        let sleeps_until = queue.sleeps_until;
        if wakeup.is_some_and(|wakeup| sleeps_until.is_none_or(|until| wakeup < until)) {
            self.wake_timer(queue);
        }
    }

    // ---- the timer thread -------------------------------------------------------------

    /// The body of the timer thread, which returns after [`stop`](Self::stop).
    ///
    /// # Panics
    /// A turn panicked, on this thread or on another one.
    pub(super) fn run(&self, state: S) {
        let _ended = EndOnDrop(self);
        let messages = VecDeque::new();
        *self.held() = Some(Held { state, messages });
        while self.timer_turn() {
            self.sleep();
        }
    }

    /// Ends the timer thread after the messages that have been sent.
    pub(super) fn stop(&self) {
        let mut queue = self.queue();
        queue.is_stopped = true;
        self.wake_timer(queue);
        self.room.notify_all();
    }

    /// False after the last one.
    fn timer_turn(&self) -> bool {
        let mut held = self.held();
        let Some(Held { state, messages }) = held.as_mut() else {
            return false;
        };
        let is_last = self.take(messages);
        self.turn(state, messages);
        if is_last {
            state.end();
        }
        !is_last
    }

    fn sleep(&self) {
        let mut queue = self.queue();
        while queue.messages.is_empty() && !queue.is_stopped {
            let now = queue.wakeup.map(|_| Instant::now());
            if queue.wakeup.is_some() && queue.wakeup <= now {
                break;
            }
            queue.is_attended = false;
            queue.is_asleep = true;
            queue.sleeps_until = queue.wakeup;
            queue = match queue.wakeup.zip(now) {
                None => self
                    .timer
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some((wakeup, now)) => {
                    let waited = self.timer.wait_timeout(queue, wakeup - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        queue.is_attended = true;
        queue.is_asleep = false;
    }

    /// Wakes the timer thread if it sleeps.
    fn wake_timer(&self, mut queue: MutexGuard<'_, Queue<S::Message>>) {
        let was_asleep = std::mem::replace(&mut queue.is_asleep, false);
        drop(queue);
        if was_asleep {
            self.timer.notify_one();
        }
    }

    // ---- the queue --------------------------------------------------------------------

    /// Moves the oldest messages into `to`. True: they are the last ones.
    fn take(&self, to: &mut VecDeque<S::Message>) -> bool {
        let queue = self.queue();
        let is_last = queue.is_stopped && queue.messages.len() <= MESSAGES_MAX;
        let count = queue.messages.len().min(MESSAGES_MAX);
        self.take_first(queue, count, to);
        is_last
    }

    /// Moves the oldest messages into `to`, up to the first one of the timer thread.
    fn take_inline(&self, to: &mut VecDeque<S::Message>) {
        let queue = self.queue();
        let first = queue.messages.iter().take(MESSAGES_MAX);
        let count = first.take_while(|message| S::is_inline(message)).count();
        self.take_first(queue, count, to);
    }

    fn take_first(
        &self,
        mut queue: MutexGuard<'_, Queue<S::Message>>,
        count: usize,
        to: &mut VecDeque<S::Message>,
    ) {
        queue.is_attended = true;
        if to.is_empty() && queue.messages.len() == count {
            std::mem::swap(to, &mut queue.messages);
        } else {
            to.extend(queue.messages.drain(..count));
        }
        let has_waiting = queue.waiting > 0;
        drop(queue);
        if has_waiting {
            self.room.notify_all();
        }
    }

    fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue<S::Message>> {
        // No code panics while it holds this lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Option<Held<S>>> {
        self.held.lock().expect("no turn has panicked")
    }
}

// === impl TimerTurnOnDrop ===

impl<S: Combined> TimerTurnOnDrop<'_, S> {
    fn defuse(self) {
        std::mem::forget(self);
    }
}

impl<S: Combined> Drop for TimerTurnOnDrop<'_, S> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.wakeup = Some(Instant::now());
        self.0.wake_timer(queue);
    }
}

// === impl EndOnDrop ===

impl<S: Combined> Drop for EndOnDrop<'_, S> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.is_stopped = true;
        let left = std::mem::take(&mut queue.messages);
        drop(queue);
        self.0.room.notify_all();
        let held = self.0.held.lock();
        let held = held.unwrap_or_else(PoisonError::into_inner).take();
        // Outside of both locks: the state may join threads that send.
        drop((left, held));
    }
}
