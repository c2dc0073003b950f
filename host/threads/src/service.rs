//! A thread that is stopped and joined when its owner drops it.

use std::fmt;
use std::io;
use std::thread::{self, JoinHandle};

use crate::panic::panic_text;

/// A thread of a service. Dropping it gives the stop signal, wakes the thread if it is parked, and
/// joins it. A panic of the thread is logged with its name and message.
///
/// The body must return soon after the stop signal, of which there are two kinds:
/// - The body receives from a channel. The owner declares the sender *above* this field: fields
///   drop in the order of their declaration, so the channel closes before this joins.
/// - [`with_stop`](Self::with_stop): a closure that sets a flag or sends a message.
pub struct ServiceThread {
    /// `None` only while this is dropped.
    handle: Option<JoinHandle<()>>,
    stop: Option<Box<dyn FnOnce() + Send + Sync>>,
}

// === impl ServiceThread ===

impl ServiceThread {
    /// Starts a thread with a name that shows in logs and in the system's lists of threads.
    ///
    /// # Errors
    /// The operating system refuses the thread.
    pub fn spawn(
        name: impl Into<String>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let handle = thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(Self {
            handle: Some(handle),
            stop: None,
        })
    }

    /// The stop signal. It is called once, by the thread that drops this, before the join.
    #[must_use]
    pub fn with_stop(self, stop: impl FnOnce() + Send + Sync + 'static) -> Self {
        let (mut this, stop) = (self, Box::new(stop));
        this.stop = Some(stop);
        this
    }

    /// Wakes the thread if it is parked; otherwise its next `park` returns at once.
    pub fn unpark(&self) {
        if let Some(handle) = &self.handle {
            handle.thread().unpark();
        }
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
        let Some(handle) = self.handle.take() else {
            return;
        };
        let joined = handle.thread().clone();
        if joined.id() == thread::current().id() {
            // The thread dropped its own owner: it would wait for itself.
            return;
        }
        joined.unpark();
        if let Err(payload) = handle.join() {
            let name = joined.name().unwrap_or_default();
            let message = panic_text(&*payload);
            tracing::error!(thread = name, message, "a thread panicked");
        }
    }
}

impl fmt::Debug for ServiceThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.handle.as_ref().and_then(|h| h.thread().name());
        f.debug_tuple("ServiceThread").field(&name).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// As owners have it: the sender above the thread.
    struct Owner {
        _sender: Sender<u32>,
        _thread: ServiceThread,
    }

    #[test]
    fn a_closed_channel_ends_the_thread_before_the_join() {
        let (sender, inbox) = channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let thread = ServiceThread::spawn("adder", {
            let seen = Arc::clone(&seen);
            move || seen.lock().unwrap().extend(inbox)
        });
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        drop(Owner {
            _sender: sender,
            _thread: thread.unwrap(),
        });
        assert_eq!(*seen.lock().unwrap(), [1, 2], "joined, not abandoned");
    }

    #[test]
    fn a_parked_thread_sees_the_stop_signal() {
        let (stopping, ended) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let body = {
            let (stopping, ended): (_, Arc<AtomicBool>) =
                (Arc::clone(&stopping), Arc::clone(&ended));
            move || {
                while !stopping.load(Ordering::SeqCst) {
                    thread::park();
                }
                ended.store(true, Ordering::SeqCst);
            }
        };
        let thread = ServiceThread::spawn("sleeper", body).unwrap();
        drop(thread.with_stop(move || stopping.store(true, Ordering::SeqCst)));
        assert!(ended.load(Ordering::SeqCst));
    }

    #[test]
    fn a_panic_does_not_reach_the_owner() {
        let thread = ServiceThread::spawn("unlucky", || panic!("as planned")).unwrap();
        assert_eq!(format!("{thread:?}"), "ServiceThread(Some(\"unlucky\"))");
        drop(thread);
    }

    #[test]
    fn a_thread_that_drops_its_own_owner_does_not_wait_for_itself() {
        let (hand_over, handed_over) = channel::<ServiceThread>();
        let (report, reported) = channel();
        let thread = ServiceThread::spawn("own-owner", move || {
            drop(handed_over.recv().unwrap());
            report.send(()).unwrap();
        });
        hand_over.send(thread.unwrap()).unwrap();
        reported.recv().unwrap();
    }
}
