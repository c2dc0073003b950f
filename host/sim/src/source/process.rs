//! The arrival processes. Times are microseconds as f64, which holds whole microseconds
//! exactly for 285 years, so that fractions of gaps are not lost.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::PHASES_MAX;
use crate::random::{Stream, running_sums};
use crate::workload::{Arrivals, Trace};

const SECOND_US: f64 = 1e6;

/// An arrival process and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    clock_us: f64,
    kind: Kind,
    phases: Phases,
}

/// Phase changes since the last arrival but one: the next arrival is drawn ahead, and whoever
/// asks for the phase asks for one before it.
#[derive(Clone, Debug)]
struct Phases {
    /// At the last arrival but one, and when it began.
    first: (usize, f64),
    changes: Vec<(usize, f64)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Renewal { gap_us: f64, law: Gap },
    Markov(Markov),
    Rates(Rates),
    Window(Window),
    Burst(Burst),
    Times { times: Arc<[u64]>, at: usize },
}

#[derive(Clone, Copy, Debug)]
enum Gap {
    Fixed,
    Exponential,
    Gamma(f64),
    Erlang(u32),
}

/// A Markovian arrival process: in phase i the next transition comes after an exponential
/// time with the phase's total rate.
#[derive(Clone, Debug)]
struct Markov {
    phase: usize,
    /// Per phase: mean time to the next transition.
    hold_us: Vec<f64>,
    /// Per phase: running sums of the rates of its transitions, first those without an
    /// arrival to each phase, then those with one.
    rates: Vec<Vec<f64>>,
}

/// Piecewise constant rates, Poisson inside.
#[derive(Clone, Debug)]
struct Rates {
    /// Arrivals per microsecond and length in microseconds.
    segments: Vec<(f64, f64)>,
    cyclic: bool,
    at: usize,
    segment_end_us: f64,
}

#[derive(Clone, Debug)]
struct Window {
    count: usize,
    length_us: f64,
    begin_us: f64,
    /// Of the present window, last to first.
    left: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Burst {
    /// None: nothing between bursts.
    gap_us: Option<f64>,
    next_single_us: Option<f64>,
    size: u32,
    every_us: f64,
    next_burst_us: f64,
    left: u32,
}

// === impl Process ===

impl Process {
    /// From a validated description; traces in files have been read.
    pub(crate) fn new(arrivals: &Arrivals) -> Self {
        let renewal = |rate: f64, law| Kind::Renewal {
            gap_us: SECOND_US / rate,
            law,
        };
        let kind = match arrivals {
            Arrivals::Poisson { rate } => renewal(*rate, Gap::Exponential),
            Arrivals::Gamma { rate, shape } => renewal(*rate, Gap::Gamma(*shape)),
            Arrivals::Erlang { rate, stages } => renewal(*rate, Gap::Erlang(*stages)),
            Arrivals::Periodic { rate } => renewal(*rate, Gap::Fixed),
            Arrivals::Mmpp { rates, leave } => Kind::Markov(Markov::modulated(rates, leave)),
            Arrivals::Map { d0, d1 } => Kind::Markov(Markov::new(d0, d1)),
            Arrivals::Phases(phases) => {
                let segments = phases.iter().map(|p| (p.rate, p.length_us.0 as f64));
                Kind::Rates(Rates::new(segments, true))
            }
            Arrivals::Window { count, length_us } => Kind::Window(Window {
                count: *count as usize,
                length_us: length_us.0 as f64,
                begin_us: 0.0,
                left: Vec::new(),
            }),
            Arrivals::Burst {
                rate,
                size,
                every_us,
            } => Kind::Burst(Burst {
                gap_us: (*rate > 0.0).then(|| SECOND_US / rate),
                next_single_us: None,
                size: *size,
                every_us: every_us.0 as f64,
                next_burst_us: every_us.0 as f64,
                left: *size,
            }),
            Arrivals::File(_) => Kind::of_trace(&Trace::default()),
            Arrivals::Trace(trace) => Kind::of_trace(trace),
        };
        Self {
            clock_us: 0.0,
            kind,
            phases: Phases {
                first: (0, 0.0),
                changes: Vec::new(),
            },
        }
    }

