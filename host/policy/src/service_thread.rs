//! A thread that belongs to a value: dropping the value stops and joins it.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// A thread that is stopped and joined when this is dropped. The drop logs a panic of the thread.
#[derive(Debug)]
pub(crate) struct ServiceThread {
    /// Both are taken when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl ServiceThread ===

impl ServiceThread {
    /// Starts a thread. `run` must return soon after `stop` is disconnected.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn(
        name: &str,
        run: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        self.stop = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        let name = thread.thread().name().unwrap_or_default().to_owned();
        if thread.join().is_err() {
            tracing::error!(thread = name, "a thread panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn dropping_it_stops_and_joins_the_thread() {
        let (send, ended) = mpsc::channel();
        let thread = ServiceThread::spawn("service", move |stop| {
            assert!(stop.recv().is_err(), "disconnected, not sent to");
            send.send(()).unwrap();
        });
        drop(thread.unwrap());
        assert_eq!(ended.try_recv(), Ok(()));
    }

    #[test]
    fn a_panic_does_not_reach_the_owner() {
        drop(ServiceThread::spawn("panics", |_stop| panic!("expected in this test")).unwrap());
    }
}
