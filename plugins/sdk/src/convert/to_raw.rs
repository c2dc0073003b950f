//! From the core's types to the contract's. Columns are copied into kept buffers.

use switchyard_core::catalog as core;
use switchyard_core::ids::ExitId;
use switchyard_core::profile::{LoadRow, ProfileRow};
use switchyard_core::window as from;

use crate::bindings::exports::switchyard::policy::scheduling as raw;

/// A catalog as policies are configured with it.
pub(crate) fn catalog(catalog: &core::Catalog) -> raw::Catalog {
    raw::Catalog {
        generation: catalog.generation,
        apps: catalog.apps.iter().map(app).collect(),
        variants: catalog
            .variants
            .iter()
            .map(|found| variant(catalog, found))
            .collect(),
        kinds: catalog.kinds.clone(),
        workers: catalog.workers.iter().map(worker).collect(),
        percentile: catalog.profile.percentile(),
        profile: catalog
            .profile
            .rows()
            .map(|row| profile_row(&row))
            .collect(),
        loads: catalog.profile.loads().map(|row| load_row(&row)).collect(),
    }
}

fn app(app: &core::App) -> raw::App {
    let sneakpeek = app.sneakpeek.as_ref();
    let sneakpeek = sneakpeek.filter(|_| app.task.is_classify());
    raw::App {
        name: app.name.clone(),
        task: match app.task {
            core::Task::Classify => raw::Task::Classify,
            core::Task::Embed => raw::Task::Embed,
            core::Task::Regress => raw::Task::Regress,
            core::Task::Score => raw::Task::Score,
            core::Task::Tensors => raw::Task::Tensors,
        },
        classes: of_classes(app.task, &app.classes),
        slo: app.slo.0,
        penalty: match app.penalty {
            core::Penalty::Step => raw::Penalty::Step,
            core::Penalty::Linear => raw::Penalty::Linear,
            core::Penalty::Sigmoid => raw::Penalty::Sigmoid,
        },
        prior: of_classes(app.task, &app.prior),
        frequencies: of_classes(app.task, &app.frequencies),
        sneakpeek: sneakpeek.map(|model| raw::SneakpeekModel {
            neighbours: model.neighbours,
            accuracy: model.accuracy,
            recall: model.recall.clone(),
        }),
        drops_late: app.late.drops(),
    }
}

/// A list with an entry per class, of an app that classifies; otherwise an empty one.
fn of_classes<T: Clone>(task: core::Task, list: &[T]) -> Vec<T> {
    match task.is_classify() {
        true => list.to_vec(),
        false => Vec::new(),
    }
}

fn variant(catalog: &core::Catalog, variant: &core::Variant) -> raw::ModelVariant {
    let app = catalog.app(variant.app);
    let task = app.map_or(core::Task::Classify, |app| app.task);
    let exits = (0..).map(ExitId).zip(&variant.exits);
    let exits = exits.map(|(id, exit)| raw::ModelExit {
        name: exit.name.clone(),
        after_stage: exit.after_stage,
        quality: variant.quality(id),
        recall: of_classes(task, &exit.recall),
    });
    raw::ModelVariant {
        name: variant.name.clone(),
        app: variant.app.0,
        stages: variant.stages,
        exits: exits.collect(),
        memory_bytes: variant.memory_bytes,
        max_batch: variant.max_batch,
    }
}

fn worker(worker: &core::WorkerSpec) -> raw::Worker {
    raw::Worker {
        name: worker.name.clone(),
        kind: worker.kind.0,
        memory_bytes: worker.memory_bytes,
        queue_max: worker.queue_max,
        parked_max: worker.parked_max,
        can: capabilities(worker.can),
        transfer: worker.transfer.0,
    }
}

