//! Measuring, with a bench that computes nothing: a stage takes 10 us per request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::ids::{AppId, VariantId};
use switchyard_core::time::Micros;
use switchyard_profile::{
    Bench, BenchError, EnergySource, KindBench, Lengths, Machine, MeasureError, MeasureOptions,
    MeasureProgress, MeasureSubject, MeasureWatch, Measurement, MeasurementId, Percentile,
    ProfileFile, Provenance, StageRange, UnfinishedMeasurement, VariantLoad, measure,
};

use crate::toy::{catalog, names};

const KINDS: [&str; 2] = ["cpu-1t", "cpu-2t"];

/// Batches 1, 2, 4 and 8 of a variant of three stages: all stages to each of two exits, two single
/// stages to park after, one last stage with its head.
const CELLS_OF_THREE_STAGES: usize = 4 * 5;

/// Power that the bench with a counter draws.
const POWER_W: f64 = 15.0;

#[derive(Default)]
struct ToyBench {
    loads: AtomicUsize,
    /// Variants from this one on cannot be loaded.
    unknown: Option<VariantId>,
    /// Requests are texts of up to 256 tokens, 64 of them in common.
    takes_texts: bool,
    /// Since when energy has been counted; batches take real time then.
    metered_since: Option<Instant>,
}

struct ToyKind<'a>(&'a ToyBench);

impl Bench for ToyBench {
    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn on_kind<R: Send>(
        &self,
        kind: &str,
        work: impl FnOnce(&mut dyn KindBench) -> R + Send,
    ) -> Result<R, BenchError> {
        assert!(KINDS.contains(&kind), "{kind}");
        Ok(work(&mut ToyKind(self)))
    }
}

impl KindBench for ToyKind<'_> {
    fn load(&mut self, id: VariantId, variant: &Variant) -> Result<VariantLoad, BenchError> {
        let loads = self.0.loads.fetch_add(1, Ordering::Relaxed);
        if self.0.unknown.is_some_and(|unknown| id >= unknown) {
            return Err(format!("toy/{}: no such toy", variant.name).into());
        }
        Ok(VariantLoad {
            memory_bytes: variant.memory_bytes,
            time: Micros(1_000 + loads as u64),
        })
    }

    fn run(
        &mut self,
        _id: VariantId,
        ranges: &[StageRange],
        batch: u32,
        report: &mut dyn FnMut(Micros),
    ) -> Result<(), BenchError> {
        let mut reached = 0;
        for (i, range) in ranges.iter().enumerate() {
            assert_eq!(
                range.from, reached,
                "each range begins where the last one ends"
            );
            assert_eq!(
                range.exit.is_some(),
                i + 1 == ranges.len(),
                "only the last one answers"
            );
            reached = range.to;
            let took = Micros(u64::from((range.to - range.from) * batch) * 10);
            if self.0.metered_since.is_some() {
                let end = Instant::now() + Duration::from(took);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            report(took);
        }
        Ok(())
    }

    fn lengths(&mut self, _id: VariantId) -> Result<Option<Lengths>, BenchError> {
        Ok(self.0.takes_texts.then(|| Lengths::up_to(64, 256)))
    }

    fn run_length(
        &mut self,
        _id: VariantId,
        range: StageRange,
        length: u32,
    ) -> Result<Micros, BenchError> {
        // Slower than in batches, by as much for each length.
        Ok(Micros(
            u64::from((range.to - range.from) * length) * 10 * 2 / 64,
        ))
    }

    fn peak_bytes(
        &mut self,
        _id: VariantId,
        range: StageRange,
        batch: u32,
    ) -> Result<Option<u64>, BenchError> {
        assert!(range.from == 0 && range.exit.is_some());
        Ok(Some(u64::from(batch) * 100))
    }

    fn energy_uj(&self) -> Option<u64> {
        let since = self.0.metered_since?;
        Some((since.elapsed().as_micros() as f64 * POWER_W) as u64)
    }
}

/// Cancels after a number of looks, and keeps the samples.
struct ImpatientWatch {
    looks: std::cell::Cell<u32>,
    kept: Option<Measurement>,
}

impl MeasureWatch for ImpatientWatch {
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

fn options(budget: Duration) -> MeasureOptions {
    MeasureOptions {
        budget,
        samples_min: 20,
        samples_max: 20,
        ..MeasureOptions::quick()
    }
}

fn subject(catalog: &Catalog) -> MeasureSubject<'_> {
    MeasureSubject {
        apps: &catalog.apps,
        variants: &catalog.variants,
    }
}

fn three_stages() -> Catalog {
    catalog(&[(40, &[1, 3])])
}

