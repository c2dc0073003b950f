//! The thread that sends traces.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never, select};
use prost::Message as _;

use super::collector::Collector;
use super::record::RequestTrace;
use super::spans::{Epoch, message};
use crate::clock::Clock;
use crate::telemetry::Counter;

/// Traces that may wait for the thread. A further one is dropped.
pub(super) const QUEUE_MAX: usize = 2_048;

/// Traces of one message.
const BATCH_MAX: usize = 512;

/// Longest wait of a trace for others.
const BATCH_WAIT: Duration = Duration::from_millis(500);

/// Longest time of one message.
const SEND_LIMIT: Duration = Duration::from_secs(1);

/// The same for the last message: the server stops within seconds.
const LAST_SEND_LIMIT: Duration = Duration::from_millis(300);

/// Sends traces and counts those that the collector does not take.
pub(super) struct Exporter {
    collector: Collector,
    epoch: Epoch,
    dropped: Counter,
    /// The last message failed, and the log has told.
    is_failing: bool,
}

// === impl Exporter ===

impl Exporter {
    pub(super) fn new(collector: Collector, clock: Clock, dropped: Counter) -> Self {
        Self {
            collector,
            epoch: Epoch::of(clock),
            dropped,
            is_failing: false,
        }
    }

    /// Sends until `stop` is closed or no sender is left.
    pub(super) fn run(mut self, inbox: &Receiver<RequestTrace>, stop: &Receiver<()>) {
        let mut batch = Vec::new();
        while self.collect(&mut batch, inbox, stop) {
            self.send(&batch, SEND_LIMIT);
            batch.clear();
        }
        batch.extend(inbox.try_iter().take(QUEUE_MAX));
        self.send(&batch, LAST_SEND_LIMIT);
    }

    /// Takes the traces of the next message; false at the end.
    fn collect(
        &self,
        batch: &mut Vec<RequestTrace>,
        inbox: &Receiver<RequestTrace>,
        stop: &Receiver<()>,
    ) -> bool {
        let mut due = never();
        while batch.len() < BATCH_MAX {
            select! {
                recv(inbox) -> trace => match trace {
                    Ok(trace) => batch.push(trace),
                    Err(_) => return false,
                },
                recv(stop) -> _ => return false,
                recv(due) -> _ => return true,
            }
            if batch.len() == 1 {
                due = crossbeam_channel::at(Instant::now() + BATCH_WAIT);
            }
        }
        true
    }

    fn send(&mut self, batch: &[RequestTrace], limit: Duration) {
        if batch.is_empty() {
            return;
        }
        let message = message(batch, self.epoch).encode_to_vec();
        match self.collector.send(message, limit) {
            Ok(()) if self.is_failing => tracing::info!("traces are exported again"),
            Ok(()) => {}
            Err(error) => {
                self.dropped.increment(batch.len() as u64);
                if !self.is_failing {
                    let endpoint = self.collector.endpoint();
                    tracing::warn!(endpoint, error, "traces are dropped: look at the collector");
                }
                self.is_failing = true;
                return;
            }
        }
        self.is_failing = false;
    }
}
