//! The streams of a workload on a catalog.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;
use switchyard_core::time::Time;

use super::process::ArrivalProcess;
use super::stream_source::{RecordedTarget, RequestLengths, StreamSource, WeightedApps};
use crate::random::{Stream, running_sums};
use crate::workload::{Apps, Arrivals, RequestStream, Trace, Workload, WorkloadError};

/// A source of arrivals, by its position in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub(crate) u32);

/// All sources of a workload, and the names of their phases.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    list: Vec<StreamSource>,
    /// Whether windows show the rate of the source, by source.
    known: Vec<bool>,
    phases: Vec<String>,
}

// === impl SourceId ===

impl SourceId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
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
            list: Vec::new(),
            known: Vec::new(),
            phases: Vec::new(),
        };
        for stream in &workload.streams {
            stream.arrivals.validate()?;
            stream.deadline.validate()?;
            stream.check_lengths()?;
            for apps in targets(&stream.apps, catalog)? {
                made.add(stream, apps, catalog, seed)?;
            }
        }
        Ok(made)
    }

    fn add(
        &mut self,
        stream: &RequestStream,
        apps: WeightedApps,
        catalog: &Catalog,
        seed: u64,
    ) -> Result<(), WorkloadError> {
        let lane = self.list.len() as u64;
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
        let process = ArrivalProcess::new(arrivals);
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
        let lengths = RequestLengths {
            lengths: stream.lengths.iter().map(|share| share.length).collect(),
            sums: running_sums(stream.lengths.iter().map(|share| share.weight)),
        };
        let recorded_apps = recorded.iter().filter(|recorded| recorded.length.is_some());
        let mut with_length: Vec<AppId> = recorded_apps.map(|recorded| recorded.app).collect();
        if !lengths.lengths.is_empty() {
            with_length.extend(&apps.apps);
        }
        check_costs(&with_length, catalog)?;
        let draws = |purpose| Stream::new(seed, purpose, lane);
        let deadline = stream.deadline;
        let laws = (deadline, lengths);
        let source = StreamSource::new(process, apps, laws, recorded, first_phase, draws);
        self.list.push(source);
        self.known.push(stream.known);
        Ok(())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        (0..self.list.len() as u32).map(SourceId)
    }

    pub(crate) fn get(&self, source: SourceId) -> Option<&StreamSource> {
        self.list.get(source.index())
    }

    pub(crate) fn get_mut(&mut self, source: SourceId) -> &mut StreamSource {
        &mut self.list[source.index()]
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut StreamSource> {
        self.list.iter_mut()
    }

    /// Names of all phases of the workload.
    pub(crate) fn phases(&self) -> &[String] {
        &self.phases
    }

    /// Arrivals per second of each app at a time between the last arrivals and the next; unknown for
    /// an app with a stream that is not known, and none if no stream is known.
    pub(crate) fn known_rates(&self, at: Time, apps: usize) -> Option<Vec<Option<f64>>> {
        if !self.known.contains(&true) {
            return None;
        }
        let mut rates = vec![Some(0.0); apps];
        for (source, known) in self.list.iter().zip(&self.known) {
            let (shared, rate) = source.rate_at(at);
            let rate = rate.filter(|_| *known);
            let total = shared.sums.last().copied().unwrap_or(1.0);
            let mut before = 0.0;
            for (app, &sum) in shared.apps.iter().zip(&shared.sums) {
                let share = (sum - before) / total;
                before = sum;
                let known = &mut rates[app.index()];
                *known = known.zip(rate).map(|(known, rate)| known + rate * share);
            }
        }
        Some(rates)
    }
}

fn recorded(arrivals: &Arrivals, catalog: &Catalog) -> Result<Vec<RecordedTarget>, WorkloadError> {
    let Arrivals::Trace(trace) = arrivals else {
        return Ok(Vec::new());
    };
    let last_to_first = trace.requests.iter().flatten().rev();
    last_to_first
        .map(|request| {
            Ok(RecordedTarget {
                app: app_id(&request.app, catalog)?,
                deadline: request.deadline_us,
                length: request.length,
            })
        })
        .collect()
}

/// Lengths mean something only where the profile has their costs.
fn check_costs(apps: &[AppId], catalog: &Catalog) -> Result<(), WorkloadError> {
    let unknown = |app: &&AppId| catalog.profile.costs(**app).is_none();
    match apps.iter().find(unknown) {
        None => Ok(()),
        Some(app) => {
            let name = &catalog.apps[app.index()].name;
            let reason = format!(
                "the profile has no latencies of app {name} by length: leave the lengths out, or \
                 measure an app that takes texts"
            );
            Err(WorkloadError::value("length", reason))
        }
    }
}

/// The apps of each source that a stream makes.
fn targets(apps: &Apps, catalog: &Catalog) -> Result<Vec<WeightedApps>, WorkloadError> {
    let all = || (0..catalog.apps.len() as u32).map(AppId);
    if catalog.apps.is_empty() {
        return Err(WorkloadError::value("apps", "the catalog has none"));
    }
    match apps {
        Apps::All => Ok(vec![WeightedApps {
            apps: all().collect(),
            sums: running_sums(all().map(|_| 1.0)),
        }]),
        Apps::Each => Ok(all()
            .map(|app| WeightedApps {
                apps: vec![app],
                sums: vec![1.0],
            })
            .collect()),
        Apps::Mix(mix) => {
            for (app, &weight) in mix {
                if !(weight.is_finite() && weight >= 0.0) {
                    let reason = format!("must be a number of at least 0, not {weight}");
                    return Err(WorkloadError::value(format!("mix.{app}"), reason));
                }
            }
            if mix.values().sum::<f64>() <= 0.0 {
                return Err(WorkloadError::value("mix", "needs a weight above 0"));
            }
            let named = mix.keys().map(|name| app_id(name, catalog));
            Ok(vec![WeightedApps {
                apps: named.collect::<Result<_, _>>()?,
                sums: running_sums(mix.values().copied()),
            }])
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
