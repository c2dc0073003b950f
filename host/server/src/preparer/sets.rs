//! The sets of tables beside a policy, and what they are about in the pool's catalog.

use std::fs;
use std::path::{Path, PathBuf};

use ramsis_prepare::Model;
use ramsis_prepare::tables::{INDEX_FILE, Set};
use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::ids::{AppId, KindId, VariantId};

/// Every folder in this one that has an index, in order of their names, with the set or what is
/// wrong with it.
pub(super) fn sets_in(folder: &Path) -> Vec<(PathBuf, Result<Set, String>)> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join(INDEX_FILE).is_file())
        .collect();
    folders.sort();
    let read = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join(INDEX_FILE)).map_err(|error| error.to_string());
        let set = text.and_then(|text| Set::parse(&text).map_err(|error| error.to_string()));
        (folder, set)
    };
    folders.into_iter().map(read).collect()
}

/// The app that a set is for: the one that it names, or the only one.
pub(super) fn app_of(catalog: &Catalog, set: &Set) -> Result<AppId, String> {
    let at = match &set.app {
        Some(name) => catalog.apps.iter().position(|app| app.name == *name),
        None => (catalog.apps.len() == 1).then_some(0),
    };
    let unknown = || match &set.app {
        Some(name) => format!("`app`: the pool has no app {name}"),
        None => "`app`: is not named, and the pool has several".to_owned(),
    };
    at.map(|at| AppId(at as u32)).ok_or_else(unknown)
}

/// A set's variants with the accuracies and latencies that the pool plans with.
pub(super) fn models_of(catalog: &Catalog, set: &Set, app: AppId) -> Result<Vec<Model>, String> {
    let kind = catalog.kinds.iter().position(|kind| *kind == set.kind);
    let kind =
        kind.ok_or_else(|| format!("`kind`: the pool has no workers of kind {}", set.kind))?;
    let kind = KindId(kind as u32);
    let model = |name: &String| {
        let mut all = (0..).map(VariantId).zip(&catalog.variants);
        let found = all.find(|(_, variant)| variant.app == app && variant.name == *name);
        let (id, variant) =
            found.ok_or_else(|| format!("`variants`: the app has no variant {name}"))?;
        model_of(catalog, kind, id, variant)
    };
    set.variants.iter().map(model).collect()
}

fn model_of(
    catalog: &Catalog,
    kind: KindId,
    id: VariantId,
    variant: &Variant,
) -> Result<Model, String> {
    let exit = variant.last_exit();
    let latency = |batch| {
        let profile = &catalog.profile;
        profile.latency(kind, id, 0, variant.stages, Some(exit), batch)
    };
    let latency_us: Vec<u64> = (1..=variant.max_batch)
        .map_while(latency)
        .map(|latency| latency.0)
        .collect();
    if latency_us.is_empty() {
        let name = &variant.name;
        return Err(format!("`variants`: {name} was not measured on this kind"));
    }
    Ok(Model {
        name: variant.name.clone(),
        accuracy: variant.exit(exit).map_or(0.0, |exit| exit.accuracy),
        latency_us: never_falling(latency_us),
    })
}

/// No batch takes longer than a larger one.
fn never_falling(mut latency_us: Vec<u64>) -> Vec<u64> {
    let mut next = u64::MAX;
    for us in latency_us.iter_mut().rev() {
        next = next.min(*us);
        *us = next.max(1);
    }
    latency_us
}
