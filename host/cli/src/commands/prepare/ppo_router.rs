//! `switchyard prepare ppo-router`: weights for the policy `ppo-router`, by training it against
//! the simulator.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use ppo_router_net::Kind;
use ppo_router_train::evaluate::EvaluationPart;
use ppo_router_train::train::draw_seeds;
use ppo_router_train::{
    Progress, TestBed, TrainError, TrainOptions, TrainSettings, Trained, train,
};
use serde_json::json;

use crate::commands::failure::Failure;
use crate::commands::output::check_folder;
use crate::commands::print;

/// The paper requires 98 % of the requests in time. The margin covers the bursts of other seeds.
const VIOLATIONS_MAX: f64 = 0.018;

/// Train the learning router: shares of the arrivals per instance, slot by slot
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard prepare ppo-router --workload mmpp:180,10,0.036,0.002 --out /tmp/router
  switchyard prepare ppo-router --workload mmpp:180,10,0.036,0.002 --out /tmp/paper \\
      --observation paper --method paper --updates 5000
  switchyard prepare ppo-router --workload phases:180x27.8s,10x500s --out /tmp/batching \\
      --batching --seed 1,2,3
  switchyard prepare ppo-router --workload mmpp:6600,360,0.5,0.028 --out /tmp/heart --resume \\
      --test-bed plugins/ppo-router/weights/heart/test-bed.json

The default test bed is the paper's: two heavy instances of 42.8 ms and 82.78 %, two light ones of
12 ms and 77.69 %, 15 requests each, 300 ms. A test bed is JSON:
  {\"models\": [{\"variant\": \"resnet\", \"accuracy\": 0.87, \"instances\": 2,
               \"service_us\": [[1, 2100], [5, 9000]]}, ...],
   \"capacity\": 15, \"slot_us\": 1000000, \"deadline_us\": 300000, \"batches\": [1, 3, 5]}

Written to DIR, or to DIR/seed-N for several seeds (DIR/curve.svg then has their mean, and shaded
their standard deviation): policy.safetensors, curve.csv, curve.svg, evaluation.json and
checkpoint.bin, from which --resume continues. The weights are those of the best update in the
validation; they are evaluated on seeds that neither training nor validation uses.

There is no --device: the networks have 90 and 60 units, and the simulation of test beds, on all
cores, takes most of the time.

Exit codes: 0 done, 1 the training diverged, 2 an option or a file cannot be used.")]
pub(super) struct PpoRouterArgs {
    /// The arrivals, such as mmpp:180,10,0.036,0.002
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,
    /// Folder of the weights
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The instances, as JSON [default: the paper's]
    #[arg(long, alias = "yard", value_name = "FILE")]
    test_bed: Option<PathBuf>,
    /// Required latency in milliseconds [default: the test bed's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    deadline_ms: Option<u64>,
    /// The observation at the start of a slot
    #[arg(long, value_name = "KIND", value_enum, default_value = "extended")]
    observation: Observation,
    /// Choose minimum and maximum batch per model as well, from 1, 3, 5
    #[arg(long)]
    batching: bool,
    /// Hyperparameters: the paper's, or better ones
    #[arg(long, value_name = "METHOD", value_enum, default_value = "better")]
    method: Method,
    /// Hyperparameters that differ from the method's, as JSON
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Another workload for the first part of the training
    #[arg(long, value_name = "WORKLOAD", requires = "first_share")]
    first: Option<String>,
    /// Length of that part, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "first", value_parser = share)]
    first_share: Option<f64>,
    /// Seeds; each is a separate training
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    seed: Vec<u64>,
    /// Updates, of 10,000 slots each (`--method paper`: of 50,000)
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    updates: u64,
    /// Updates between two validations
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Slots of the final evaluation
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..))]
    test_slots: u64,
    /// Continue from DIR/checkpoint.bin
    #[arg(long)]
    resume: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Observation {
    /// The instances, as in the paper's practical case
    Paper,
    /// The workload's phase as well, which a server cannot know
    Full,
    /// The instances, their changes, and the number of recent arrivals
    Extended,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    /// As published
    Paper,
    /// More and smaller steps, with noise that decreases
    Better,
}

