//! Workloads at another load.

use switchyard_core::time::Micros;

use super::arrivals::Arrivals;
use super::error::WorkloadError;
use super::stream::Workload;
use super::trace::Trace;

// === impl Workload ===

impl Workload {
    /// The same with `load` times as many requests per second. Phases keep their lengths; processes
    /// that are given by times (windows, bursts, recorded traces) run `load` times as fast.
    ///
    /// # Errors
    /// `load` is not a positive number, or a trace file cannot be read.
    pub fn scaled(&self, load: f64) -> Result<Self, WorkloadError> {
        if !(load.is_finite() && load > 0.0) {
            return Err(WorkloadError::value("load", "must be positive"));
        }
        let mut scaled = self.clone();
        for stream in &mut scaled.streams {
            stream.arrivals.scale(load)?;
        }
        Ok(scaled)
    }
}

// === impl Arrivals ===

impl Arrivals {
    fn scale(&mut self, load: f64) -> Result<(), WorkloadError> {
        match self {
            Self::Poisson { rate }
            | Self::Gamma { rate, .. }
            | Self::Erlang { rate, .. }
            | Self::Periodic { rate } => *rate *= load,
            Self::Mmpp { rates, .. } => rates.iter_mut().for_each(|rate| *rate *= load),
            // Both matrices, so the phases change faster too.
            Self::Map { d0, d1 } => {
                let cells = d0.iter_mut().chain(d1).flatten();
                cells.for_each(|rate| *rate *= load);
            }
            Self::Phases(phases) => phases.iter_mut().for_each(|phase| phase.rate *= load),
            Self::Window { length_us, .. } => shorten(length_us, load),
            Self::Burst { rate, every_us, .. } => {
                *rate *= load;
                shorten(every_us, load);
            }
            Self::File(path) => {
                let mut trace = Trace::load(path)?;
                trace.scale(load);
                *self = Self::Trace(trace);
            }
            Self::Trace(trace) => trace.scale(load),
        }
        Ok(())
    }
}

// === impl Trace ===

impl Trace {
    fn scale(&mut self, load: f64) {
        for rate in self.qps.iter_mut().flatten() {
            *rate *= load;
        }
        let recorded = self.requests.iter_mut().flatten();
        let recorded = recorded.map(|request| &mut request.at_us);
        for time_us in self.arrivals_us.iter_mut().flatten().chain(recorded) {
            *time_us = (*time_us as f64 / load).round() as u64;
        }
    }
}

/// At least a microsecond: time would not advance in windows of length 0.
fn shorten(length: &mut Micros, load: f64) {
    *length = Micros(((length.0 as f64 / load).round() as u64).max(1));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scaled(spec: &str, load: f64) -> Arrivals {
        let workload: Workload = spec.parse().unwrap();
        workload.scaled(load).unwrap().streams.remove(0).arrivals
    }

    #[test]
    fn rates_grow_and_times_shrink() {
        assert_eq!(
            scaled("poisson:200", 1.5),
            Arrivals::Poisson { rate: 300.0 }
        );
        let Arrivals::Mmpp { rates, leave } = scaled("mmpp:180,10,0.036,0.002", 2.0) else {
            panic!("not an mmpp");
        };
        assert_eq!((rates, leave), (vec![360.0, 20.0], vec![0.036, 0.002]));
        let window = Arrivals::Window {
            count: 12,
            length_us: Micros(50_000),
        };
        assert_eq!(scaled("window:12x100ms", 2.0), window);
        let mut trace = Trace {
            arrivals_us: Some(vec![0, 10, 30]),
            ..Trace::default()
        };
        trace.scale(2.0);
        assert_eq!(trace.arrivals_us, Some(vec![0, 5, 15]));
    }

    #[test]
    fn a_load_is_a_positive_number() {
        let workload: Workload = "poisson:200".parse().unwrap();
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(workload.scaled(load).is_err(), "{load}");
        }
    }
}
