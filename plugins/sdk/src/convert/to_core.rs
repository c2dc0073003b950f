//! From the contract's types to the core's.

use switchyard_core::catalog as core;
use switchyard_core::cost::Cost;
use switchyard_core::ids::{AppId, BatchId, ExitId, KindId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::policy::{Description, Triggers, WindowFields};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window as to;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::UNKNOWN_QUALITY;

/// The class of an app that does not classify.
const ANY_CLASS: &str = "any";

pub(crate) fn description(described: raw::Description) -> Description {
    let (on, wants) = (described.on, described.wants);
    Description {
        name: described.name,
        version: described.version,
        summary: described.summary,
        every: described.every.map(Micros),
        when_empty: described.when_empty,
        on: Triggers {
            arrival: on.contains(raw::Events::ARRIVAL),
            worker_idle: on.contains(raw::Events::WORKER_IDLE),
            completion: on.contains(raw::Events::COMPLETION),
            evidence: on.contains(raw::Events::EVIDENCE),
        },
        wants: WindowFields {
            evidence: wants.contains(raw::WindowFields::EVIDENCE),
            completions: wants.contains(raw::WindowFields::COMPLETIONS),
            placed: wants.contains(raw::WindowFields::PLACED),
            residents: wants.contains(raw::WindowFields::RESIDENTS),
        },
        changed_workers: wants.contains(raw::WindowFields::CHANGED_WORKERS),
    }
}

/// Writes a plan into `to`.
pub(crate) fn plan(decided: raw::Plan, to: &mut Plan) {
    to.clear();
    to.dispatches
        .extend(decided.dispatches.iter().map(dispatch));
    to.members
        .extend(decided.members.into_iter().map(RequestId));
    to.revokes.extend(decided.revokes.into_iter().map(BatchId));
    to.rejects
        .extend(decided.rejects.into_iter().map(RequestId));
    to.answers
        .extend(decided.answers.into_iter().map(RequestId));
    to.routes.extend(decided.routes.iter().map(route));
    to.wake = decided.wake.map(Time);
    to.reasons.extend(
        decided
            .reasons
            .into_iter()
            .map(|reason| (reason.dispatch, reason.text)),
    );
}

fn dispatch(dispatch: &raw::Dispatch) -> Dispatch {
    Dispatch {
        worker: WorkerId(dispatch.worker),
        variant: VariantId(dispatch.variant),
        from_stage: dispatch.from_stage,
        to_stage: dispatch.to_stage,
        exit: dispatch.exit.map(ExitId),
        place: dispatch.place,
        size: dispatch.size,
    }
}

fn route(route: &raw::Route) -> Route {
    let lanes = route.lanes.iter().map(|lane| Lane {
        worker: WorkerId(lane.worker),
        variant: VariantId(lane.variant),
        exit: ExitId(lane.exit),
        weight: lane.weight,
        min_batch: lane.min_batch,
        max_batch: lane.max_batch,
        capacity: lane.capacity,
    });
    Route {
        app: AppId(route.app),
        lanes: lanes.collect(),
    }
}

/// A catalog. The contract has no confusion matrices, so it has none.
pub(crate) fn catalog(catalog: &raw::Catalog) -> core::Catalog {
    let rows = catalog.profile.iter().map(profile_row);
    let loads = catalog.loads.iter().map(load_row);
    core::Catalog {
        generation: catalog.generation,
        apps: catalog.apps.iter().map(app).collect(),
        variants: catalog.variants.iter().map(variant).collect(),
        kinds: catalog.kinds.clone(),
        workers: catalog.workers.iter().map(worker).collect(),
        profile: Profile::new(catalog.percentile, rows, loads),
    }
}

fn app(app: &raw::App) -> core::App {
    core::App {
        name: app.name.clone(),
        task: task(app.task),
        classes: of_classes(app, &app.classes, || ANY_CLASS.to_owned()),
        slo: Micros(app.slo),
        penalty: match app.penalty {
            raw::Penalty::Step => core::Penalty::Step,
            raw::Penalty::Linear => core::Penalty::Linear,
            raw::Penalty::Sigmoid => core::Penalty::Sigmoid,
        },
        prior: of_classes(app, &app.prior, || 1.0),
        frequencies: of_classes(app, &app.frequencies, || 1.0),
        sneakpeek: app.sneakpeek.as_ref().map(|model| core::SneakPeekModel {
            neighbours: model.neighbours,
            accuracy: model.accuracy,
            recall: model.recall.clone(),
            confusion: None,
        }),
        late: if app.drops_late {
            core::Late::Drop
        } else {
            core::Late::Serve
        },
    }
}

fn task(task: raw::Task) -> core::Task {
    match task {
        raw::Task::Classify => core::Task::Classify,
        raw::Task::Embed => core::Task::Embed,
        raw::Task::Regress => core::Task::Regress,
        raw::Task::Score => core::Task::Score,
        raw::Task::Tensors => core::Task::Tensors,
    }
}

/// The core gives an app that does not classify a single class.
fn of_classes<T: Clone>(app: &raw::App, list: &[T], single: impl Fn() -> T) -> Vec<T> {
    match app.task {
        raw::Task::Classify => list.to_vec(),
        _ => vec![single()],
    }
}

fn variant(variant: &raw::ModelVariant) -> core::Variant {
    let exits = variant.exits.iter().map(|exit| {
        let quality = exit.quality.unwrap_or(UNKNOWN_QUALITY);
        core::Exit {
            name: exit.name.clone(),
            after_stage: exit.after_stage,
            accuracy: quality,
            recall: match &exit.recall[..] {
                [] => vec![quality],
                recall => recall.to_vec(),
            },
            confusion: None,
        }
    });
    core::Variant {
        name: variant.name.clone(),
        app: AppId(variant.app),
        stages: variant.stages,
        exits: exits.collect(),
        memory_bytes: variant.memory_bytes,
        max_batch: variant.max_batch,
        quality_unknown: variant.exits.iter().any(|exit| exit.quality.is_none()),
    }
}

fn worker(worker: &raw::Worker) -> core::WorkerSpec {
    core::WorkerSpec {
        name: worker.name.clone(),
        kind: KindId(worker.kind),
        memory_bytes: worker.memory_bytes,
        queue_max: worker.queue_max,
        parked_max: worker.parked_max,
        can: core::Capabilities {
            stage_ranges: worker.can.contains(raw::Capabilities::STAGE_RANGES),
            exits: worker.can.contains(raw::Capabilities::EXITS),
            parking: worker.can.contains(raw::Capabilities::PARKING),
        },
        transfer: Micros(worker.transfer),
        outstanding: 1,
    }
}

fn profile_row(row: &raw::ProfileRow) -> ProfileRow {
    ProfileRow {
        kind: KindId(row.kind),
        variant: VariantId(row.variant),
        from_stage: row.from_stage,
        to_stage: row.to_stage,
        exit: row.exit.map(ExitId),
        batch: row.batch,
        latency: Micros(row.latency),
        energy_uj: row.energy_uj,
    }
}

fn load_row(row: &raw::LoadRow) -> LoadRow {
    LoadRow {
        kind: KindId(row.kind),
        variant: VariantId(row.variant),
        latency: Micros(row.latency),
    }
}

/// A window. The core's slowdowns are fixed-point numbers that only its own estimates make, so it has
/// none.
pub(crate) fn window(window: &raw::Window) -> to::Window {
    let residents = window.residents.iter().flatten();
    let residents = residents.map(|resident| to::Resident {
        worker: WorkerId(resident.worker),
        variant: VariantId(resident.variant),
    });
    to::Window {
        id: window.id,
        now: Time(window.now),
        because: causes(window.because),
        requests: requests(window),
        workers: workers(&window.workers),
        changes: to::Changes::default(),
        placed: window.placed.as_ref().map(placed).unwrap_or_default(),
        residents: residents.collect(),
        arrival_rate: window.arrival_rate.clone(),
        slowdown: Vec::new(),
        completions: window
            .completions
            .as_ref()
            .map(completions)
            .unwrap_or_default(),
    }
}

fn causes(because: raw::Causes) -> to::Causes {
    to::Causes {
        periodic: because.contains(raw::Causes::PERIODIC),
        arrival: because.contains(raw::Causes::ARRIVAL),
        worker_idle: because.contains(raw::Causes::WORKER_IDLE),
        completion: because.contains(raw::Causes::COMPLETION),
        evidence: because.contains(raw::Causes::EVIDENCE),
        wake: because.contains(raw::Causes::WAKE),
        changed: because.contains(raw::Causes::CHANGED),
        workers: because.contains(raw::Causes::WORKERS),
    }
}

fn requests(window: &raw::Window) -> to::Requests {
    let mut made = to::Requests::default();
    if let Some(requests) = &window.requests {
        made.id.clone_from(&requests.id);
        made.app.clone_from(&requests.app);
        made.arrival.clone_from(&requests.arrival);
        made.deadline.clone_from(&requests.deadline);
        made.priority.clone_from(&requests.priority);
        made.min_accuracy.clone_from(&requests.min_quality);
    }
    let progress = window.progress.iter().flatten();
    made.progress
        .extend(progress.map(|parked| to::RequestProgress {
            index: parked.index,
            worker: WorkerId(parked.worker),
            variant: VariantId(parked.variant),
            stages_run: parked.stages_run,
        }));
    let costs = (0u32..).zip(window.cost.iter().flatten());
    let costs = costs.map(|(index, &cost)| to::RequestCost {
        index,
        cost: Cost::from_f64(f64::from(cost)),
    });
    made.costs
        .extend(costs.filter(|cost| cost.cost != Cost::ONE));
    if let Some(evidence) = &window.evidence {
        made.evidence_index.clone_from(&evidence.index);
        made.evidence_counts.clone_from(&evidence.counts);
    }
    made
}

fn workers(workers: &raw::Workers) -> to::Workers {
    to::Workers {
        busy_until: workers.busy_until.clone(),
        free_at: workers.free_at.clone(),
        running_since: workers.running_since.clone(),
        running_variant: workers.running_variant.clone(),
        queued: workers.queued.clone(),
        parked: workers.parked.clone(),
        free_memory: workers.free_memory.clone(),
        up: workers.up.iter().map(|&up| u8::from(up != 0)).collect(),
        // Unknown while the worker is away.
        incarnation: workers.up.iter().map(|&up| up.max(1)).collect(),
    }
}

fn placed(placed: &raw::Placed) -> to::Placed {
    to::Placed {
        id: placed.id.clone(),
        app: placed.app.clone(),
        arrival: placed.arrival.clone(),
        deadline: placed.deadline.clone(),
        worker: placed.worker.clone(),
        variant: placed.variant.clone(),
        batch: placed.batch.clone(),
        state: placed.state.clone(),
    }
}

fn completions(ended: &raw::Completions) -> Vec<to::Completion> {
    let some = |position: u32| Some(position).filter(|&position| position != u32::MAX);
    let rows = (0..ended.id.len()).map(|i| to::Completion {
        id: RequestId(ended.id[i]),
        app: AppId(ended.app[i]),
        end: match ended.outcome[i] {
            raw::Outcome::InTime => to::End::InTime,
            raw::Outcome::Late => to::End::Late,
            raw::Outcome::Rejected => to::End::Rejected,
            raw::Outcome::Dropped => to::End::Dropped,
            raw::Outcome::Failed => to::End::Failed,
            raw::Outcome::Cancelled => to::End::Cancelled,
        },
        variant: some(ended.variant[i]).map(VariantId),
        exit: some(ended.exit[i]).map(ExitId),
        latency: Micros(ended.latency[i]),
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::to_raw;
    use crate::testing::{CatalogBuilder, WindowBuilder};
    use crate::window::PlacedState;

    #[test]
    fn catalogs_and_windows_come_back_as_they_were() {
        let catalog = CatalogBuilder::new()
            .app("a", &["x", "y"])
            .sneakpeek(5, 0.6)
            .variant("net", &[0.9, 0.8])
            .stages(2)
            .early_exit("early", 1, &[0.5, 0.5])
            .latency(100, 10)
            .load_us(70)
            .worker("w")
            .build();
        let back = to_raw::catalog(&super::catalog(catalog.raw()));
        let sorted = |catalog: &raw::Catalog| {
            let mut catalog = catalog.clone();
            let key = |row: &raw::ProfileRow| (row.variant, row.to_stage, row.exit, row.batch);
            catalog.profile.sort_by_key(key);
            catalog
        };
        assert!(sorted(&back) == sorted(catalog.raw()));

        let mut window = WindowBuilder::new(&catalog)
            .request("a")
            .evidence(&[5, 0])
            .request("a")
            .cost(2.5)
            .parked(0, 0, 1)
            .busy(0, 0, 500)
            .queued(0, 1, 900)
            .placed(0, 0, 7, PlacedState::Queued, 100)
            .resident(0, 0)
            .arrival_rate(0, 20.0)
            .build();
        window.completions = Some(raw::Completions {
            id: vec![9],
            app: vec![0],
            outcome: vec![raw::Outcome::Late],
            variant: vec![0],
            exit: vec![u32::MAX],
            latency: vec![12],
        });
        let mut back = to_raw::empty_window();
        to_raw::window(&super::window(&window), &mut back);
        assert!(back == window);
    }
}
