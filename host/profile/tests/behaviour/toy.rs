//! One app whose variants have three stages, as a catalog and as a profile.

use std::collections::BTreeMap;

use switchyard_core::catalog::{App, Catalog, Exit, Late, Penalty, Task, Variant};
use switchyard_core::ids::AppId;
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use switchyard_profile::{
    AccuracyCell, AccuracySource, CatalogNames, LatencyCell, Machine, ModelCell, ProfileFile,
    Provenance, SlicingCell,
};

pub(crate) const CLASSES: usize = 3;

/// The app `toy` with a variant per entry: its memory in bytes, and its exits by the stages before
/// them. No workers, no profile.
pub(crate) fn catalog(variants: &[(u64, &[u32])]) -> Catalog {
    let variants = variants
        .iter()
        .zip(0..)
        .map(|(&(bytes, exits), i)| Variant {
            name: format!("v{i}"),
            app: AppId(0),
            stages: *exits.last().unwrap(),
            exits: exits
                .iter()
                .map(|&after_stage| Exit {
                    name: format!("after{after_stage}"),
                    after_stage,
                    accuracy: 0.5,
                    recall: vec![0.5; CLASSES],
                    confusion: None,
                })
                .collect(),
            memory_bytes: bytes,
            max_batch: 8,
            quality_unknown: false,
        });
    Catalog {
        generation: 1,
        apps: vec![App {
            name: "toy".to_owned(),
            task: Task::Classify,
            classes: (0..CLASSES).map(|class| format!("c{class}")).collect(),
            slo: Micros::from_millis(100),
            penalty: Penalty::Step,
            prior: vec![0.5; CLASSES],
            frequencies: vec![1.0 / CLASSES as f64; CLASSES],
            sneakpeek: None,
            late: Late::Serve,
        }],
        variants: variants.collect(),
        kinds: vec!["cpu-1t".to_owned()],
        workers: Vec::new(),
        profile: Profile::default(),
    }
}

/// The catalog that [`profile`] covers.
pub(crate) fn profiled_catalog() -> Catalog {
    catalog(&[(40, &[1, 3])])
}

pub(crate) fn names(catalog: &Catalog) -> CatalogNames<'_> {
    CatalogNames {
        kinds: &catalog.kinds,
        apps: &catalog.apps,
        variants: &catalog.variants,
    }
}

pub(crate) fn machine() -> Machine {
    Machine {
        cpu: "Toy CPU".to_owned(),
        cores: 2,
        arch: "x86_64".to_owned(),
        os: "linux".to_owned(),
    }
}

/// A latency of `toy/v0` from the first stage on: 100 us per stage and request.
pub(crate) fn latency(to_stage: u32, exit: Option<&str>, batch: u32) -> LatencyCell {
    let p50_us = u64::from(to_stage * batch) * 100;
    LatencyCell {
        kind: "cpu-1t".to_owned(),
        app: "toy".to_owned(),
        variant: "v0".to_owned(),
        from_stage: 0,
        to_stage,
        exit: exit.map(str::to_owned),
        batch,
        samples: 20,
        mean_us: Some(p50_us + 5),
        p50_us,
        p95_us: p50_us + 10,
        p99_us: p50_us + 20,
        energy_uj: None,
    }
}

fn accuracy(exit: &str, accuracy: f64) -> AccuracyCell {
    AccuracyCell {
        app: "toy".to_owned(),
        variant: "v0".to_owned(),
        exit: exit.to_owned(),
        source: AccuracySource::Measured,
        samples: 40,
        accuracy,
        workload_accuracy: Some(0.8),
        recall: vec![accuracy, accuracy],
        confusion: vec![vec![15, 5], vec![5, 15]],
    }
}

/// Covers all stages of `toy/v0` to its two exits, and its first stage alone.
pub(crate) fn profile() -> ProfileFile {
    ProfileFile {
        schema: 2,
        made: Provenance {
            date: "2025-11-20T22:43:00Z".to_owned(),
            command: "switchyard profile".to_owned(),
            versions: BTreeMap::from([("switchyard".to_owned(), "0.1.0".to_owned())]),
            notes: Vec::new(),
        },
        machine: machine(),
        apps: Vec::new(),
        models: vec![ModelCell {
            kind: "cpu-1t".to_owned(),
            app: "toy".to_owned(),
            variant: "v0".to_owned(),
            memory_bytes: 40,
            activation_bytes: Some(16),
            load_us: 700,
            parameters: Some(10),
            stages: Some(3),
            engine: Some("rten".to_owned()),
        }],
        energy: Vec::new(),
        accuracies: vec![accuracy("after1", 0.75), accuracy("after3", 0.9)],
        lengths: Vec::new(),
        slicing: vec![SlicingCell {
            kind: "cpu-1t".to_owned(),
            app: "toy".to_owned(),
            variant: "v0".to_owned(),
            batch: 2,
            cuts: 2,
            whole_us: 300,
            sliced_us: 330,
            ratio: 1.1,
            cut_us: 15.0,
        }],
        latencies: vec![
            latency(1, Some("after1"), 1),
            latency(1, Some("after1"), 8),
            latency(3, Some("after3"), 1),
            latency(3, Some("after3"), 8),
            latency(1, None, 1),
        ],
    }
}