/// Trains and prints the evaluation.
pub(super) fn run(args: &PpoRouterArgs) -> Result<(), Failure> {
    check_folder("--out", &args.out)?;
    let mut outcomes = Vec::new();
    for &seed in &args.seed {
        let options = options(args, seed)?;
        let trained = one(&options).map_err(|error| match error {
            TrainError::Diverged(_) => Failure::check(error),
            _ => Failure::input(error),
        })?;
        outcomes.push((options, trained));
    }
    if let [_, _, ..] = outcomes[..] {
        let title = format!("{}, seeds {:?}", args.workload, args.seed);
        let trained: Vec<Trained> = outcomes.iter().map(|(_, one)| one.clone()).collect();
        draw_seeds(&title, &trained, &args.out).map_err(Failure::input)?;
    }
    if args.json {
        let all = outcomes.iter().map(|(options, trained)| {
            json!({"seed": options.seed, "out": options.out, "trained": trained})
        });
        return print::json(&all.collect::<Vec<_>>());
    }
    print::line(table(&outcomes))
}

fn options(args: &PpoRouterArgs, seed: u64) -> Result<TrainOptions, Failure> {
    let mut test_bed: TestBed = match &args.test_bed {
        Some(file) => read(file)?,
        None => TestBed::paper(),
    };
    if args.batching {
        test_bed = test_bed.with_batches();
    }
    if let Some(ms) = args.deadline_ms {
        test_bed.deadline_us = ms * 1_000;
    }
    let settings = match args.method {
        Method::Paper => TrainSettings::paper(),
        Method::Better => TrainSettings::better(),
    };
    let settings = match &args.settings {
        Some(file) => settings.with(read(file)?).map_err(Failure::input)?,
        None => settings,
    };
    let out = match args.seed.len() {
        1 => args.out.clone(),
        _ => args.out.join(format!("seed-{seed}")),
    };
    Ok(TrainOptions {
        test_bed,
        workload: args.workload.clone(),
        first: args.first.clone().zip(args.first_share),
        kind: match args.observation {
            Observation::Paper => Kind::Paper,
            Observation::Full => Kind::Full,
            Observation::Extended => Kind::Extended,
        },
        settings,
        updates: args.updates,
        seed,
        out,
        resume: args.resume,
        every: args.every,
        validation_slots: 100_000,
        test_slots: args.test_slots,
        violations_max: VIOLATIONS_MAX,
        command: std::env::args().collect::<Vec<_>>().join(" "),
    })
}

fn one(options: &TrainOptions) -> Result<Trained, TrainError> {
    let style = ProgressStyle::with_template("{prefix:>12} {wide_bar} {pos}/{len} {msg} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(options.updates).with_style(style);
    bar.set_prefix(format!("seed {}", options.seed));
    let trained = train(options, &mut |progress: &Progress<'_>| {
        let point = progress.point;
        let all = &point.parts[0];
        let (goodput, violation) = (100.0 * all.goodput, 100.0 * all.violation);
        bar.set_position(point.update);
        bar.set_message(format!(
            "goodput {goodput:.2} % violations {violation:.2} %"
        ));
        true
    });
    bar.finish_and_clear();
    trained
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let at = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| Failure::input(format!("{at}: {e}")))?;
    serde_json::from_str(&text).map_err(|e| Failure::input(format!("{at}: {e}")))
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("must be from 0 to 1".to_owned()),
    }
}

fn table(outcomes: &[(TrainOptions, Trained)]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header([
        "seed",
        "update",
        "requests",
        "arrivals",
        "goodput %",
        "violations %",
        "late %",
        "rejected %",
        "heavy %",
    ]);
    for (options, trained) in outcomes {
        let evaluation = &trained.evaluation;
        for part in [&evaluation.overall].into_iter().chain(&evaluation.phases) {
            let mut row = vec![
                options.seed.to_string(),
                trained.best_update.to_string(),
                part.name.clone(),
                part.arrivals.to_string(),
            ];
            row.extend(percentages(part));
            table.add_row(row);
        }
    }
    for column in table.column_iter_mut() {
        if column.index != 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn percentages(part: &EvaluationPart) -> [String; 5] {
    [
        part.goodput_ratio,
        part.violation_ratio,
        part.late_ratio,
        part.rejection_ratio,
        part.heavy_share,
    ]
    .map(|ratio| format!("{:.2}", 100.0 * ratio))
}
