//! The requests of a run before it is run.

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::cost::Cost;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::time::{Micros, Time};

use crate::scenario::{Scenario, SimError};
use crate::source::Sources;
use crate::workload::WorkloadError;

/// One request, with its options on every worker.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTask {
    pub(super) app: AppId,
    pub(super) arrival: Time,
    pub(super) deadline: Time,
    /// By worker; none if the worker cannot run it.
    pub(super) options: Vec<Option<ServiceOption>>,
    /// The shortest of its latencies.
    pub(super) alone: Micros,
}

/// How a worker serves one request, alone and whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceOption {
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) stages: u32,
    pub(super) latency: Micros,
}

/// A batch of whole requests, in the sequence of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScheduledBatch {
    pub(super) worker: WorkerId,
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) stages: u32,
    /// Positions in the list of tasks.
    pub(super) tasks: Vec<u32>,
}

/// All requests of a run that some worker can run, in the order of their arrivals.
#[derive(Clone, Debug)]
pub(super) struct RunTasks {
    pub(super) list: Vec<ArrivalTask>,
    pub(super) workers: usize,
}

// === impl RunTasks ===

impl RunTasks {
    pub(super) fn of_run(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let catalog = &*scenario.catalog;
        let end = Time::ZERO + scenario.duration;
        let mut drawn: Vec<(Time, AppId, Micros)> = Vec::new();
        let mut sources = Sources::try_new(&scenario.workload, catalog, seed)?;
        for source in sources.iter_mut() {
            while let Some(arrival) = source.next().filter(|arrival| arrival.at < end) {
                let request = source.request(catalog);
                if request.cost != Cost::ONE {
                    let reason = "a clairvoyant plan takes requests of one length only";
                    return Err(WorkloadError::value("length", reason).into());
                }
                drawn.push((arrival.at, request.app, request.deadline));
            }
        }
        drawn.sort_by_key(|&(at, ..)| at);
        drawn.truncate(usize::try_from(scenario.requests_max).unwrap_or(usize::MAX));
        let apps = (0..catalog.apps.len() as u32).map(AppId);
        let options: Vec<Vec<Option<ServiceOption>>> =
            apps.map(|app| fastest_options(catalog, app)).collect();
        let task = |(arrival, app, deadline): (Time, AppId, Micros)| {
            let options = &options[app.index()];
            let alone = options
                .iter()
                .flatten()
                .map(|option| option.latency)
                .min()?;
            Some(ArrivalTask {
                app,
                arrival,
                deadline: arrival + deadline,
                options: options.clone(),
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
fn fastest_options(catalog: &Catalog, app: AppId) -> Vec<Option<ServiceOption>> {
    let workers = (0..).map(WorkerId).zip(&catalog.workers);
    let fastest = |(worker, spec): (WorkerId, &WorkerSpec)| {
        let fits = catalog
            .variants_of(app)
            .filter(|(_, variant)| variant.memory_bytes <= spec.memory_bytes);
        let options = fits.filter_map(|(id, variant)| {
            let exit = variant.last_exit();
            Some(ServiceOption {
                variant: id,
                exit,
                stages: variant.stages,
                latency: catalog.latency(worker, id, exit, 1)?,
            })
        });
        options.min_by_key(|option| option.latency)
    };
    workers.map(fastest).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A task with an arrival, a latency per worker and a deadline after its arrival.
    pub(in crate::oracle) fn task(
        arrival_us: u64,
        latencies_us: &[u64],
        slo_us: u64,
    ) -> ArrivalTask {
        let option = |&us: &u64| {
            Some(ServiceOption {
                variant: VariantId(0),
                exit: ExitId(0),
                stages: 1,
                latency: Micros(us),
            })
        };
        ArrivalTask {
            app: AppId(0),
            arrival: Time(arrival_us),
            deadline: Time(arrival_us + slo_us),
            options: latencies_us.iter().map(option).collect(),
            alone: Micros(latencies_us.iter().copied().min().unwrap_or(1)),
        }
    }
}
