//! Measuring, on tiny models.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::catalog::Catalog;
use switchyard_executor::energy::{EnergyMeter, Meters};
use switchyard_executor::profile::{
    EnergySource, KindToMeasure, Machine, Made, MeasureError, MeasureOptions, MeasureProgress,
    Measurement, MeasurementId, Names, Percentile, ProfileFile, Subject, Unfinished, Watch,
    kind_name, measure,
};
use switchyard_executor::{DeviceName, ModelSource};

use crate::toy::{self, ToySource, ToySpec};

fn options(budget: Duration) -> MeasureOptions {
    MeasureOptions {
        budget,
        samples_min: 20,
        samples_max: 20,
        ..MeasureOptions::quick()
    }
}

fn subject<'a>(
    source: &'a Arc<dyn ModelSource>,
    catalog: &'a Catalog,
    kinds: &'a [KindToMeasure],
) -> Subject<'a> {
    Subject {
        source,
        apps: &catalog.apps,
        variants: &catalog.variants,
        kinds,
        meters: Meters::default(),
    }
}

fn file(measurement: &Measurement) -> ProfileFile {
    measurement.to_file(Made::now("cargo test"), Machine::detect())
}

/// Stops after so many looks.
struct Impatient {
    looks: std::cell::Cell<u32>,
    kept: Option<Measurement>,
}

impl Watch for Impatient {
    fn progress(&mut self, _progress: MeasureProgress<'_>) {}

    fn keep(&mut self, measurement: &Measurement) {
        self.kept = Some(measurement.clone());
    }

    fn is_cancelled(&self) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left == 0
    }
}

