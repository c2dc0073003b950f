//! The registry of metrics. Each server has its own, so that the metrics of two servers in one test
//! stay apart.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Label, with_local_recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::facts::{BusyTime, Facts};
use super::log_queue::lines_dropped;
use super::{names, process};

/// Bounds of durations in seconds: 2 us, the smallest window of a small policy, to 10 s.
const SECONDS: [f64; 21] = [
    2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Bounds of counts: powers of two.
const COUNTS: [f64; 13] = [
    0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
];

/// Bounds of latencies as shares of the deadline.
const RATIOS: [f64; 12] = [
    0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 5.0,
];

/// Registers metrics and renders them. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
    facts: Arc<Facts>,
}

// === impl Registry ===

impl Registry {
    /// An empty registry with the bounds of every histogram.
    ///
    /// # Errors
    /// Never with the bounds above; the builder checks them.
    pub fn try_new() -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new();
        for name in names::SECONDS {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), &SECONDS)?;
        }
        for name in names::COUNTS {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), &COUNTS)?;
        }
        for name in names::RATIOS {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), &RATIOS)?;
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let registry = Self {
            recorder: Arc::new(recorder),
            handle,
            facts: Arc::default(),
        };
        with_local_recorder(&*registry.recorder, names::describe);
        Ok(registry)
    }

    /// The counter of this name and these labels.
    pub fn counter<const N: usize>(
        &self,
        name: &'static str,
        labels: [(&str, &str); N],
    ) -> Counter {
        let labels = own(labels);
        with_local_recorder(&*self.recorder, || metrics::counter!(name, labels))
    }

    /// The gauge of this name and these labels.
    pub fn gauge<const N: usize>(&self, name: &'static str, labels: [(&str, &str); N]) -> Gauge {
        let labels = own(labels);
        with_local_recorder(&*self.recorder, || metrics::gauge!(name, labels))
    }

    /// The histogram of this name and these labels.
    pub fn histogram<const N: usize>(
        &self,
        name: &'static str,
        labels: [(&str, &str); N],
    ) -> Histogram {
        let labels = own(labels);
        with_local_recorder(&*self.recorder, || metrics::histogram!(name, labels))
    }

    /// Everything, in the Prometheus text format.
    pub fn render(&self) -> String {
        // The log belongs to the process, not to one server.
        self.counter(names::LOG_LINES_DROPPED, [])
            .absolute(lines_dropped());
        let mut text = self.handle.render();
        self.facts.render(&mut text);
        process::render(&mut text);
        text
    }

    /// The policy that is installed in a pool, by label and hash; none: only the fallback serves.
    pub(crate) fn policy(&self, pool: &str, active: Option<(&str, &str)>) {
        self.facts.policy(pool, active);
    }

    /// The time in which a worker computed.
    pub(crate) fn busy(&self, pool: &str, worker: &str) -> BusyTime {
        self.facts.busy(pool, worker)
    }

    /// Folds recorded samples into the histograms; between renders they take memory.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn own<const N: usize>(labels: [(&str, &str); N]) -> Vec<Label> {
    labels
        .into_iter()
        .map(|(key, value)| Label::new(key.to_owned(), value.to_owned()))
        .collect()
}
