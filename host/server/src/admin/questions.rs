//! Questions to a driver, which may be slow or stuck.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// Longest wait for the drivers. It is below the usual 10 s of a Prometheus scrape, and above the
/// window budgets of interpreted policies.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that may wait for room in a driver's inbox. A stuck driver keeps them, and the server
/// needs the others to inflate bodies.
const WAITING_MAX: usize = 8;

/// Asks drivers within bounds of time and threads.
pub(super) struct Questions {
    waiting: Arc<Semaphore>,
    patience: Duration,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The driver has ended.
    Ended,
    /// The driver did not answer in time.
    Late {
        /// The time it had.
        patience: Duration,
    },
}

// === impl Questions ===

impl Questions {
    /// The end of the wait for questions that are asked from now on.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Sends a question, which may block, and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        send: impl FnOnce() + Send + 'static,
        answer: oneshot::Receiver<T>,
        deadline: Instant,
    ) -> Result<T, Unanswered> {
        let answered = async {
            let thread = Arc::clone(&self.waiting).acquire_owned().await.ok()?;
            let sent = spawn_blocking(move || {
                send();
                drop(thread);
            });
            sent.await.ok()?;
            answer.await.ok()
        };
        let late = Unanswered::Late {
            patience: self.patience,
        };
        match timeout_at(deadline, answered).await {
            Ok(answer) => answer.ok_or(Unanswered::Ended),
            Err(_) => Err(late),
        }
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            patience: PATIENCE,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::{channel, sync_channel};

    use super::*;

    fn impatient(waiting: usize) -> Questions {
        Questions {
            waiting: Arc::new(Semaphore::new(waiting)),
            patience: Duration::from_millis(50),
        }
    }

    #[tokio::test]
    async fn a_stuck_driver_is_not_waited_for() {
        let questions = impatient(1);
        let (free, stuck) = channel::<()>();
        let late = Err(Unanswered::Late {
            patience: questions.patience,
        });
        let (_reply, answer) = oneshot::channel::<u8>();
        let send = move || {
            let _ = stuck.recv();
        };
        let first = questions.ask(send, answer, questions.deadline());
        assert_eq!(first.await, late);
        // The one thread is still taken, so a further question takes none.
        let (_reply, answer) = oneshot::channel::<u8>();
        let (called, was_called) = sync_channel(1);
        let send = move || called.send(()).unwrap();
        let second = questions.ask(send, answer, questions.deadline());
        assert_eq!(second.await, late);
        assert!(was_called.try_recv().is_err());
        // The driver goes on, and answers again.
        drop(free);
        let (reply, answer) = oneshot::channel();
        let send = move || reply.send(7).unwrap();
        let third = questions.ask(send, answer, questions.deadline());
        assert_eq!(third.await, Ok(7));
    }

    #[tokio::test]
    async fn a_driver_that_has_ended_is_told_apart() {
        let questions = impatient(1);
        let (reply, answer) = oneshot::channel::<u8>();
        let asked = questions.ask(move || drop(reply), answer, questions.deadline());
        assert_eq!(asked.await, Err(Unanswered::Ended));
    }
}