fn kinds() -> Vec<KindToMeasure> {
    [1, 2]
        .map(|threads| KindToMeasure {
            name: kind_name(DeviceName::Cpu, threads),
            device: DeviceName::Cpu,
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
    let mut measurement = Measurement::default();
    let kinds = kinds();
    measure(
        subject(&source, &catalog, &kinds),
        &options(Duration::from_secs(1)),
        &mut measurement,
        &mut |progress: MeasureProgress<'_>| {
            assert!((last..=1.0).contains(&progress.share), "{progress:?}");
            last = progress.share;
        },
    )
    .unwrap();
    let measured = file(&measurement);
    // Batches 1, 2, 4, 8. Two whole runs, two stages to park after, one last stage with its
    // head; one whole run.
    let cells = 2 * 4 * (5 + 1);
    assert_eq!(measured.latencies.len(), cells);
    for cell in &measured.latencies {
        assert!(cell.samples > 0 && cell.mean_us.is_some(), "{cell:?}");
    }
    // One figure per kind and batch of the variant that has stages, all of them positive.
    assert_eq!(measured.slicing.len(), 2 * 4);
    for cell in &measured.slicing {
        assert_eq!((cell.variant.as_str(), cell.cuts), ("v0", 2));
        assert!(
            cell.whole_us > 0 && cell.sliced_us > 0 && cell.ratio > 0.0,
            "{cell:?}"
        );
    }
    assert!(last > 0.0);
    assert_eq!(measured.machine, Machine::detect());
    assert_eq!(measured.made.command, "cargo test");
    assert_eq!(measured.models.len(), 4);
    assert_eq!(measured.models[0].memory_bytes, 40);
    assert_eq!(measured.models[0].stages, Some(3));
    // This process has no counting allocator.
    assert_eq!(measured.models[0].activation_bytes, None);
    assert!(
        measured.made.versions["candle"].starts_with("0."),
        "{:?}",
        measured.made
    );
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
    let (start, kinds) = (Instant::now(), kinds());
    let mut measurement = Measurement::default();
    let nobody = &mut |_: MeasureProgress<'_>| {};
    let subject = subject(&source, &catalog, &kinds);
    measure(subject, &options(Duration::ZERO), &mut measurement, nobody).unwrap();
    let measured = file(&measurement);
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
    let kinds = kinds();
    let subject = subject(&source, &catalog, &kinds);
    let nobody = &mut |_: MeasureProgress<'_>| {};
    let mut measurement = Measurement::default();
    let options = options(Duration::ZERO);
    let error = measure(subject, &options, &mut measurement, nobody).unwrap_err();
    assert_eq!(error.to_string(), "measuring cpu-1t: toy/v1: no such toy");
}

#[test]
fn an_interrupted_measurement_goes_on_where_it_stopped() {
    let toys = ToySource::new(&[40]);
    let catalog = toy::catalog(&toys);
    let source: Arc<dyn ModelSource> = toys.clone();
    let kinds = kinds();
    let subject = subject(&source, &catalog, &kinds);
    let options = options(Duration::from_secs(20));
    let mut watch = Impatient {
        looks: std::cell::Cell::new(30),
        kept: None,
    };
    let mut measurement = Measurement::default();
    let stopped = measure(subject, &options, &mut measurement, &mut watch);
    assert!(
        matches!(stopped, Err(MeasureError::Cancelled)),
        "{stopped:?}"
    );
    let cells = measurement.cells();
    assert!(cells > 0, "something was measured");
    assert_eq!(watch.kept.as_ref(), Some(&measurement), "and handed out");
    assert!(
        file(&measurement).latencies.len() < 2 * 4 * 5,
        "but not everything"
    );

    // Through the file, as another process would.
    let folder = tempfile::tempdir().unwrap();
    let id = MeasurementId {
        command: "cargo test".to_owned(),
        machine: Machine::detect(),
        versions: switchyard_executor::profile::versions(),
        subjects: vec!["cpu-1t toy/v0".to_owned()],
    };
    let unfinished = Unfinished::new(&folder.path().join("p.json"), id.clone());
    assert_eq!(unfinished.read(), Ok(None));
    unfinished.keep(&measurement).unwrap();
    let mut continued = unfinished.read().unwrap().unwrap();
    assert_eq!(continued, measurement);
    let loads = toys.loads.load(std::sync::atomic::Ordering::Relaxed);
    let nobody = &mut |_: MeasureProgress<'_>| {};
    measure(subject, &options, &mut continued, nobody).unwrap();
    let again = toys.loads.load(std::sync::atomic::Ordering::Relaxed) - loads;
    // How far the first run came is a matter of time: a kind whose load is known loads once more to
    // be run, the others are timed.
    let known = measurement.models.len();
    assert_eq!(again, known + 3 * (2 - known));
    let whole = file(&continued);
    assert_eq!(whole.latencies.len(), 2 * 4 * 5);
    assert_eq!(
        whole.models[0], measurement.models[0],
        "kept, not measured again"
    );

    // Complete: nothing is sampled any more.
    let before = continued.clone();
    measure(subject, &options, &mut continued, nobody).unwrap();
    assert_eq!(file(&continued).latencies, file(&before).latencies);

    // Another measurement's is left alone, and said.
    for (change, said) in [
        (
            (|id| id.command.push_str(" --more")) as fn(&mut MeasurementId),
            "by `cargo test`",
        ),
        (|id| id.machine.cores += 1, "on "),
        (|id| id.subjects.clear(), "of other variants"),
        (|id| id.versions.clear(), "with "),
    ] {
        let mut other = id.clone();
        change(&mut other);
        let other = Unfinished::new(&folder.path().join("p.json"), other);
        let why = other.read().unwrap_err();
        assert!(
            why.contains("p.json.unfinished: measured ") && why.contains(said),
            "{why}"
        );
    }
    unfinished.remove();
    assert_eq!(unfinished.read(), Ok(None));
}

/// A machine that always draws the same.
struct Steady {
    since: Instant,
    power_w: f64,
}

impl EnergyMeter for Steady {
    fn total_uj(&self) -> Option<u64> {
        Some((self.since.elapsed().as_micros() as f64 * self.power_w) as u64)
    }
}

#[test]
fn energy_is_what_was_drawn_while_it_computed() {
    let toys = ToySource::of(vec![ToySpec {
        bytes: 40,
        exits: vec![1, 3],
        load: Duration::ZERO,
    }]);
    let mut catalog = toy::catalog(&toys);
    let kinds = kinds();
    catalog.kinds = kinds.iter().map(|kind| kind.name.clone()).collect();
    let source: Arc<dyn ModelSource> = toys.clone();
    let steady = Steady {
        since: Instant::now(),
        power_w: 15.0,
    };
    let subject = Subject {
        meters: Meters {
            rapl: Some(&steady),
            nvml: None,
        },
        ..subject(&source, &catalog, &kinds)
    };
    let mut measurement = Measurement::default();
    let options = options(Duration::from_millis(200));
    measure(
        subject,
        &options,
        &mut measurement,
        &mut |_: MeasureProgress<'_>| (),
    )
    .unwrap();
    let profile = file(&measurement);
    assert_eq!(profile.energy.len(), 2, "one per kind");
    for cell in &profile.energy {
        assert_eq!(cell.source, EnergySource::Rapl);
        // Reading the meter takes time too, and it is the only meter that is read.
        assert!((12.0..18.0).contains(&cell.power_w), "{cell:?}");
    }
    for cell in profile
        .latencies
        .iter()
        .filter(|cell| cell.mean_us > Some(20))
    {
        let power_w = cell.energy_uj.unwrap() as f64 / cell.mean_us.unwrap() as f64;
        assert!((5.0..45.0).contains(&power_w), "{cell:?}");
    }
}
