//! The catalog in the contract's types. Made once per change, so it may copy.

use switchyard_core::catalog::{App, Catalog, Exit, Penalty, Variant, WorkerSpec};
use switchyard_core::profile::{LoadRow, ProfileRow};

use super::bindings::wit;

/// Lends the catalog in the contract's types to one call.
pub(super) fn lend<T>(from: &Catalog, call: impl FnOnce(wit::Catalog<'_>) -> T) -> T {
    let classes: Vec<Vec<&str>> = from.apps.iter().map(|app| strs(&app.classes)).collect();
    let apps: Vec<_> = from
        .apps
        .iter()
        .zip(&classes)
        .map(|(from, classes)| app(from, classes))
        .collect();
    let exits: Vec<Vec<_>> = from
        .variants
        .iter()
        .map(|variant| variant.exits.iter().map(exit).collect())
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

fn app<'a>(from: &'a App, classes: &'a [&'a str]) -> wit::App<'a> {
    wit::App {
        name: &from.name,
        classes,
        slo: from.slo.0,
        penalty: match from.penalty {
            Penalty::Step => wit::Penalty::Step,
            Penalty::Linear => wit::Penalty::Linear,
            Penalty::Sigmoid => wit::Penalty::Sigmoid,
        },
        prior: &from.prior,
        frequencies: &from.frequencies,
        sneakpeek: from.sneakpeek.as_ref().map(|model| wit::SneakpeekModel {
            neighbours: model.neighbours,
            accuracy: model.accuracy,
            recall: &model.recall,
        }),
        drops_late: from.late.drops(),
    }
}

fn exit(from: &Exit) -> wit::ModelExit<'_> {
    wit::ModelExit {
        name: &from.name,
        after_stage: from.after_stage,
        accuracy: from.accuracy,
        recall: &from.recall,
    }
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
    }
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
