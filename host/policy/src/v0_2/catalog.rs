//! The catalog in the contract's types. Made once per change, so it may copy.
//!
//! The core gives an app that does not classify a single class; the contract has no classes there.

use switchyard_core::catalog::{App, Capabilities, Catalog, Penalty, Task, Variant, WorkerSpec};
use switchyard_core::ids::ExitId;
use switchyard_core::profile::{LoadRow, ProfileRow};

use super::bindings::wit;

/// Lends the catalog in the contract's types to one call.
pub(super) fn lend<T>(from: &Catalog, call: impl FnOnce(wit::Catalog<'_>) -> T) -> T {
    let classes: Vec<Vec<&str>> = from
        .apps
        .iter()
        .map(|app| strs(of_classes(app.task, &app.classes)))
        .collect();
    let apps: Vec<_> = from
        .apps
        .iter()
        .zip(&classes)
        .map(|(from, classes)| app(from, classes))
        .collect();
    let exits: Vec<Vec<_>> = from
        .variants
        .iter()
        .map(|variant| exits_of(from, variant))
        .collect();
    let variants: Vec<_> = from
        .variants
        .iter()
        .zip(&exits)
        .map(|(from, exits)| variant(from, exits))
        .collect();
    let kinds = strs(&from.kinds);
    let workers: Vec<_> = from.workers.iter().map(worker).collect();
    let profile: Vec<_> = from.profile.rows().map(profile_row).collect();
    let loads: Vec<_> = from.profile.loads().map(load_row).collect();
    call(wit::Catalog {
        generation: from.generation,
        apps: &apps,
        variants: &variants,
        kinds: &kinds,
        workers: &workers,
        percentile: from.profile.percentile(),
        profile: &profile,
        loads: &loads,
    })
}

fn strs(from: &[String]) -> Vec<&str> {
    from.iter().map(String::as_str).collect()
}

/// A list with an entry per class, of an app that classifies; otherwise an empty one.
fn of_classes<T>(task: Task, list: &[T]) -> &[T] {
    if task.is_classify() { list } else { &[] }
}

fn app<'a>(from: &'a App, classes: &'a [&'a str]) -> wit::App<'a> {
    let sneakpeek = from.sneakpeek.as_ref();
    let sneakpeek = sneakpeek.filter(|_| from.task.is_classify());
    wit::App {
        name: &from.name,
        task: match from.task {
            Task::Classify => wit::Task::Classify,
            Task::Embed => wit::Task::Embed,
            Task::Regress => wit::Task::Regress,
            Task::Score => wit::Task::Score,
            Task::Tensors => wit::Task::Tensors,
        },
        classes,
        slo: from.slo.0,
        penalty: match from.penalty {
            Penalty::Step => wit::Penalty::Step,
            Penalty::Linear => wit::Penalty::Linear,
            Penalty::Sigmoid => wit::Penalty::Sigmoid,
        },
        prior: of_classes(from.task, &from.prior),
        frequencies: of_classes(from.task, &from.frequencies),
        sneakpeek: sneakpeek.map(|model| wit::SneakpeekModel {
            neighbours: model.neighbours,
            accuracy: model.accuracy,
            recall: &model.recall,
        }),
        drops_late: from.late.drops(),
    }
}

fn exits_of<'a>(catalog: &Catalog, variant: &'a Variant) -> Vec<wit::ModelExit<'a>> {
    let task = catalog
        .app(variant.app)
        .map_or(Task::Classify, |app| app.task);
    let exits = (0..).map(ExitId).zip(&variant.exits);
    exits
        .map(|(id, exit)| wit::ModelExit {
            name: &exit.name,
            after_stage: exit.after_stage,
            quality: variant.quality(id),
            recall: of_classes(task, &exit.recall),
        })
        .collect()
}

fn variant<'a>(from: &'a Variant, exits: &'a [wit::ModelExit<'a>]) -> wit::ModelVariant<'a> {
    wit::ModelVariant {
        name: &from.name,
        app: from.app.0,
        stages: from.stages,
        exits,
        memory_bytes: from.memory_bytes,
        max_batch: from.max_batch,
    }
}

fn worker(from: &WorkerSpec) -> wit::Worker<'_> {
    wit::Worker {
        name: &from.name,
        kind: from.kind.0,
        memory_bytes: from.memory_bytes,
        queue_max: from.queue_max,
        parked_max: from.parked_max,
        can: capabilities(from.can),
        transfer: from.transfer.0,
    }
}

fn capabilities(from: Capabilities) -> wit::Capabilities {
    let mut can = wit::Capabilities::empty();
    for (holds, capability) in [
        (from.stage_ranges, wit::Capabilities::STAGE_RANGES),
        (from.exits, wit::Capabilities::EXITS),
        (from.parking, wit::Capabilities::PARKING),
    ] {
        if holds {
            can |= capability;
        }
    }
    can
}

fn profile_row(from: ProfileRow) -> wit::ProfileRow {
    wit::ProfileRow {
        kind: from.kind.0,
        variant: from.variant.0,
        from_stage: from.from_stage,
        to_stage: from.to_stage,
        exit: from.exit.map(|exit| exit.0),
        batch: from.batch,
        latency: from.latency.0,
        energy_uj: from.energy_uj,
    }
}

fn load_row(from: LoadRow) -> wit::LoadRow {
    wit::LoadRow {
        kind: from.kind.0,
        variant: from.variant.0,
        latency: from.latency.0,
    }
}
