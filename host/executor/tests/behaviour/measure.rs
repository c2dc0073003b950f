//! The quick measurement, on tiny models.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_executor::profile::{
    KindToMeasure, Machine, Names, Percentile, QuickOptions, kind_name, measure_quick,
};
use switchyard_executor::{Device, ModelSource};

use crate::toy::{self, ToySource, ToySpec};

fn options(budget: Duration) -> QuickOptions {
    QuickOptions {
        budget,
        samples_max: 20,
        ..QuickOptions::new("cargo test")
    }
}

fn kinds() -> Vec<KindToMeasure> {
    [1, 2]
        .map(|threads| KindToMeasure {
            name: kind_name(&Device::Cpu, threads),
            device: Device::Cpu,
            threads,
        })
        .to_vec()
}

#[test]
fn a_measurement_covers_what_is_served() {
    let toys = ToySource::of(vec![
        ToySpec {
            bytes: 40,
            exits: vec![1, 3],
            load: Duration::from_millis(5),
        },
        ToySpec {
            bytes: 70,
            exits: vec![1],
            load: Duration::ZERO,
        },
    ]);
    let mut catalog = toy::catalog(&toys);
    catalog.kinds = kinds().into_iter().map(|kind| kind.name).collect();
    let source: Arc<dyn ModelSource> = toys.clone();
    let mut last = 0.0;
    let measured = measure_quick(
        &source,
        &catalog.apps,
        &catalog.variants,
        &kinds(),
        &options(Duration::from_secs(1)),
        &mut |progress| {
            assert!((last..=1.0).contains(&progress.share), "{progress:?}");
            last = progress.share;
        },
    )
    .unwrap();
    // Batches 1, 2, 4, 8. Two whole runs, two stages to park after, one last stage with its
    // head; one whole run.
    let cells = 2 * 4 * (5 + 1);
    assert_eq!(measured.latencies.len(), cells);
    assert!(last > 0.0);
    assert_eq!(measured.machine, Machine::detect());
    assert_eq!(measured.made.command, "cargo test");
    assert_eq!(measured.models.len(), 4);
    assert_eq!(measured.models[0].memory_bytes, 40);
    assert!(
        measured.models[0].load_us >= 5_000,
        "{:?}",
        measured.models[0]
    );
    for pair in measured.latencies.windows(2) {
        let same_run = pair[0].batch < pair[1].batch;
        assert!(!same_run || pair[0].p95_us <= pair[1].p95_us, "{pair:?}");
    }
    let names = Names {
        kinds: &catalog.kinds,
        apps: &catalog.apps,
        variants: &catalog.variants,
    };
    let core = measured.to_core(names, Percentile::P95).unwrap();
    assert_eq!(core.rows().count(), cells);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(measured.machine.file_name());
    measured.save(&path).unwrap();
    let loaded = switchyard_executor::profile::ProfileFile::load_for(&path, &Machine::detect());
    assert_eq!(loaded.unwrap(), measured);
}

#[test]
fn a_spent_budget_still_measures_every_cell_once() {
    let toys = ToySource::new(&[40]);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys;
    let start = Instant::now();
    let measured = measure_quick(
        &source,
        &catalog.apps,
        &catalog.variants,
        &kinds(),
        &options(Duration::ZERO),
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(measured.latencies.len(), 2 * 4 * 5);
    assert!(measured.latencies.iter().all(|cell| cell.samples == 1));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_model_that_cannot_be_loaded_is_named() {
    let toys = ToySource::new(&[40]);
    let mut catalog = toy::catalog(&toys);
    let twin = catalog.variants[0].clone();
    catalog.variants.push(twin);
    let source: Arc<dyn ModelSource> = toys;
    let error = measure_quick(
        &source,
        &catalog.apps,
        &catalog.variants,
        &kinds(),
        &options(Duration::ZERO),
        &mut |_| {},
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "measuring cpu-1t: toy/v1: no such toy");
}