    /// The phase at a moment before the next arrival and not before the last one, and when it
    /// began, in microseconds. Processes without phases are always in the first.
    pub(crate) fn phase_at(&self, at_us: f64) -> (usize, f64) {
        let changes = self.phases.changes.iter().rev();
        let mut begun = changes.filter(|(_, since_us)| *since_us <= at_us);
        *begun.next().unwrap_or(&self.phases.first)
    }

    /// Arrivals per second in a phase; none where they do not come at a rate, or phases are not
    /// told apart.
    pub(crate) fn rate_in(&self, phase: usize) -> Option<f64> {
        match &self.kind {
            Kind::Renewal { gap_us, .. } => Some(SECOND_US / gap_us),
            Kind::Markov(markov) => markov.rate_in(phase),
            Kind::Rates(rates) if rates.segments.len() <= PHASES_MAX => {
                let (per_us, _) = rates.segments.get(phase)?;
                Some(per_us * SECOND_US)
            }
            Kind::Rates(_) | Kind::Window(_) | Kind::Burst(_) | Kind::Times { .. } => None,
        }
    }

    /// Phases whose requests are reported apart.
    pub(crate) fn phases(&self) -> usize {
        match &self.kind {
            Kind::Markov(markov) => markov.hold_us.len().min(PHASES_MAX),
            Kind::Rates(rates) => rates.segments.len().min(PHASES_MAX),
            _ => 1,
        }
    }

    /// Time in microseconds and phase of the next arrival; none after the last.
    pub(crate) fn next(&mut self, random: &mut Stream) -> Option<(f64, usize)> {
        let now = self.clock_us;
        let phases = &mut self.phases;
        phases.first = phases.changes.drain(..).next_back().unwrap_or(phases.first);
        let (at_us, phase) = match &mut self.kind {
            Kind::Renewal { gap_us, law } => (now + *gap_us * law.draw(random), 0),
            Kind::Markov(markov) => markov.next(now, &mut phases.changes, random),
            Kind::Rates(rates) => rates.next(now, &mut phases.changes, random)?,
            Kind::Window(window) => (window.next(random), 0),
            Kind::Burst(burst) => (burst.next(random), 0),
            Kind::Times { times, at } => {
                *at += 1;
                (*times.get(*at - 1)? as f64, 0)
            }
        };
        self.clock_us = at_us;
        Some((at_us, phase))
    }
}

impl Kind {
    fn of_trace(trace: &Trace) -> Self {
        match (&trace.qps, &trace.arrivals_us) {
            (Some(qps), _) => {
                let length_us = trace.interval_s.unwrap_or_default() * SECOND_US;
                Self::Rates(Rates::new(qps.iter().map(|&rate| (rate, length_us)), false))
            }
            (None, Some(times)) => Self::Times {
                times: times.as_slice().into(),
                at: 0,
            },
            (None, None) => {
                let requests = trace.requests.iter().flatten();
                Self::Times {
                    times: requests.map(|request| request.at_us).collect(),
                    at: 0,
                }
            }
        }
    }
}

impl Gap {
    /// A gap with mean 1.
    fn draw(self, random: &mut Stream) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Exponential => random.exponential(),
            Self::Gamma(shape) => random.gamma(shape),
            Self::Erlang(stages) => {
                let sum: f64 = (0..stages).map(|_| random.exponential()).sum();
                sum / f64::from(stages)
            }
        }
    }
}

// === impl Markov ===

