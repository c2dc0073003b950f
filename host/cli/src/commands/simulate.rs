//! `switchyard simulate`: run policies on a workload in virtual time.

mod apps;
mod axis;
pub(super) mod contenders;
mod output;
mod record;
mod yard;

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use switchyard_core::time::{Micros, Time};
use switchyard_policy::history::ContentHash;
use switchyard_policy::recording::PolicyRecord;
use switchyard_sim::report::{Meta, PolicyMeta, ReportData, SweepAxis};
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{Contender, Scenario, SweepPoint, Workload, run_observed, sweep};

use self::axis::{Axis, Parameter};
use self::contenders::{Contenders, Named};
use self::yard::{Service, Yard};
use super::Failure;
use switchyard_server::config::PercentileName;

/// Fewer runs say nothing about noise.
const SEEDS_MIN: u64 = 3;

/// Length of the timelines in a report, in times of the longest SLO.
const TIMELINE_SLOS: u64 = 3;

/// Run policies on a workload in virtual time, all of them on the same arrivals
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard simulate --policy fcfs --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json
  switchyard simulate --policy sneakpeek --policy edf --workload window:12x100ms \\
      --profile profiles/here.json --seeds 5 --sweep load=0.5:1.5:0.25 --json out.json
  switchyard simulate --policy fcfs --policy edf --workload gamma:400,0.5 \
      --profile profiles/here.json --sweep load=0.5:2:0.25 --seeds 5 --report target/report
  switchyard simulate --policy my-policy.wasm --workload trace:day.json \\
      --profile profiles/here.json --workers 4 --service percentiles
  switchyard simulate --policy mine.wasm --policy fcfs --policy edf --workload poisson:400 \\
      --profile profiles/here.json --seeds 10 --against fcfs
  switchyard simulate --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json --seconds 10 --record windows.rec

A policy is NAME, for NAME.wasm in the folder of policies, a path that ends in .wasm, or `edf`,
the native fallback. Settings may follow as a TOML table, and what results call it may go before:
'oblivious=sneakpeek{data_aware = false, short_circuit = false}'. Components run on fuel, so that a runaway is cut at the same instruction in
every run: the same command gives the same figures on every machine.

Workloads: poisson:RATE, gamma:RATE,SHAPE, erlang:RATE,STAGES, periodic:RATE,
mmpp:RATE,RATE,LEAVE,LEAVE, phases:RATExLENGTH,..., window:COUNTxLENGTH, burst:RATE,SIZExEVERY,
trace:FILE, or a file of JSON.