fn capabilities(from: core::Capabilities) -> raw::Capabilities {
    let mut can = raw::Capabilities::empty();
    for (holds, capability) in [
        (from.stage_ranges, raw::Capabilities::STAGE_RANGES),
        (from.exits, raw::Capabilities::EXITS),
        (from.parking, raw::Capabilities::PARKING),
    ] {
        can.set(capability, holds);
    }
    can
}

fn profile_row(row: &ProfileRow) -> raw::ProfileRow {
    raw::ProfileRow {
        kind: row.kind.0,
        variant: row.variant.0,
        from_stage: row.from_stage,
        to_stage: row.to_stage,
        exit: row.exit.map(|exit| exit.0),
        batch: row.batch,
        latency: row.latency.0,
        energy_uj: row.energy_uj,
    }
}

fn load_row(row: &LoadRow) -> raw::LoadRow {
    raw::LoadRow {
        kind: row.kind.0,
        variant: row.variant.0,
        latency: row.latency.0,
    }
}

pub(crate) fn empty_window() -> raw::Window {
    raw::Window {
        id: 0,
        now: 0,
        because: raw::Causes::empty(),
        requests: None,
        progress: None,
        cost: None,
        evidence: None,
        workers: raw::Workers {
            index: None,
            busy_until: Vec::new(),
            free_at: Vec::new(),
            running_since: Vec::new(),
            running_variant: Vec::new(),
            queued: Vec::new(),
            parked: Vec::new(),
            free_memory: Vec::new(),
            up: Vec::new(),
        },
        placed: None,
        residents: None,
        arrival_rate: Vec::new(),
        slowdown: None,
        completions: None,
    }
}

/// Writes a window into `to`.
pub(crate) fn window(window: &from::Window, to: &mut raw::Window) {
    let pending = &window.requests;
    to.id = window.id;
    to.now = window.now.0;
    to.because = causes(window.because);
    requests(pending, &mut to.requests);
    refill(&mut to.progress, &pending.progress, |progress| {
        raw::Progress {
            index: progress.index,
            worker: progress.worker.0,
            variant: progress.variant.0,
            stages_run: progress.stages_run,
        }
    });
    costs(pending, &mut to.cost);
    evidence(pending, &mut to.evidence);
    workers(&window.workers, &mut to.workers);
    placed(&window.placed, &mut to.placed);
    refill(&mut to.residents, &window.residents, |resident| {
        raw::Resident {
            worker: resident.worker.0,
            variant: resident.variant.0,
        }
    });
    to.arrival_rate.clone_from(&window.arrival_rate);
    refill(&mut to.slowdown, &window.slowdown, |slowdown| {
        slowdown.ratio()
    });
    completions(&window.completions, &mut to.completions);
}

fn causes(because: from::Causes) -> raw::Causes {
    let flags = [
        (because.periodic, raw::Causes::PERIODIC),
        (because.arrival, raw::Causes::ARRIVAL),
        (because.worker_idle, raw::Causes::WORKER_IDLE),
        (because.completion, raw::Causes::COMPLETION),
        (because.evidence, raw::Causes::EVIDENCE),
        (because.wake, raw::Causes::WAKE),
        (because.changed, raw::Causes::CHANGED),
        (because.workers, raw::Causes::WORKERS),
    ];
    let held = flags.into_iter().filter(|(holds, _)| *holds);
    held.fold(raw::Causes::empty(), |all, (_, flag)| all | flag)
}

fn requests(requests: &from::Requests, to: &mut Option<raw::Requests>) {
    if requests.id.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_with(no_requests);
    to.id.clone_from(&requests.id);
    to.app.clone_from(&requests.app);
    to.arrival.clone_from(&requests.arrival);
    to.deadline.clone_from(&requests.deadline);
    to.priority.clone_from(&requests.priority);
    to.min_quality.clone_from(&requests.min_accuracy);
}

/// Columns without rows.
pub(crate) fn no_requests() -> raw::Requests {
    raw::Requests {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        priority: Vec::new(),
        min_quality: Vec::new(),
    }
}

