//! The way of traces from the threads of requests to the exporter.

use std::io;

use crossbeam_channel::Sender;
use switchyard_protocol::TraceParent;
use switchyard_threads::ServiceThread;

use super::collector::Collector;
use super::exporter::{Exporter, QUEUE_MAX};
use super::record::{CallTrace, RequestTrace};
use super::sampler::Sampler;
use crate::clock::Clock;
use crate::config::TracesConfig;
use crate::telemetry::{Counter, Registry, names};

/// Draws requests and takes their traces. Dropping it exports the last ones.
pub struct Tracer {
    sampler: Sampler,
    traces: Sender<RequestTrace>,
    dropped: Counter,
    _exporter: ServiceThread,
}

// === impl Tracer ===

impl Tracer {
    /// Starts the exporter.
    ///
    /// # Errors
    /// The endpoint is not the URL of a collector, or the system refuses a thread.
    pub fn start(config: &TracesConfig, clock: Clock, registry: &Registry) -> io::Result<Self> {
        let dropped = registry.counter(names::TRACES_DROPPED, []);
        let collector = Collector::try_new(&config.endpoint)?;
        let (traces, inbox) = crossbeam_channel::bounded(QUEUE_MAX);
        let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
        let exporter = Exporter::new(collector, clock, dropped.clone());
        let thread = ServiceThread::spawn("traces".to_owned(), move || {
            exporter.run(&inbox, &stopped);
        })?;
        Ok(Self {
            sampler: Sampler::new(config.share),
            traces,
            dropped,
            _exporter: thread.with_stop(move || drop(stop)),
        })
    }

    /// The place of a call in its trace; `None`: it is not traced.
    pub(crate) fn draw(&self, parent: Option<TraceParent>) -> Option<Box<CallTrace>> {
        self.sampler.draw(parent).map(Box::new)
    }

    /// A traced request has ended.
    pub(crate) fn record(&self, trace: RequestTrace) {
        if self.traces.try_send(trace).is_err() {
            self.dropped.increment(1);
        }
    }
}
