//! Scheduling overhead: host time of policies. It is never part of a
//! [`Report`](crate::metrics::Report), which is deterministic; the caller brings the clock.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::window::Window;

use crate::metrics::Histogram;

/// A policy whose windows are timed. Parallel runs do not wait for each other: each has its own
/// histogram, which is added to the shared one when the policy is dropped.
pub struct Timed<C> {
    inner: Box<dyn Policy>,
    /// Nanoseconds of a monotonic clock.
    clock_ns: C,
    own: WindowHistogram,
    overhead: Overhead,
}

/// The window times of timed policies; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Overhead(Arc<Mutex<WindowHistogram>>);

#[derive(Debug, Default)]
struct WindowHistogram {
    sum_ns: u64,
    count: u64,
    histogram: Histogram,
}

/// Host time per window call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowTimes {
    /// Number of windows.
    pub windows: u64,
    /// Mean in microseconds.
    pub mean_us: f64,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Longest in microseconds.
    pub max_us: f64,
}

// === impl Timed ===

impl<C: FnMut() -> u64 + Send> Timed<C> {
    /// Times `inner` by a clock in nanoseconds.
    pub fn new(inner: Box<dyn Policy>, clock_ns: C, overhead: Overhead) -> Self {
        Self {
            inner,
            clock_ns,
            own: WindowHistogram::default(),
            overhead,
        }
    }
}

impl<C: FnMut() -> u64 + Send> Policy for Timed<C> {
    fn description(&self) -> &Description {
        self.inner.description()
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.inner.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let began_ns = (self.clock_ns)();
        let answer = self.inner.schedule(window, plan);
        self.own.record((self.clock_ns)().saturating_sub(began_ns));
        answer
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        self.inner.save()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.inner.restore(state)
    }
}

impl<C> Drop for Timed<C> {
    fn drop(&mut self) {
        self.overhead.add(&self.own);
    }
}

// === impl WindowHistogram ===

impl WindowHistogram {
    fn record(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.count += 1;
        self.histogram.record(ns);
    }
}

// === impl Overhead ===

impl Overhead {
    fn add(&self, run: &WindowHistogram) {
        // A panic of another run leaves a histogram that is still valid.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.sum_ns += run.sum_ns;
        all.count += run.count;
        all.histogram.add(&run.histogram);
    }

    /// The times of all policies that have been dropped.
    pub fn times(&self) -> WindowTimes {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quantile_us = |quantile| all.histogram.quantile(quantile) as f64 / 1e3;
        WindowTimes {
            windows: all.count,
            mean_us: all.sum_ns as f64 / 1e3 / all.count.max(1) as f64,
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            max_us: all.histogram.max() as f64 / 1e3,
        }
    }
}
