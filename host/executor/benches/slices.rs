//! MAEL's Figure 5 on the shipped models: the price of cutting a model into even and uneven slices:
//! `cargo bench -p switchyard-executor --bench slices`.
//!
//! Models run through the executor that serves, one request at a time, with activations parked at
//! each cut. The stages are timed one by one first, which gives the length of each slice of each
//! cut. Then the most even cut, the most uneven one and the median one run in turn with the model in
//! one go, so that a disturbance of the machine affects all of them. StrategyFigures are first deciles: the
//! time without disturbance.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_executor::candle_threads::configure_candle;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{
    CandleExecutor, Device, Executor, InputTensor, Job, JobRow, ModelSource, RowTensors, Weights,
};
use switchyard_models::Zoo;

/// Repetitions of each strategy.
const ROUNDS: usize = 200;

/// App, variant and slices. With as many stages as slices a model has one cut only, so these have
/// more.
const MODELS: [(&str, &str, usize); 5] = [
    ("heart", "cnn", 2),
    ("voice", "mobilenet", 2),
    ("images", "resnet20", 4),
    ("images", "resnet32", 4),
    ("images", "resnet56", 4),
];

/// A model on one core.
struct SlicedModel {
    executor: CandleExecutor,
    variant: VariantId,
    stages: u32,
    exit: ExitId,
    input: RowTensors,
}

/// The figures of a strategy.
struct StrategyFigures {
    model: String,
    strategy: &'static str,
    /// Standard deviation of its slices' latencies over the latency in one go.
    deviation: f64,
    /// Sum of its slices over the latency in one go, less 1.
    overhead: f64,
    /// Its longest slice over the latency in one go.
    longest: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    configure_candle(1);
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo"))?;
    let manifest = Manifest::all(&zoo)?;
    let mut figures = Vec::new();
    for (app, variant, slices) in MODELS {
        let name = format!("{app}/{variant}");
        let mut model = SlicedModel::open(&manifest, &name)?;
        figures.extend(model.figures(&name, slices)?);
    }
    match std::env::args().any(|arg| arg == "--json") {
        true => println!("{}", json(&figures)),
        false => print!("{}", table(&figures)),
    }
    Ok(())
}

// === impl SlicedModel ===

impl SlicedModel {
    fn open(manifest: &Manifest, name: &str) -> Result<Self, Box<dyn Error>> {
        let entries = manifest.source.entries();
        let at = entries.iter().position(|entry| entry.name == name);
        let at = at.ok_or_else(|| format!("{name} is not in the zoo"))?;
        let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
        let input = entries[at].inputs.iter().map(|spec| {
            let values = (0..spec.row_len()).map(|i| ((i * 37) % 101) as f32 / 101.0 - 0.5);
            InputTensor::F32(values.collect())
        });
        Ok(Self {
            executor: CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX),
            variant: VariantId(at as u32),
            stages: manifest.variants[at].stages,
            exit: manifest.variants[at].last_exit(),
            input: input.collect(),
        })
    }

    fn figures(
        &mut self,
        model: &str,
        slices: usize,
    ) -> Result<Vec<StrategyFigures>, Box<dyn Error>> {
        let single: Vec<u32> = (1..=self.stages).collect();
        let whole = vec![self.stages];
        let mut runs = Vec::new();
        for _ in 0..ROUNDS / 4 {
            runs.push(self.run(&single)?);
        }
        let single = deciles(&runs);
        let mut cuts = cuts(self.stages, slices);
        let lengths = |ends: &Vec<u32>| -> Vec<f64> {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let ranges = starts
                .zip(ends)
                .map(|(from, &to)| from as usize..to as usize);
            ranges.map(|range| single[range].iter().sum()).collect()
        };
        cuts.sort_by(|a, b| deviation(&lengths(a)).total_cmp(&deviation(&lengths(b))));
        let [even, middle, uneven] = [0, cuts.len() / 2, cuts.len() - 1];
        let strategies = [
            ("even", cuts[even].clone()),
            ("uneven1", cuts[middle].clone()),
            ("uneven2", cuts[uneven].clone()),
        ];
        let mut runs: Vec<Vec<Vec<f64>>> = vec![Vec::new(); strategies.len() + 1];
        for _ in 0..ROUNDS {
            runs[0].push(self.run(&whole)?);
            for ((_, ends), runs) in strategies.iter().zip(&mut runs[1..]) {
                runs.push(self.run(ends)?);
            }
        }
        let whole = deciles(&runs[0])[0];
        let figures = strategies
            .iter()
            .zip(&runs[1..])
            .map(|((strategy, _), runs)| {
                let slices = deciles(runs);
                // The decile of sums, not the sum of deciles.
                let sums: Vec<Vec<f64>> = runs.iter().map(|run| vec![run.iter().sum()]).collect();
                StrategyFigures {
                    model: model.to_owned(),
                    strategy,
                    deviation: deviation(&slices) / whole,
                    overhead: deciles(&sums)[0] / whole - 1.0,
                    longest: slices.iter().copied().fold(0.0, f64::max) / whole,
                }
            });
        Ok(figures.collect())
    }

    /// The latencies of the slices that end after these stages, in microseconds.
    fn run(&mut self, ends: &[u32]) -> Result<Vec<f64>, Box<dyn Error>> {
        let mut from = 0;
        let mut took = Vec::with_capacity(ends.len());
        for &to in ends {
            let is_last = to == self.stages;
            let mut job = Job {
                batch: BatchId(0),
                app: AppId(0),
                variant: self.variant,
                from_stage: from,
                to_stage: to,
                exit: is_last.then_some(self.exit),
                rows: vec![JobRow {
                    request: RequestId(0),
                    input: (from == 0).then(|| self.input.clone()),
                }],
                soon: Soon::new(),
                until: None,
            };
            let began = std::time::Instant::now();
            let outcome = self.executor.run(&mut job);
            took.push(began.elapsed().as_secs_f64() * 1e6);
            outcome.result?;
            from = to;
        }
        Ok(took)
    }
}

/// Every cut of `stages` stages into `slices` slices: the ends of the slices, ascending.
fn cuts(stages: u32, slices: usize) -> Vec<Vec<u32>> {
    if slices == 1 {
        return vec![vec![stages]];
    }
    let before = (1..stages).flat_map(|last_cut| cuts(last_cut, slices - 1));
    before.map(|cut| [cut, vec![stages]].concat()).collect()
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

/// First deciles, by position.
fn deciles(runs: &[Vec<f64>]) -> Vec<f64> {
    let positions = runs.first().map_or(0, Vec::len);
    let decile = |at: usize| {
        let mut values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 10]
    };
    (0..positions).map(decile).collect()
}

fn table(figures: &[StrategyFigures]) -> String {
    let mut text = format!(
        "{:16} {:8} {:>10} {:>10} {:>10}\n",
        "model", "slices", "deviation", "overhead", "longest"
    );
    for f in figures {
        text += &format!(
            "{:16} {:8} {:10.3} {:10.3} {:10.3}\n",
            f.model, f.strategy, f.deviation, f.overhead, f.longest
        );
    }
    text
}

/// The layout of `switchyard simulate --json`: a model is a point, a strategy is a policy.
fn json(figures: &[StrategyFigures]) -> serde_json::Value {
    let runs = figures.iter().map(|f| {
        serde_json::json!({
            "point": f.model,
            "policy": f.strategy,
            "estimates": {
                "deviation": {"mean": f.deviation},
                "overhead": {"mean": f.overhead},
                "longest": {"mean": f.longest},
            },
        })
    });
    serde_json::json!({"runs": runs.collect::<Vec<_>>()})
}
