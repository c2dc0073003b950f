//! An arrival process at work.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::burst::BurstArrivals;
use super::gaps::{GapLaw, RenewalArrivals};
use super::markov::MarkovArrivals;
use super::phases::{PhaseHistory, PhaseStart, SECOND_US};
use super::piecewise::PiecewiseArrivals;
use super::window::WindowedArrivals;
use crate::random::Stream;
use crate::workload::{Arrivals, Trace};

/// An arrival process and its position.
#[derive(Clone, Debug)]
pub(super) struct ArrivalProcess {
    clock_us: f64,
    kind: ProcessKind,
    history: PhaseHistory,
}

#[derive(Clone, Debug)]
enum ProcessKind {
    Renewal(RenewalArrivals),
    Markov(MarkovArrivals),
    Piecewise(PiecewiseArrivals),
    Window(WindowedArrivals),
    Burst(BurstArrivals),
    Times { times_us: Arc<[u64]>, at: usize },
}

// === impl ArrivalProcess ===

impl ArrivalProcess {
    /// From a validated description whose trace file has been read.
    pub(super) fn new(arrivals: &Arrivals) -> Self {
        Self {
            clock_us: 0.0,
            kind: ProcessKind::new(arrivals),
            history: PhaseHistory::new(),
        }
    }

    /// The phase at a time between the last arrival and the next. Processes without phases are
    /// always in the first.
    pub(super) fn phase_at(&self, at_us: f64) -> PhaseStart {
        self.history.at(at_us)
    }

    /// Arrivals per second in a phase; none if the process has no rate, or if phases are reported
    /// together.
    pub(super) fn rate_in(&self, phase: usize) -> Option<f64> {
        match &self.kind {
            ProcessKind::Renewal(renewal) => Some(SECOND_US / renewal.gap_us),
            ProcessKind::Markov(markov) => markov.rate_in(phase),
            ProcessKind::Piecewise(piecewise) => piecewise.rate_in(phase),
            ProcessKind::Window(_) | ProcessKind::Burst(_) | ProcessKind::Times { .. } => None,
        }
    }

    /// Phases whose requests are reported separately.
    pub(super) fn phases(&self) -> usize {
        match &self.kind {
            ProcessKind::Markov(markov) => markov.phases(),
            ProcessKind::Piecewise(piecewise) => piecewise.phases(),
            _ => 1,
        }
    }

    /// Time in microseconds and phase of the next arrival; none after the last.
    pub(super) fn next(&mut self, random: &mut Stream) -> Option<(f64, usize)> {
        let now_us = self.clock_us;
        let history = &mut self.history;
        history.advance();
        let (at_us, phase) = match &mut self.kind {
            ProcessKind::Renewal(renewal) => (renewal.next(now_us, random), 0),
            ProcessKind::Markov(markov) => markov.next(now_us, history, random),
            ProcessKind::Piecewise(piecewise) => piecewise.next(now_us, history, random)?,
            ProcessKind::Window(window) => (window.next(random), 0),
            ProcessKind::Burst(burst) => (burst.next(random), 0),
            ProcessKind::Times { times_us, at } => {
                *at += 1;
                (*times_us.get(*at - 1)? as f64, 0)
            }
        };
        self.clock_us = at_us;
        Some((at_us, phase))
    }
}

// === impl ProcessKind ===

impl ProcessKind {
    fn new(arrivals: &Arrivals) -> Self {
        let renewal = |rate: f64, law| {
            let gap_us = SECOND_US / rate;
            Self::Renewal(RenewalArrivals { gap_us, law })
        };
        match arrivals {
            Arrivals::Poisson { rate } => renewal(*rate, GapLaw::Exponential),
            Arrivals::Gamma { rate, shape } => renewal(*rate, GapLaw::Gamma(*shape)),
            Arrivals::Erlang { rate, stages } => renewal(*rate, GapLaw::Erlang(*stages)),
            Arrivals::Periodic { rate } => renewal(*rate, GapLaw::Fixed),
            Arrivals::Mmpp { rates, leave } => {
                Self::Markov(MarkovArrivals::modulated(rates, leave))
            }
            Arrivals::Map { d0, d1 } => Self::Markov(MarkovArrivals::new(d0, d1)),
            Arrivals::Phases(phases) => {
                let segments = phases.iter().map(|p| (p.rate, p.length_us.0 as f64));
                Self::Piecewise(PiecewiseArrivals::new(segments, true))
            }
            Arrivals::Window { count, length_us } => {
                Self::Window(WindowedArrivals::new(*count, length_us.0 as f64))
            }
            Arrivals::Burst {
                rate,
                size,
                every_us,
            } => {
                let gap_us = (*rate > 0.0).then(|| SECOND_US / rate);
                Self::Burst(BurstArrivals::new(gap_us, *size, every_us.0 as f64))
            }
            Arrivals::File(_) => Self::of_trace(&Trace::default()),
            Arrivals::Trace(trace) => Self::of_trace(trace),
        }
    }

    fn of_trace(trace: &Trace) -> Self {
        if let Some(qps) = &trace.qps {
            let length_us = trace.interval_s.unwrap_or_default() * SECOND_US;
            let segments = qps.iter().map(|&rate| (rate, length_us));
            return Self::Piecewise(PiecewiseArrivals::new(segments, false));
        }
        let times_us = match &trace.arrivals_us {
            Some(times) => times.as_slice().into(),
            None => {
                let requests = trace.requests.iter().flatten();
                requests.map(|request| request.at_us).collect()
            }
        };
        Self::Times { times_us, at: 0 }
    }
}
