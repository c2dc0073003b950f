//! The requests of a run before it is run.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::time::{Micros, Time};

use crate::scenario::{Scenario, SimError};
use crate::source::Sources;

/// One request on every worker.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) app: AppId,
    pub(super) arrival: Time,
    pub(super) deadline: Time,
    /// By worker; none where it cannot run.
    pub(super) ways: Vec<Option<Way>>,
    /// The least of its latencies.
    pub(super) alone: Micros,
}

/// One request on one worker, alone and whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) stages: u32,
    pub(super) latency: Micros,
}

/// All requests of a run that some worker can run, in the order of their arrivals.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    pub(super) list: Vec<Task>,
    pub(super) workers: usize,
}

// === impl Tasks ===

impl Tasks {
    pub(super) fn of_run(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let catalog = &*scenario.catalog;
        let end = Time::ZERO + scenario.duration;
        let mut drawn: Vec<(Time, AppId, Micros)> = Vec::new();
        for mut source in Sources::try_new(&scenario.workload, catalog, seed)?.sources {
            while let Some(arrival) = source.next().filter(|arrival| arrival.at < end) {
                let (app, deadline) = source.request(catalog);
                drawn.push((arrival.at, app, deadline));
            }
        }
        drawn.sort_by_key(|&(at, ..)| at);
        drawn.truncate(usize::try_from(scenario.requests_max).unwrap_or(usize::MAX));
        let apps = (0..catalog.apps.len() as u32).map(AppId);
        let ways: Vec<Vec<Option<Way>>> = apps.map(|app| ways(catalog, app)).collect();
        let task = |(arrival, app, deadline): (Time, AppId, Micros)| {
            let ways = &ways[app.index()];
            let alone = ways.iter().flatten().map(|way| way.latency).min()?;
            Some(Task {
                app,
                arrival,
                deadline: arrival + deadline,
                ways: ways.clone(),
                alone: alone.max(Micros(1)),
            })
        };
        Ok(Self {
            list: drawn.into_iter().filter_map(task).collect(),
            workers: catalog.workers.len(),
        })
    }
}

/// An app's fastest variant on every worker.
fn ways(catalog: &Catalog, app: AppId) -> Vec<Option<Way>> {
    let workers = (0..).map(WorkerId).zip(&catalog.workers);
    let way = |(worker, spec): (WorkerId, &switchyard_core::catalog::WorkerSpec)| {
        let fits = catalog
            .variants_of(app)
            .filter(|(_, variant)| variant.memory_bytes <= spec.memory_bytes);
        let ways = fits.filter_map(|(id, variant)| {
            let exit = variant.last_exit();
            Some(Way {
                variant: id,
                exit,
                stages: variant.stages,
                latency: catalog.latency(worker, id, exit, 1)?,
            })
        });
        ways.min_by_key(|way| way.latency)
    };
    workers.map(way).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A task that arrives then, takes so long on each worker, and has so long after it arrives.
    pub(in crate::oracle) fn task(arrival_us: u64, latencies_us: &[u64], slo_us: u64) -> Task {
        let way = |&us: &u64| {
            Some(Way {
                variant: VariantId(0),
                exit: ExitId(0),
                stages: 1,
                latency: Micros(us),
            })
        };
        Task {
            app: AppId(0),
            arrival: Time(arrival_us),
            deadline: Time(arrival_us + slo_us),
            ways: latencies_us.iter().map(way).collect(),
            alone: Micros(latencies_us.iter().copied().min().unwrap_or(1)),
        }
    }
}