impl Markov {
    fn modulated(rates: &[f64], leave: &[f64]) -> Self {
        let phases = rates.len();
        let matrix = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let row = |i| (0..phases).map(|j| entry(i, j)).collect();
            (0..phases).map(row).collect()
        };
        let d0 = matrix(&|i, j| if j == (i + 1) % phases { leave[i] } else { 0.0 });
        let d1 = matrix(&|i, j| if i == j { rates[i] } else { 0.0 });
        Self::new(&d0, &d1)
    }

    /// The diagonal of `d0` is implied by the rest and not read.
    fn new(d0: &[Vec<f64>], d1: &[Vec<f64>]) -> Self {
        let row = |(i, (row0, row1)): (usize, (&Vec<f64>, &Vec<f64>))| {
            let silent = row0.iter().enumerate();
            let silent = silent.map(|(j, &rate)| if i == j { 0.0 } else { rate });
            running_sums(silent.chain(row1.iter().copied()))
        };
        let rates: Vec<Vec<f64>> = d0.iter().zip(d1).enumerate().map(row).collect();
        let total = |sums: &Vec<f64>| sums.last().copied().unwrap_or(1.0);
        Self {
            phase: 0,
            hold_us: rates.iter().map(|sums| SECOND_US / total(sums)).collect(),
            rates,
        }
    }

    /// Of all transitions from a phase, those with an arrival.
    fn rate_in(&self, phase: usize) -> Option<f64> {
        let sums = self.rates.get(phase)?;
        Some(sums.last()? - sums.get(self.hold_us.len() - 1)?)
    }

    fn next(
        &mut self,
        now_us: f64,
        changes: &mut Vec<(usize, f64)>,
        random: &mut Stream,
    ) -> (f64, usize) {
        let phases = self.hold_us.len();
        let mut at_us = now_us;
        loop {
            let from = self.phase;
            at_us += self.hold_us[from] * random.exponential();
            let transition = random.pick(&self.rates[from]);
            self.phase = transition % phases;
            if self.phase != from {
                changes.push((self.phase, at_us));
            }
            if transition >= phases {
                return (at_us, from.min(PHASES_MAX - 1));
            }
        }
    }
}

// === impl Rates ===

impl Rates {
    fn new(segments: impl Iterator<Item = (f64, f64)>, cyclic: bool) -> Self {
        let segments: Vec<_> = segments
            .map(|(per_second, length_us)| (per_second / SECOND_US, length_us))
            .collect();
        Self {
            segment_end_us: segments.first().map_or(0.0, |segment| segment.1),
            segments,
            cyclic,
            at: 0,
        }
    }

    /// By inversion: an exponential amount of expected arrivals passes until the next one.
    fn next(
        &mut self,
        now_us: f64,
        changes: &mut Vec<(usize, f64)>,
        random: &mut Stream,
    ) -> Option<(f64, usize)> {
        let mut left = random.exponential();
        let mut from_us = now_us;
        loop {
            let (rate, _) = *self.segments.get(self.at)?;
            let passes = rate * (self.segment_end_us - from_us);
            if left < passes {
                return Some((from_us + left / rate, self.phase()));
            }
            left -= passes;
            from_us = self.segment_end_us;
            self.at += 1;
            if self.cyclic && self.at == self.segments.len() {
                self.at = 0;
            }
            self.segment_end_us += self.segments.get(self.at)?.1;
            changes.push((self.phase(), from_us));
        }
    }

    fn phase(&self) -> usize {
        match self.segments.len() {
            few if few <= PHASES_MAX => self.at,
            many => self.at * PHASES_MAX / many,
        }
    }
}

// === impl Window ===

impl Window {
    fn next(&mut self, random: &mut Stream) -> f64 {
        if self.left.is_empty() {
            let begin_us = self.begin_us;
            let times = (0..self.count).map(|_| begin_us + self.length_us * random.uniform());
            self.left.extend(times);
            self.left.sort_by(|a, b| b.total_cmp(a));
            self.begin_us += self.length_us;
        }
        // A window holds one arrival at least.
        self.left.pop().unwrap_or(self.begin_us)
    }
}

// === impl Burst ===

impl Burst {
    fn next(&mut self, random: &mut Stream) -> f64 {
        if let (None, Some(gap_us)) = (self.next_single_us, self.gap_us) {
            self.next_single_us = Some(gap_us * random.exponential());
        }
        if let (Some(single_us), Some(gap_us)) = (self.next_single_us, self.gap_us)
            && single_us < self.next_burst_us
        {
            self.next_single_us = Some(single_us + gap_us * random.exponential());
            return single_us;
        }
        let at_us = self.next_burst_us;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.size;
            self.next_burst_us += self.every_us;
        }
        at_us
    }
}
