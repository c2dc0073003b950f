//! The registry of metrics. Each server has its own, so that the metrics of two servers in one test
//! stay apart.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Label, with_local_recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::log_queue::lines_dropped;
use super::names;

/// Bounds of durations in seconds: 2 us, the smallest window of a small policy, to 10 s.
const SECONDS: [f64; 21] = [
    2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Bounds of counts: powers of two.
const COUNTS: [f64; 13] = [
    0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
];

/// Registers metrics and renders them. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
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
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let registry = Self {
            recorder: Arc::new(recorder),
            handle,
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
        self.handle.render()
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