A sweep varies one of load (times the workload's rates), deadline (times each app's SLO),
workers, apps (the pool's first N, then copies such as heart-2), k (neighbours of the evidence),
evidence (its accuracy), penalty or prior; values are A,B,C or FROM:TO:STEP.

Exit codes: 0 done, 2 a policy, workload, profile or parameter cannot be used.")]
pub(super) struct SimulateArgs {
    /// A policy, [NAME=]POLICY[{SETTINGS}]; may be given again
    #[arg(long = "policy", value_name = "P", required = true)]
    policies: Vec<Named>,
    /// What arrives: a spec or a file of JSON
    #[arg(long, value_name = "W")]
    workload: String,
    /// Latencies, of any machine
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// Configuration whose first pool is simulated; without one, the apps that an imported profile
    /// brings, else the shipped demo configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of models, in the place of every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Folder of policies, in the place of policies.dir
    #[arg(long = "policies", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// So many workers, of the configured kinds in turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: Option<u32>,
    /// Virtual seconds in which requests arrive; by default the length of the workload's longest
    /// trace, or 60 without a trace
    #[arg(long, value_name = "N", value_parser = super::positive)]
    seconds: Option<f64>,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs per policy, with seeds that follow each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    /// A parameter and its values
    #[arg(long, value_name = "NAME=VALUES")]
    sweep: Option<Axis>,
    /// How long batches take: profiled, percentiles, normal:MEAN,CV, log-normal:MEAN,CV or
    /// exponential:MEAN, with means as shares of the profile's latency
    #[arg(long, value_name = "LAW", default_value = "profiled")]
    service: Service,
    /// Latencies that policies plan with: p50, p95 or p99
    #[arg(long, value_name = "P", default_value = "p95", value_parser = percentile)]
    percentile: PercentileName,
    /// Models are not resident at the start
    #[arg(long)]
    cold: bool,
    /// Write everything as JSON; `-`: to stdout, in the place of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page of plots, DIR/index.html; it needs no network
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Say what every other policy changes against this one, seed by seed, and what of it is noise;
    /// takes several --seeds, the more the better
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// Record the windows and plans of the run, for `replay`; takes one policy and one seed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sweep", "seeds"])]
    record: Option<PathBuf>,
}

/// Simulates and prints.
pub(super) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    if args.record.is_some() && args.policies.len() > 1 {
        return Err(Failure::input("--record: takes one --policy"));
    }
    args.check_baseline()?;
    let yard = Yard::read(args)?;
    let workload = workload(&args.workload)?;
    let contenders = Contenders::load(&args.policies, &yard)?;
    let points = args.points(&yard, &workload)?;
    let seeds: Vec<u64> = (0..args.seeds).map(|i| args.seed.wrapping_add(i)).collect();
    let runs = points.len() * contenders.list.len() * seeds.len();
    let bar = ProgressBar::new(runs as u64).with_style(style());
    let (mut outcomes, mut overheads) = (Vec::new(), Vec::new());
    for point in &points {
        // Timed point by point: what a window costs is as much of a result as what it brings.
        let timed = contenders.list.iter().map(contenders::timed);
        let (timed, of_point): (Vec<_>, Vec<_>) = timed.unzip();
        let at = std::slice::from_ref(point);
        outcomes.extend(sweep(at, &timed, &seeds, &|| bar.inc(1)).map_err(Failure::input)?);
        overheads.push(of_point);
    }
    bar.finish_and_clear();
    let meta = args.meta(&yard, &contenders, &points, &seeds);
    // A sweep of apps or workers only adds to those that come first.
    let catalogs = points.iter().map(|point| &point.scenario.catalog);
    let catalog = catalogs.max_by_key(|catalog| (catalog.apps.len(), catalog.workers.len()));
    let catalog = catalog.unwrap_or(&yard.catalog);
    let mut data = ReportData::new(meta, catalog, outcomes);
    for (point, overheads) in points.iter().zip(&overheads) {
        for (contender, overhead) in contenders.list.iter().zip(overheads) {
            data = data.with_scheduling(&point.name, &contender.name, overhead.times());
        }
    }
    if let Some(baseline) = &args.against {
        data = data.compared_with(baseline);
    }
    if args.report.is_some() {
        data = watched(data, &points, &contenders.list, args.seed)?;
    }
    if let (Some(file), [point]) = (&args.record, points.as_slice()) {
        record::record(file, &point.scenario, &contenders, &yard, args.seed)?;
    }
    output::print(&data, args.json.as_deref(), args.report.as_deref())
}

/// What ran where in the middle of the middle point, under every policy.
fn watched(
    mut data: ReportData,
    points: &[SweepPoint],
    contenders: &[Contender],
    seed: u64,
) -> Result<ReportData, Failure> {
    let point = &points[points.len() / 2];
    let slo = point.scenario.catalog.apps.iter().map(|app| app.slo).max();
    let length = slo.unwrap_or_default().0 * TIMELINE_SLOS;
    let from = Time(point.scenario.duration.0 / 2);
    for contender in contenders {
        let mut seen = Timeline::new(from, from + Micros(length));
        run_observed(&point.scenario, contender, seed, &mut seen).map_err(Failure::input)?;
        data = data.with_timeline(&contender.name, &point.name, seed, seen);
    }
    Ok(data)
}

// === impl SimulateArgs ===

impl SimulateArgs {
    fn check_baseline(&self) -> Result<(), Failure> {
        let Some(baseline) = &self.against else {
            return Ok(());
        };
        let names = self.policies.iter().map(|policy| policy.name.as_str());
        if !names.clone().any(|name| name == baseline) || names.clone().count() < 2 {
            let names = names.collect::<Vec<_>>().join(", ");
            let reason =
                format!("`{baseline}`, must be one of several policies, which are: {names}");
            return Err(Failure::input(format!("--against: {reason}")));
        }
        if self.seeds < SEEDS_MIN {
            let reason = format!("--against: takes --seeds {SEEDS_MIN} or more");
            return Err(Failure::input(reason));
        }
        Ok(())
    }

