//! Arrival times, drawn one after the other: nothing is kept of those that were.

mod process;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;
use switchyard_core::time::{Micros, Time};

use crate::random::{Purpose, Stream, running_sums};
use crate::workload::{self, Apps, Arrivals, Deadline, Trace, Workload, WorkloadError};
use process::Process;

/// Phases that are reported apart; longer traces share these evenly.
pub const PHASES_MAX: usize = 32;

/// A drawn deadline is never below this share of the mean.
const DEADLINE_MIN: f64 = 0.1;

/// One stream of a workload, at work.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    process: Process,
    apps: Vec<AppId>,
    /// Running sums of the apps' weights; one app needs no draw.
    weights: Vec<f64>,
    deadline: Deadline,
    /// App and deadline of recorded requests, last to first.
    recorded: Vec<(AppId, Option<Micros>)>,
    /// Policies are told its rate.
    known: bool,
    /// Number of its first phase among all phases of the workload.
    first_phase: usize,
    times: Stream,
    choices: Stream,
    deadlines: Stream,
}

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) phase: u32,
}

// === impl Source ===

impl Source {
    /// When the next request arrives; none after the last.
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        let (at_us, phase) = self.process.next(&mut self.times)?;
        Some(Arrival {
            at: Time(at_us as u64),
            phase: (self.first_phase + phase) as u32,
        })
    }

    /// The phase at a moment between the last arrival and the next, and when it began.
    pub(crate) fn phase_at(&self, at: Time) -> (usize, Time) {
        let (phase, since_us) = self.process.phase_at(at.0 as f64);
        (phase, Time(since_us as u64))
    }

    /// Whose the request that arrives now is, and how long after its arrival it wants an answer.
    pub(crate) fn request(&mut self, catalog: &Catalog) -> (AppId, Micros) {
        let recorded = self.recorded.pop();
        let (app, given) = recorded.unwrap_or_else(|| (self.app(), None));
        let slo = catalog.apps[app.index()].slo;
        (app, given.unwrap_or_else(|| self.deadline(slo)))
    }

    fn app(&mut self) -> AppId {
        match self.apps[..] {
            [app] => app,
            _ => self.apps[self.choices.pick(&self.weights)],
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

/// The streams of a workload on a catalog, and the names of all their phases.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) sources: Vec<Source>,
    pub(crate) phases: Vec<String>,
}

// === impl Sources ===

impl Sources {
    /// Checks the workload against the catalog and reads its traces.
    pub(crate) fn try_new(
        workload: &Workload,
        catalog: &Catalog,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        if workload.streams.is_empty() {
            return Err(WorkloadError::value("streams", "is empty"));
        }
        let mut made = Self {
            sources: Vec::new(),
            phases: Vec::new(),
        };
        for stream in &workload.streams {
            stream.arrivals.validate()?;
            stream.deadline.validate()?;
            for (apps, weights) in targets(&stream.apps, catalog)? {
                made.add(stream, apps, weights, catalog, seed)?;
            }
        }
        Ok(made)
    }

    fn add(
        &mut self,
        stream: &workload::Stream,
        apps: Vec<AppId>,
        weights: Vec<f64>,
        catalog: &Catalog,
        seed: u64,
    ) -> Result<(), WorkloadError> {
        let lane = self.sources.len() as u64;
        let draws = |purpose| Stream::new(seed, purpose, lane);
        let loaded;
        let arrivals = match &stream.arrivals {
            Arrivals::File(path) => {
                loaded = Arrivals::Trace(Trace::load(path)?);
                &loaded
            }
            given => given,
        };
        let recorded = recorded(arrivals, catalog)?;
        if stream.apps == Apps::Each && !recorded.is_empty() {
            let reason = "recorded requests name their own: not with `*=`";
            return Err(WorkloadError::value("apps", reason));
        }
        let process = Process::new(arrivals);
        if stream.known && process.rate_in(0).is_none() {
            let reason = format!("{} has no rate that could be known", arrivals.label());
            return Err(WorkloadError::value("@known", reason));
        }
        let first_phase = self.phases.len();
        let name = arrivals.label();
        self.phases.extend(match process.phases() {
            1 => vec![format!("{lane}:{name}")],
            several => (0..several)
                .map(|i| format!("{lane}:{name}[{i}]"))
                .collect(),
        });
        self.sources.push(Source {
            process,
            apps,
            weights,
            deadline: stream.deadline,
            known: stream.known,
            recorded,
            first_phase,
            times: draws(Purpose::Arrivals),
            choices: draws(Purpose::Apps),
            deadlines: draws(Purpose::Deadlines),
        });
        Ok(())
    }

    /// Arrivals per second of each app at a moment between the last arrivals and the next, for
    /// apps all of whose streams are known; none where no stream is.
    pub(crate) fn known_rates(&self, at: Time, apps: usize) -> Option<Vec<Option<f64>>> {
        if !self.sources.iter().any(|source| source.known) {
            return None;
        }
        let mut rates = vec![Some(0.0); apps];
        for source in &self.sources {
            let (phase, _) = source.phase_at(at);
            let rate = source.process.rate_in(phase).filter(|_| source.known);
            let total = source.weights.last().copied().unwrap_or(1.0);
            let mut before = 0.0;
            for (app, &sum) in source.apps.iter().zip(&source.weights) {
                let share = (sum - before) / total;
                before = sum;
                let known = &mut rates[app.index()];
                *known = known.zip(rate).map(|(known, rate)| known + rate * share);
            }
        }
        Some(rates)
    }
}

fn recorded(
    arrivals: &Arrivals,
    catalog: &Catalog,
) -> Result<Vec<(AppId, Option<Micros>)>, WorkloadError> {
    let Arrivals::Trace(trace) = arrivals else {
        return Ok(Vec::new());
    };
    let last_to_first = trace.requests.iter().flatten().rev();
    last_to_first
        .map(|request| Ok((app_id(&request.app, catalog)?, request.deadline_us)))
        .collect()
}

type Target = (Vec<AppId>, Vec<f64>);

fn targets(apps: &Apps, catalog: &Catalog) -> Result<Vec<Target>, WorkloadError> {
    let all = || (0..catalog.apps.len() as u32).map(AppId);
    if catalog.apps.is_empty() {
        return Err(WorkloadError::value("apps", "the catalog has none"));
    }
    match apps {
        Apps::All => Ok(vec![(all().collect(), running_sums(all().map(|_| 1.0)))]),
        Apps::Each => Ok(all().map(|app| (vec![app], vec![1.0])).collect()),
        Apps::Mix(mix) => {
            for (app, &weight) in mix {
                if !(weight.is_finite() && weight >= 0.0) {
                    let reason = format!("{weight} is not a weight");
                    return Err(WorkloadError::value(format!("mix.{app}"), reason));
                }
            }
            if mix.values().sum::<f64>() <= 0.0 {
                return Err(WorkloadError::value("mix", "all weights are zero"));
            }
            let named = mix.keys().map(|name| app_id(name, catalog));
            let apps = named.collect::<Result<_, _>>()?;
            Ok(vec![(apps, running_sums(mix.values().copied()))])
        }
    }
}

fn app_id(name: &str, catalog: &Catalog) -> Result<AppId, WorkloadError> {
    let found = catalog.apps.iter().position(|app| app.name == name);
    found.map(|at| AppId(at as u32)).ok_or_else(|| {
        let known: Vec<&str> = catalog.apps.iter().map(|app| app.name.as_str()).collect();
        WorkloadError::UnknownApp {
            app: name.to_owned(),
            known: known.join(", "),
        }
    })
}