/// Adds samples to a measurement, without a watch.
fn continue_measurement(
    catalog: &Catalog,
    bench: &ToyBench,
    budget: Duration,
    measurement: &mut Measurement,
) -> Result<(), MeasureError> {
    let mut watch = |_: MeasureProgress<'_>| {};
    let options = options(budget);
    measure(subject(catalog), bench, &options, measurement, &mut watch)
}

/// A measurement from the start.
fn measured(catalog: &Catalog, bench: &ToyBench, budget: Duration) -> Measurement {
    let mut measurement = Measurement::default();
    continue_measurement(catalog, bench, budget, &mut measurement).unwrap();
    measurement
}

fn file(measurement: &Measurement) -> ProfileFile {
    let made = Provenance::now("cargo test", [("rustc".to_owned(), "1".to_owned())].into());
    measurement.to_file(made, Machine::detect())
}

#[test]
fn a_measurement_covers_the_catalog() {
    let mut catalog = catalog(&[(40, &[1, 3]), (70, &[1])]);
    catalog.kinds = KINDS.map(str::to_owned).to_vec();
    let bench = ToyBench::default();
    let mut last = 0.0;
    let mut measurement = Measurement::default();
    measure(
        subject(&catalog),
        &bench,
        &options(Duration::from_secs(1)),
        &mut measurement,
        &mut |progress: MeasureProgress<'_>| {
            assert!((last..=1.0).contains(&progress.share), "{progress:?}");
            last = progress.share;
        },
    )
    .unwrap();
    assert!(last > 0.0);
    let measured = file(&measurement);
    // The second variant has one stage.
    let cells = 2 * (CELLS_OF_THREE_STAGES + 4);
    assert_eq!(measured.latencies.len(), cells);
    for cell in &measured.latencies {
        let us = u64::from((cell.to_stage - cell.from_stage) * cell.batch) * 10;
        assert_eq!((cell.samples, cell.p50_us, cell.p99_us), (20, us, us));
        assert_eq!(cell.mean_us, Some(us));
    }
    // One cell per kind and batch of the variant that can be cut.
    assert_eq!(measured.slicing.len(), 2 * 4);
    for cell in &measured.slicing {
        assert_eq!((cell.variant.as_str(), cell.cuts), ("v0", 2));
        assert_eq!((cell.whole_us, cell.ratio), (cell.sliced_us, 1.0));
    }
    assert!(measured.energy.is_empty());
    assert_eq!(measured.models.len(), 4);
    let model = &measured.models[0];
    assert_eq!((model.memory_bytes, model.stages), (40, Some(3)));
    assert_eq!(model.activation_bytes, Some(800));
    assert_eq!(model.load_us, 1_002, "the longest of three");
    let core = measured.to_core(names(&catalog), Percentile::P95).unwrap();
    assert_eq!(core.rows().count(), cells);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(measured.machine.file_name());
    measured.save(&path).unwrap();
    let loaded = ProfileFile::load_for(&path, &Machine::detect());
    assert_eq!(loaded.unwrap(), measured);
}