/// The costs of all requests, if any of them is not 1.
fn costs(requests: &from::Requests, to: &mut Option<Vec<f32>>) {
    if requests.costs.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_default();
    to.clear();
    to.resize(requests.id.len(), 1.0);
    for cost in &requests.costs {
        to[cost.index as usize] = cost.cost.as_f64() as f32;
    }
}

fn evidence(requests: &from::Requests, to: &mut Option<raw::Evidence>) {
    if requests.evidence_index.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_with(|| raw::Evidence {
        index: Vec::new(),
        counts: Vec::new(),
    });
    to.index.clone_from(&requests.evidence_index);
    to.counts.clone_from(&requests.evidence_counts);
}

fn workers(workers: &from::Workers, to: &mut raw::Workers) {
    to.index = None;
    to.busy_until.clone_from(&workers.busy_until);
    to.free_at.clone_from(&workers.free_at);
    to.running_since.clone_from(&workers.running_since);
    to.running_variant.clone_from(&workers.running_variant);
    to.queued.clone_from(&workers.queued);
    to.parked.clone_from(&workers.parked);
    to.free_memory.clone_from(&workers.free_memory);
    let lives = workers.up.iter().zip(&workers.incarnation);
    to.up.clear();
    to.up.extend(lives.map(|(&up, &incarnation)| match up {
        0 => 0,
        _ => incarnation,
    }));
}

fn placed(placed: &from::Placed, to: &mut Option<raw::Placed>) {
    if placed.id.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_with(nothing_placed);
    to.id.clone_from(&placed.id);
    to.app.clone_from(&placed.app);
    to.arrival.clone_from(&placed.arrival);
    to.deadline.clone_from(&placed.deadline);
    to.worker.clone_from(&placed.worker);
    to.variant.clone_from(&placed.variant);
    to.batch.clone_from(&placed.batch);
    to.state.clone_from(&placed.state);
}

/// Columns without rows.
pub(crate) fn nothing_placed() -> raw::Placed {
    raw::Placed {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        worker: Vec::new(),
        variant: Vec::new(),
        batch: Vec::new(),
        state: Vec::new(),
    }
}

fn completions(ended: &[from::Completion], to: &mut Option<raw::Completions>) {
    if ended.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_with(no_completions);
    to.id.clear();
    to.app.clear();
    to.outcome.clear();
    to.variant.clear();
    to.exit.clear();
    to.latency.clear();
    for completion in ended {
        to.id.push(completion.id.0);
        to.app.push(completion.app.0);
        to.outcome.push(outcome(completion.end));
        to.variant
            .push(completion.variant.map_or(u32::MAX, |v| v.0));
        to.exit
            .push(completion.exit.map_or(u32::MAX, |exit| exit.0));
        to.latency.push(completion.latency.0);
    }
}

/// Columns without rows.
pub(crate) fn no_completions() -> raw::Completions {
    raw::Completions {
        id: Vec::new(),
        app: Vec::new(),
        outcome: Vec::new(),
        variant: Vec::new(),
        exit: Vec::new(),
        latency: Vec::new(),
    }
}

fn outcome(end: from::End) -> raw::Outcome {
    match end {
        from::End::InTime => raw::Outcome::InTime,
        from::End::Late => raw::Outcome::Late,
        from::End::Rejected => raw::Outcome::Rejected,
        from::End::Dropped => raw::Outcome::Dropped,
        from::End::Failed => raw::Outcome::Failed,
        from::End::Cancelled => raw::Outcome::Cancelled,
    }
}

/// The rows, if there are any.
fn refill<A, B>(to: &mut Option<Vec<B>>, from: &[A], convert: impl Fn(&A) -> B) {
    if from.is_empty() {
        *to = None;
        return;
    }
    let to = to.get_or_insert_default();
    to.clear();
    to.extend(from.iter().map(convert));
}
