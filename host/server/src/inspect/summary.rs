//! The server that a configuration makes, in a few lines.

use std::fmt::Write as _;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;

use super::pools::Inspected;
use crate::config::{Config, WorkerConfig};

pub(super) fn summary(config: &Config, pools: &[Inspected], notes: &[String]) -> String {
    let mut text = format!("{}: no mistake\n", config.source.display());
    let mut line = |name: &str, value: String| {
        // A String takes every write.
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    let server = &config.server;
    let mut ports = format!("http {}, admin {}", server.http, server.admin);
    if let Some(grpc) = &server.grpc {
        ports = format!("{ports}, grpc {grpc}");
    }
    line("ports", ports);
    for (
        pool,
        Inspected {
            catalog, policy, ..
        },
    ) in config.pools.iter().zip(pools)
    {
        let workers = pool.workers.iter().map(|name| worker(config, name));
        let workers = workers.collect::<Vec<_>>().join(", ");
        line(
            "pool",
            format!("{}: policy {policy}; workers {workers}", pool.name),
        );
        if let Some(shadow) = &pool.shadow {
            line("  shadow", shadow.policy.clone());
        }
        if let Some(record) = &pool.record {
            line("  record", record.file.display().to_string());
        }
        for app in 0..catalog.apps.len() {
            line("  app", app_line(catalog, app));
        }
    }
    let profile = match pools.iter().find_map(|pool| pool.profile.as_ref()) {
        Some(file) => file.display().to_string(),
        None => format!(
            "none of this machine and these models in {}: the start measures for {} s",
            config.profile.dir.display(),
            config.profile.measure_s
        ),
    };
    line("profile", profile);
    for (field, by) in config.written.overrides() {
        line("override", format!("{field} by {by}"));
    }
    for note in notes {
        line("note", note.clone());
    }
    let threads: usize = config.workers.iter().map(|worker| worker.threads).sum();
    let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    if threads > cores {
        line(
            "note",
            format!(
                "the workers have {threads} threads, the machine {cores} cores: latencies grow"
            ),
        );
    }
    text
}

/// Its name, with the number of its slots.
fn worker(config: &Config, name: &str) -> String {
    let found = config.workers.iter().find(|worker| worker.name == name);
    match found.and_then(WorkerConfig::at_most) {
        Some(at_most) => format!("{name} (at most {at_most})"),
        None => name.to_owned(),
    }
}

fn app_line(catalog: &Catalog, at: usize) -> String {
    let id = AppId(u32::try_from(at).unwrap_or(u32::MAX));
    let app = &catalog.apps[at];
    let variants = catalog
        .variants_of(id)
        .map(|(_, variant)| variant.name.as_str());
    let variants: Vec<_> = variants.collect();
    let slo_ms = app.slo.0 as f64 / 1e3;
    format!("{}: {slo_ms} ms; {}", app.name, variants.join(", "))
}