#[test]
fn texts_cost_what_their_length_takes() {
    let catalog = three_stages();
    let bench = ToyBench {
        takes_texts: true,
        ..ToyBench::default()
    };
    let measured = file(&measured(&catalog, &bench, Duration::ZERO));
    let lengths = measured.lengths.iter().filter(|cell| cell.kind == KINDS[0]);
    let lengths: Vec<_> = lengths.map(|cell| (cell.length, cell.is_typical)).collect();
    let known = [
        (8, false),
        (16, false),
        (32, false),
        (64, true),
        (128, false),
        (256, false),
    ];
    assert_eq!(lengths, known);
    let core = measured.to_core(names(&catalog), Percentile::P95).unwrap();
    let costs = [64, 96, 128, 256, 10_000].map(|length| core.cost(AppId(0), length).as_f64());
    assert_eq!(costs, [1.0, 1.5, 2.0, 4.0, 156.25]);
    let short = core.cost(AppId(0), 8).as_f64();
    assert!((0.03..0.2).contains(&short), "{short}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(measured.machine.file_name());
    measured.save(&path).unwrap();
    assert_eq!(ProfileFile::load(&path).unwrap(), measured);
    let mut twice = measured.clone();
    twice.lengths.push(measured.lengths[0].clone());
    twice.save(&path).unwrap();
    let refused = ProfileFile::load(&path).unwrap_err().to_string();
    assert!(
        refused.contains("`lengths[12]`: measured twice"),
        "{refused}"
    );
    let later = measured.clone().updated(measured.clone());
    assert_eq!(later.lengths, measured.lengths, "replaced, and not added");
}

#[test]
fn a_spent_budget_still_measures_every_cell_once() {
    let catalog = three_stages();
    let measured = file(&measured(&catalog, &ToyBench::default(), Duration::ZERO));
    assert_eq!(measured.latencies.len(), 2 * CELLS_OF_THREE_STAGES);
    assert!(measured.latencies.iter().all(|cell| cell.samples == 1));
}

#[test]
fn a_model_that_cannot_be_loaded_is_named() {
    let catalog = catalog(&[(40, &[1, 3]), (40, &[1, 3])]);
    let bench = ToyBench {
        unknown: Some(VariantId(1)),
        ..ToyBench::default()
    };
    let mut measurement = Measurement::default();
    let failed = continue_measurement(&catalog, &bench, Duration::ZERO, &mut measurement);
    let error = failed.unwrap_err();
    assert_eq!(error.to_string(), "measuring cpu-1t: toy/v1: no such toy");
}

#[test]
fn an_interrupted_measurement_continues() {
    let (catalog, bench) = (three_stages(), ToyBench::default());
    let budget = Duration::from_secs(20);
    let mut watch = ImpatientWatch {
        looks: std::cell::Cell::new(30),
        kept: None,
    };
    let mut measurement = Measurement::default();
    let stopped = measure(
        subject(&catalog),
        &bench,
        &options(budget),
        &mut measurement,
        &mut watch,
    );
    assert!(
        matches!(stopped, Err(MeasureError::Cancelled)),
        "{stopped:?}"
    );
    assert_eq!(watch.kept.as_ref(), Some(&measurement));
    let begun = file(&measurement).latencies.len();
    assert!((1..2 * CELLS_OF_THREE_STAGES).contains(&begun), "{begun}");

    // Through the file, as another process would.
    let folder = tempfile::tempdir().unwrap();
    let id = MeasurementId {
        command: "cargo test".to_owned(),
        machine: Machine::detect(),
        versions: [("rustc".to_owned(), "1".to_owned())].into(),
        subjects: vec!["cpu-1t toy/v0".to_owned()],
    };
    let out = folder.path().join("p.json");
    let unfinished = UnfinishedMeasurement::new(&out, id.clone());
    assert_eq!(unfinished.read(), Ok(None));
    unfinished.keep(&measurement).unwrap();
    let mut continued = unfinished.read().unwrap().unwrap();
    assert_eq!(continued, measurement);
    let loads = bench.loads.load(Ordering::Relaxed);
    continue_measurement(&catalog, &bench, budget, &mut continued).unwrap();
    let again = bench.loads.load(Ordering::Relaxed) - loads;
    // A kind whose load time is known loads once to run, the others load three times.
    let known = measurement.models.len();
    assert_eq!(again, known + 3 * (2 - known));
    let whole = file(&continued);
    assert_eq!(whole.latencies.len(), 2 * CELLS_OF_THREE_STAGES);
    assert_eq!(
        whole.models[0], measurement.models[0],
        "kept, not measured again"
    );

    // It is complete: a third measurement takes no samples.
    let before = continued.clone();
    continue_measurement(&catalog, &bench, budget, &mut continued).unwrap();
    assert_eq!(file(&continued).latencies, file(&before).latencies);

    // The file of another measurement is refused with the difference.
    for (change, difference) in [
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
        let why = UnfinishedMeasurement::new(&out, other).read().unwrap_err();
        assert!(
            why.contains("p.json.unfinished: measured ") && why.contains(difference),
            "{why}"
        );
    }
    unfinished.remove();
    assert_eq!(unfinished.read(), Ok(None));
}

#[test]
fn the_file_of_an_unfinished_measurement_keeps_its_layout() {
    let catalog = three_stages();
    let measurement = measured(&catalog, &ToyBench::default(), Duration::ZERO);
    let json = serde_json::to_value(&measurement).unwrap();
    assert_eq!(
        json["runs"][0],
        serde_json::json!({
            "name": {
                "kind": "cpu-1t",
                "app": "toy",
                "variant": "v0",
                "from_stage": 0,
                "to_stage": 1,
                "exit": "after1",
                "sliced": false,
            },
            "batch": 1,
            "cold_us": 10,
            "samples_us": [],
            "metered": {"uj": 0, "us": 0},
        })
    );
    assert!(json["spent_us"]["cpu-1t: toy"].is_u64());
}

#[test]
fn energy_is_counted_while_batches_run() {
    let catalog = three_stages();
    let bench = ToyBench {
        metered_since: Some(Instant::now()),
        ..ToyBench::default()
    };
    let profile = file(&measured(&catalog, &bench, Duration::from_millis(200)));
    assert_eq!(profile.energy.len(), 2, "one per kind");
    for cell in &profile.energy {
        assert_eq!(cell.source, EnergySource::Rapl);
        // The look at the counter and the look at the clock are some microseconds apart.
        assert!((12.0..18.0).contains(&cell.power_w), "{cell:?}");
    }
    for cell in &profile.latencies {
        let power_w = cell.energy_uj.unwrap() as f64 / cell.mean_us.unwrap() as f64;
        assert!((5.0..45.0).contains(&power_w), "{cell:?}");
    }
}
