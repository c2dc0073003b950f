//! Arrivals of traces that a run leaves out because it ends earlier.

use std::fmt;

use switchyard_core::time::Micros;

use super::arrivals::Arrivals;
use super::error::WorkloadError;
use super::stream::{Apps, Workload};
use super::trace::Trace;

/// The arrivals of a workload's traces, and those that a run does not reach.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceCut {
    /// End of the run's arrivals, in microseconds.
    pub end_us: Micros,
    /// Arrivals at that time or later.
    pub left_out: f64,
    /// All arrivals of the traces.
    pub of: f64,
    /// A trace has rates instead of arrivals, so that the numbers are means.
    pub is_mean: bool,
}

// === impl Workload ===

impl Workload {
    /// The arrivals of its traces that a run with `apps` apps leaves out if it ends at `end`; none
    /// if the run reaches the end of every trace.
    ///
    /// # Errors
    /// A trace file cannot be read.
    pub fn cut_at(&self, end: Micros, apps: usize) -> Result<Option<TraceCut>, WorkloadError> {
        let mut cut = TraceCut {
            end_us: end,
            left_out: 0.0,
            of: 0.0,
            is_mean: false,
        };
        for stream in &self.streams {
            // Each app has the whole trace.
            let copies = if stream.apps == Apps::Each { apps } else { 1 };
            match &stream.arrivals {
                Arrivals::File(path) => cut.add(&Trace::load(path)?, copies),
                Arrivals::Trace(trace) => cut.add(trace, copies),
                _ => {}
            }
        }
        Ok((cut.left_out > 0.0).then_some(cut))
    }
}

// === impl TraceCut ===

impl TraceCut {
    fn add(&mut self, trace: &Trace, copies: usize) {
        let (left_out, of) = trace.arrivals_from(self.end_us);
        self.left_out += left_out * copies as f64;
        self.of += of * copies as f64;
        self.is_mean |= trace.qps.is_some() && left_out > 0.0;
    }
}

impl fmt::Display for TraceCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.is_mean { "about " } else { "" };
        let Self { left_out, of, .. } = self;
        let seconds = self.end_us.as_secs_f64();
        write!(
            f,
            "{about}{left_out:.0} of {of:.0} arrivals of the trace, those after {seconds} s, are \
             left out"
        )
    }
}