    fn meta(
        &self,
        yard: &Yard,
        contenders: &Contenders,
        points: &[SweepPoint],
        seeds: &[u64],
    ) -> Meta {
        let names: Vec<&str> = self.policies.iter().map(|p| p.name.as_str()).collect();
        let words = std::env::args().skip(1).map(|word| quoted(&word));
        let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        let slos = yard
            .catalog
            .apps
            .iter()
            .map(|app| app.slo.as_secs_f64() * 1e3);
        let slos: Vec<f64> = slos.collect();
        let is_fixed = !self.workload.contains("deadline") && !self.workload.ends_with(".json");
        Meta {
            title: format!("{} on {}", names.join(", "), self.workload),
            command: format!("switchyard {}", words.collect::<Vec<_>>().join(" ")),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: now.chars().take_while(|c| *c != 'T').collect(),
            workload: self.workload.clone(),
            profile: self.profile.display().to_string(),
            profile_hash: std::fs::read(&self.profile)
                .map(|bytes| ContentHash::of(&[&bytes]).to_hex())
                .unwrap_or_default(),
            policies: contenders
                .list
                .iter()
                .zip(&contenders.records)
                .map(policy_meta)
                .collect(),
            seconds: points
                .first()
                .map_or(0.0, |point| point.scenario.duration.as_secs_f64()),
            seeds: seeds.to_vec(),
            axis: self.sweep.as_ref().map(|axis| SweepAxis {
                name: axis.name.label().to_owned(),
                label: axis.name.description().to_owned(),
            }),
            deadline_ms: match (slos.as_slice(), &self.sweep) {
                (_, Some(axis)) if axis.name == Parameter::Deadline => None,
                (&[slo], _) if is_fixed => Some(slo),
                _ => None,
            },
        }
    }

    /// One scenario per value of the sweep, or one.
    fn points(&self, yard: &Yard, workload: &Workload) -> Result<Vec<SweepPoint>, Failure> {
        let base = Scenario {
            class_mixes: yard.class_mixes.clone(),
            service: yard.service(&self.service)?,
            preload: !self.cold,
            scheduler: yard.scheduler.clone(),
            ..Scenario::new(yard.catalog.clone(), workload.clone())
        };
        let mut points = match &self.sweep {
            None => {
                base.validate().map_err(Failure::input)?;
                vec![SweepPoint {
                    name: String::new(),
                    scenario: base,
                }]
            }
            Some(axis) => axis.points(&base)?,
        };
        for point in &mut points {
            match self.seconds {
                Some(seconds) => point.scenario.duration = Micros((seconds * 1e6) as u64),
                // Per point: recorded arrivals are stretched at a lower load.
                None => point.scenario.until_trace_ends().map_err(Failure::input)?,
            }
        }
        Ok(points)
    }
}

/// The component behind a policy's name.
fn policy_meta((contender, record): (&Contender, &PolicyRecord)) -> PolicyMeta {
    PolicyMeta {
        policy: contender.name.clone(),
        label: record.label.clone(),
        hash: record.code.clone(),
        settings: record.settings.clone(),
    }
}

/// A spec, or a file of JSON.
fn workload(text: &str) -> Result<Workload, Failure> {
    if !text.ends_with(".json") || text.contains(':') {
        return text.parse().map_err(Failure::input);
    }
    let read = std::fs::read_to_string(text);
    let json = read.map_err(|error| Failure::input(format!("{text}: {error}")))?;
    let mut json = serde_json::Deserializer::from_str(&json);
    let workload = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner());
        Failure::input(format!("{text}: {path}: {inner}"))
    })?;
    json.end()
        .map_err(|error| Failure::input(format!("{text}: .: {error}")))?;
    Ok(workload)
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn percentile(text: &str) -> Result<PercentileName, String> {
    match text {
        "p50" => Ok(PercentileName::P50),
        "p95" => Ok(PercentileName::P95),
        "p99" => Ok(PercentileName::P99),
        _ => Err("must be p50, p95 or p99".to_owned()),
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("simulating {wide_bar} {pos}/{len} runs {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
