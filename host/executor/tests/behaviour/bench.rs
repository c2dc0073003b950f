//! Measuring through the candle executor, on tiny models.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::catalog::Catalog;
use switchyard_executor::energy::{EnergyMeter, Meters};
use switchyard_executor::{CandleBench, DeviceName, KindToMeasure, ModelSource, versions};
use switchyard_profile::{
    CatalogNames, Machine, MeasureError, MeasureOptions, MeasureProgress, MeasureSubject,
    Measurement, Percentile, ProfileFile, Provenance, measure,
};

use crate::toy::{self, ToySource, ToySpec};

/// Batches 1, 2, 4 and 8 of a toy with exits after stages 1 and 3: all stages to each exit, two
/// single stages, the last stage with its head.
const CELLS: usize = 4 * 5;

pub(crate) fn kind(threads: usize) -> KindToMeasure {
    KindToMeasure {
        name: DeviceName::Cpu.kind(threads),
        device: DeviceName::Cpu,
        threads,
        build: None,
    }
}

/// A profile of all variants of the catalog.
pub(crate) fn measured(
    catalog: &Catalog,
    bench: &CandleBench<'_>,
    budget: Duration,
) -> Result<ProfileFile, MeasureError> {
    let subject = MeasureSubject {
        apps: &catalog.apps,
        variants: &catalog.variants,
    };
    let options = MeasureOptions {
        budget,
        samples_min: 20,
        samples_max: 20,
        ..MeasureOptions::quick()
    };
    let mut measurement = Measurement::default();
    let mut watch = |_: MeasureProgress<'_>| {};
    measure(subject, bench, &options, &mut measurement, &mut watch)?;
    let made = Provenance::now("cargo test", versions());
    Ok(measurement.to_file(made, Machine::detect()))
}

#[test]
fn variants_are_measured_on_each_kind() {
    let toys = ToySource::of(vec![ToySpec {
        bytes: 40,
        exits: vec![1, 3],
        load: Duration::from_millis(5),
    }]);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys.clone();
    let kinds = [kind(1), kind(2)];
    let bench = CandleBench {
        source: &source,
        kinds: &kinds,
        meters: Meters::default(),
    };
    let profile = measured(&catalog, &bench, Duration::from_secs(1)).unwrap();
    assert_eq!(profile.latencies.len(), 2 * CELLS);
    assert!(profile.latencies.iter().all(|cell| cell.samples > 0));
    assert_eq!(profile.slicing.len(), 2 * 4);
    assert_eq!(profile.models.len(), 2);
    assert_eq!(toys.loads(), 2 * 3, "three timed loads per kind");
    for (model, kind) in profile.models.iter().zip(["cpu-1t", "cpu-2t"]) {
        assert_eq!((model.kind.as_str(), model.memory_bytes), (kind, 40));
        assert!(model.load_us >= 5_000, "{model:?}");
        // This process has no counting allocator.
        assert_eq!(model.activation_bytes, None);
    }
    let versions = &profile.made.versions;
    assert!(versions["candle"].starts_with("0."), "{versions:?}");
    assert!(versions.contains_key("rustc") && versions.contains_key("switchyard"));
    assert!(profile.energy.is_empty());
}

/// Narrow weights take other bytes on a GPU than on the CPU; the catalog has one size of a variant.
#[test]
fn a_profile_has_the_catalogs_size_of_a_variant() {
    let toys = ToySource::new(&[40]);
    toys.take_more(2);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys;
    let bench = CandleBench {
        source: &source,
        kinds: &[kind(1)],
        meters: Meters::default(),
    };
    let profile = measured(&catalog, &bench, Duration::from_secs(1)).unwrap();
    assert_eq!(profile.models[0].memory_bytes, 40);
    let names = CatalogNames {
        kinds: &catalog.kinds,
        apps: &catalog.apps,
        variants: &catalog.variants,
    };
    profile.to_core(names, Percentile::P50).unwrap();
}

#[test]
fn a_model_that_cannot_be_loaded_is_named() {
    let toys = ToySource::new(&[40]);
    let mut catalog = toy::catalog(&toys);
    let twin = catalog.variants[0].clone();
    catalog.variants.push(twin);
    let source: Arc<dyn ModelSource> = toys;
    let bench = CandleBench {
        source: &source,
        kinds: &[kind(1)],
        meters: Meters::default(),
    };
    let error = measured(&catalog, &bench, Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "measuring cpu-1t: toy/v1: no such toy");
}

#[test]
fn a_kind_whose_device_is_missing_is_named() {
    let toys = ToySource::new(&[40]);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys;
    let missing = KindToMeasure {
        device: DeviceName::Cuda(4_000),
        ..kind(1)
    };
    let bench = CandleBench {
        source: &source,
        kinds: &[missing],
        meters: Meters::default(),
    };
    let error = measured(&catalog, &bench, Duration::ZERO).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("measuring cpu-1t: `cuda:4000`: "),
        "{message}"
    );
}

/// 1 J since the last look.
struct OneJoule(std::sync::atomic::AtomicU64);

impl EnergyMeter for OneJoule {
    fn total_uj(&self) -> Option<u64> {
        let joules = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(joules * 1_000_000)
    }
}

#[test]
fn a_kind_is_metered_by_its_own_counter() {
    let toys = ToySource::new(&[40]);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys;
    let meter = OneJoule(0.into());
    let budget = Duration::from_millis(100);
    let profile_with = |meters| {
        let bench = CandleBench {
            source: &source,
            kinds: &[kind(1)],
            meters,
        };
        measured(&catalog, &bench, budget).unwrap()
    };
    let rapl = Meters {
        rapl: Some(&meter),
        nvml: None,
    };
    assert!(profile_with(rapl).energy[0].power_w > 0.0);
    let nvml = Meters {
        rapl: None,
        nvml: Some(&meter),
    };
    assert!(profile_with(nvml).energy.is_empty(), "not the GPU's energy");
}
