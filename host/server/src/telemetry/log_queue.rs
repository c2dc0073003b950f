//! A queue of log lines in front of a writer that may stall, such as a pipe whose reader has stopped.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait for the writer: some megabytes. A line past them is dropped.
const LINES_MAX: usize = 8_192;

/// Longest wait for the writer at the end of the process.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Lines that were dropped since the start of the process, which has one log.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Writes log lines on a thread of its own. Dropping it writes the lines that wait, for one second at
/// most: it does not wait for a writer that stalls.
#[derive(Debug)]
pub struct LogQueue {
    lines: Sender<LogMessage>,
    /// Closed when the writer has written everything up to the end.
    ended: Receiver<()>,
}

/// Where threads put their lines. Never waits.
#[derive(Clone, Debug)]
pub struct LogLines(Sender<LogMessage>);

#[derive(Debug)]
enum LogMessage {
    Line(Box<[u8]>),
    End,
}

/// Log lines that were dropped since the start of the process.
pub(super) fn lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

// === impl LogQueue ===

impl LogQueue {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, queue) = bounded(LINES_MAX);
        let (ending, ended) = bounded(0);
        // Not joined: its writer may stall for ever.
        thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || {
                write(&queue, out);
                drop(ending);
            })?;
        Ok(Self { lines, ended })
    }

    /// Where threads put their lines.
    pub fn lines(&self) -> LogLines {
        LogLines(self.lines.clone())
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        let give_up = Instant::now() + FLUSH_MAX;
        if self.lines.send_deadline(LogMessage::End, give_up).is_ok() {
            // Closed or past the limit: the process ends in both cases.
            let _ = self.ended.recv_deadline(give_up);
        }
    }
}

/// Writes lines until the end.
fn write(queue: &Receiver<LogMessage>, mut out: impl Write) {
    let mut told = lines_dropped();
    for message in queue {
        let LogMessage::Line(line) = message else {
            break;
        };
        // There is no other place to tell of a failure.
        let _ = out.write_all(&line);
        let dropped = lines_dropped();
        // With an empty queue again, so that this line is not dropped as well.
        if dropped > told && queue.is_empty() {
            let lines = dropped - told;
            told = dropped;
            tracing::warn!(
                lines,
                "log lines were dropped: the reader of stderr was too slow"
            );
        }
    }
    let _ = out.flush();
}

// === impl LogLines ===

impl Write for LogLines {
    /// Takes one whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.0.try_send(LogMessage::Line(line.into())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogLines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use super::*;

    /// A pipe whose reader has stopped.
    struct Stalled(Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Err(io::Error::other("no reader"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_reader_stops_neither_the_threads_that_log_nor_the_end() {
        let (_reader, stalled) = bounded(0);
        let queue = LogQueue::start(Stalled(stalled)).unwrap();
        let mut lines = queue.lines();
        let (before, began) = (lines_dropped(), Instant::now());
        let over = 100;
        for _ in 0..LINES_MAX + over {
            lines.write_all(b"line\n").unwrap();
        }
        // The writer holds one.
        assert!(lines_dropped() - before >= over as u64 - 1);
        drop(queue);
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn the_end_writes_the_lines_that_wait() {
        let written = Shared::default();
        let queue = LogQueue::start(written.clone()).unwrap();
        let mut lines = queue.lines();
        for _ in 0..100 {
            lines.write_all(b"line\n").unwrap();
        }
        drop(queue);
        assert_eq!(*written.0.lock().unwrap(), b"line\n".repeat(100));
    }
}
