//! Scheduling overhead: what a policy costs the machine it runs on. Host time, so never part
//! of a [`Report`](crate::metrics::Report); the clock is the caller's.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::window::Window;

use crate::metrics::Histogram;

/// A policy whose windows are timed. Runs in parallel do not wait for each other: each counts for
/// itself, and what it counted is added up when its policy is dropped.
pub struct Timed<C> {
    inner: Box<dyn Policy>,
    /// Nanoseconds on any clock that does not go back.
    clock_ns: C,
    tally: Tally,
    overhead: Overhead,
}

/// Where a timed policy's window times go; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Overhead(Arc<Mutex<Tally>>);

#[derive(Debug, Default)]
struct Tally {
    sum_ns: u64,
    count: u64,
    histogram: Histogram,
}

/// Host time per window call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowTimes {
    /// Windows timed.
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
            tally: Tally::default(),
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
        self.tally
            .record((self.clock_ns)().saturating_sub(began_ns));
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
        self.overhead.add(&self.tally);
    }
}

// === impl Tally ===

impl Tally {
    fn record(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.count += 1;
        self.histogram.record(ns);
    }
}

// === impl Overhead ===

impl Overhead {
    fn add(&self, run: &Tally) {
        // A panic elsewhere leaves counts that are still counts.
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.sum_ns += run.sum_ns;
        tally.count += run.count;
        tally.histogram.add(&run.histogram);
    }

    /// What the policies that are gone took.
    pub fn times(&self) -> WindowTimes {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quantile_us = |quantile| tally.histogram.quantile(quantile) as f64 / 1e3;
        WindowTimes {
            windows: tally.count,
            mean_us: tally.sum_ns as f64 / 1e3 / tally.count.max(1) as f64,
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            max_us: tally.histogram.max() as f64 / 1e3,
        }
    }
}
