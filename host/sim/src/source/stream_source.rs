//! One stream of a workload at work: times, apps and deadlines of its requests.

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::ids::AppId;
use switchyard_core::time::{Micros, Time};

use super::process::ArrivalProcess;
use crate::random::{Purpose, Stream};
use crate::workload::Deadline;

/// A drawn deadline is at least this share of the mean.
const DEADLINE_MIN: f64 = 0.1;

/// One stream of a workload, at work.
#[derive(Clone, Debug)]
pub(crate) struct StreamSource {
    process: ArrivalProcess,
    apps: WeightedApps,
    deadline: Deadline,
    lengths: RequestLengths,
    /// App, deadline and length of recorded requests, last to first.
    recorded: Vec<RecordedTarget>,
    /// Number of its first phase among all phases of the workload.
    first_phase: usize,
    times: Stream,
    choices: Stream,
    deadlines: Stream,
    length_draws: Stream,
}

/// Apps with running sums of their weights; a single app needs no draw.
#[derive(Clone, Debug)]
pub(super) struct WeightedApps {
    pub(super) apps: Vec<AppId>,
    pub(super) sums: Vec<f64>,
}

/// Lengths of requests with running sums of their weights; none: as long as those of the profile.
#[derive(Clone, Debug)]
pub(super) struct RequestLengths {
    pub(super) lengths: Vec<u32>,
    pub(super) sums: Vec<f64>,
}

/// A recorded request: its app, and its deadline and length if they were recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedTarget {
    pub(super) app: AppId,
    pub(super) deadline: Option<Micros>,
    pub(super) length: Option<u32>,
}

/// The next request of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawnRequest {
    pub(crate) app: AppId,
    /// From its arrival.
    pub(crate) deadline: Micros,
    pub(crate) cost: Cost,
}

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) phase: u32,
}

// === impl StreamSource ===

impl StreamSource {
    /// `draws` makes the stream's random numbers for a purpose.
    pub(super) fn new(
        process: ArrivalProcess,
        apps: WeightedApps,
        (deadline, lengths): (Deadline, RequestLengths),
        recorded: Vec<RecordedTarget>,
        first_phase: usize,
        draws: impl Fn(Purpose) -> Stream,
    ) -> Self {
        Self {
            process,
            apps,
            deadline,
            lengths,
            recorded,
            first_phase,
            times: draws(Purpose::Arrivals),
            choices: draws(Purpose::Apps),
            deadlines: draws(Purpose::Deadlines),
            length_draws: draws(Purpose::Lengths),
        }
    }

    /// Time and phase of the next request; none after the last.
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        let (at_us, phase) = self.process.next(&mut self.times)?;
        Some(Arrival {
            at: Time(at_us as u64),
            phase: (self.first_phase + phase) as u32,
        })
    }

    /// The phase at a time between the last arrival and the next, and its beginning.
    pub(crate) fn phase_at(&self, at: Time) -> (usize, Time) {
        let start = self.process.phase_at(at.0 as f64);
        (start.phase, Time(start.since_us as u64))
    }

    /// Arrivals per second at that time, with the apps that share them.
    pub(super) fn rate_at(&self, at: Time) -> (&WeightedApps, Option<f64>) {
        let (phase, _) = self.phase_at(at);
        (&self.apps, self.process.rate_in(phase))
    }

    /// The request that arrives now.
    pub(crate) fn request(&mut self, catalog: &Catalog) -> DrawnRequest {
        let recorded = self.recorded.pop();
        let app = recorded.map_or_else(|| self.app(), |recorded| recorded.app);
        let slo = catalog.apps[app.index()].slo;
        let deadline = recorded.and_then(|recorded| recorded.deadline);
        let length = recorded.and_then(|recorded| recorded.length);
        let length = length.or_else(|| self.length());
        DrawnRequest {
            app,
            deadline: deadline.unwrap_or_else(|| self.deadline(slo)),
            cost: length.map_or(Cost::ONE, |length| catalog.profile.cost(app, length)),
        }
    }

    fn length(&mut self) -> Option<u32> {
        match self.lengths.lengths[..] {
            [] => None,
            [only] => Some(only),
            ref several => Some(several[self.length_draws.pick(&self.lengths.sums)]),
        }
    }

    fn app(&mut self) -> AppId {
        match self.apps.apps[..] {
            [app] => app,
            _ => self.apps.apps[self.choices.pick(&self.apps.sums)],
        }
    }

    fn deadline(&mut self, slo: Micros) -> Micros {
        match self.deadline {
            Deadline::Slo => slo,
            Deadline::Scaled(factor) => Micros((slo.0 as f64 * factor) as u64).max(Micros(1)),
            Deadline::Fixed(length) => length,
            Deadline::Normal { mean_us, sd_us } => {
                let mean = mean_us.0 as f64;
                let us = mean + sd_us.0 as f64 * self.deadlines.normal();
                Micros(us.max(mean * DEADLINE_MIN) as u64).max(Micros(1))
            }
        }
    }
}
