//! Options of `switchyard simulate`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use switchyard_core::catalog::Late;
use switchyard_core::time::Micros;
use switchyard_server::config::{LatencySource, PercentileName};
use switchyard_simulate::SimulationRequest;
use switchyard_simulate::axis::Axis;
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::named::Named;
use switchyard_simulate::service::Service;
use switchyard_simulate::words;

use crate::commands::failure::Failure;
use crate::commands::numbers::positive;
use crate::commands::output::{Folders, check_file, check_folder};
use crate::live::{LiveOptions, LiveWorkers};

/// Fewest runs from which a difference can be told from noise.
const SEEDS_MIN: u64 = 3;

/// Run policies on a workload in virtual time, all of them on the same arrivals
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard simulate --policy fcfs --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json
  switchyard simulate --policy sneakpeek --policy edf --workload window:12x100ms \\
      --profile profiles/here.json --seeds 5 --sweep load=0.5:1.5:0.25 --json out.json
  switchyard simulate --policy fcfs --policy edf --workload gamma:400,0.5 \\
      --profile profiles/here.json --sweep load=0.5:2:0.25 --seeds 5 --report target/report
  switchyard simulate --policy my-policy.wasm --workload trace:day.json \\
      --profile profiles/here.json --workers 4 --service percentiles
  switchyard simulate --policy mine.wasm --policy fcfs --policy edf --workload poisson:400 \\
      --profile profiles/here.json --seeds 10 --against fcfs
  switchyard simulate --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json --seconds 10 --record windows.rec
  switchyard simulate --policy sneakpeek --workload poisson:100 --seconds 10 --config my.toml \\
      --profile profiles/gpu.json --live stand-in
  switchyard simulate --policy fcfs --policy sneakpeek --policy stability \\
      --workload poisson:400 --profile profiles/reference.json --sweep load=0.5:2:0.25 \\
      --plot docs/figures/compare.svg

A policy is NAME (NAME.wasm in the folder of policies), a path that ends in .wasm, or `edf`, the
native fallback. A name for the results may go before it, and settings may follow as a TOML
table: 'oblivious=sneakpeek{data_aware = false, short_circuit = false}'. Components run on fuel,
so that an endless loop is cut at the same instruction in every run: the same command gives the
same figures on every machine.

Workloads: poisson:RATE, gamma:RATE,SHAPE, erlang:RATE,STAGES, periodic:RATE,
mmpp:RATE,RATE,LEAVE,LEAVE, phases:RATExLENGTH,..., window:COUNTxLENGTH, burst:RATE,SIZExEVERY,
trace:FILE, or a JSON file.

A sweep varies one of load (times the workload's rates), deadline (times each app's SLO),
workers, apps (the pool's first N, then copies such as heart-2), k (neighbours of the evidence),
evidence (its accuracy), penalty (step, linear, sigmoid) or prior (jeffreys, weak, strong*REQUESTS);
values are A,B,C or FROM:TO:STEP.

With --live, `switchyard serve` gets the same requests over HTTP as well, in real time: once per
policy and seed, on a server of its own, from a client on the last core. Results have the points
`simulated` and `live`; in those of `live`, latencies are the client's, from when a request was due.

Exit codes: 0 done, 2 a policy, workload, profile or parameter cannot be used.")]
pub(crate) struct SimulateArgs {
    /// A policy, [NAME=]POLICY[{SETTINGS}]; repeat the option for more
    #[arg(long = "policy", value_name = "P", required = true)]
    pub(super) policies: Vec<Named>,
    /// The arrivals: a spec or a JSON file
    #[arg(long, value_name = "W")]
    pub(super) workload: String,
    /// Profile with the latencies, of any machine
    #[arg(long, value_name = "FILE")]
    pub(super) profile: PathBuf,
    /// Configuration whose first pool is simulated [default: the apps that an imported profile
    /// brings, otherwise as for `serve`]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder of models; overrides every app's zoo
    #[arg(long, value_name = "DIR")]
    pub(super) zoo: Option<PathBuf>,
    /// Folder of policies; overrides policies.dir
    #[arg(long = "policies", value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Number of workers; kinds are assigned round-robin
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) workers: Option<u32>,
    /// Virtual seconds in which requests arrive; by default the length of the workload's longest
    /// trace, or 60 without a trace
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(super) seconds: Option<f64>,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Runs per policy, with seeds that follow each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(super) seeds: u64,
    /// A parameter and its values
    #[arg(long, value_name = "NAME=VALUES")]
    pub(super) sweep: Option<Axis>,
    /// Service times of batches: profiled, percentiles, normal:MEAN,CV, log-normal:MEAN,CV or
    /// exponential:MEAN, with means as shares of the profile's latency
    #[arg(long, value_name = "LAW", default_value = "profiled")]
    pub(super) service: Service,
    /// Time of a batch to its worker, and of its results back, each: as on a server, where messages
    /// and turns of the scheduler take time
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=60_000_000))]
    pub(super) link_us: u64,
    /// Time of a request to the server and of its answer back, together; latencies are the client's,
    /// and the server knows nothing of it
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=60_000_000))]
    pub(super) wire_us: u64,
    /// Latencies that policies plan with: p50, p95 or p99
    #[arg(long, value_name = "P", default_value = "p95", value_parser = words::percentile)]
    pub(super) percentile: PercentileName,
    /// Treatment of requests that cannot be answered in time: serve, drop, last or shed
    /// [default: as each app is configured; serve for the apps of an imported profile]
    #[arg(long, value_name = "HOW", value_parser = words::late)]
    pub(super) late: Option<Late>,
    /// Latencies that predictions rest on: observed or profiled [default: as configured]
    #[arg(long, value_name = "WHICH", value_parser = words::latencies)]
    pub(super) latencies: Option<LatencySource>,
    /// Longest call of a policy for one window, in milliseconds: 1,000,000 instructions each
    /// [default: as configured]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) window_budget_ms: Option<u64>,
    /// Start without resident models
    #[arg(long)]
    pub(super) cold: bool,
    /// Recorded votes of neighbours, a JSON file; otherwise votes are drawn from the confusion matrix
    /// of each app's SneakPeek model
    #[arg(long, value_name = "FILE")]
    pub(super) votes: Option<PathBuf>,
    /// Number of first requests that metrics of requests leave out, as a warm-up
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) skip_first: u64,
    /// Write all results as JSON; `-`: to stdout, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write a page of plots, DIR/index.html; it needs no network
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    /// Write a figure, as SVG: late requests and accuracy of each policy, along the sweep if there is
    /// one
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
    /// Print the differences of every other policy from this one, seed by seed, and which of them
    /// are significant; needs 3 --seeds or more
    #[arg(long, value_name = "NAME")]
    pub(super) against: Option<String>,
    /// Serve the same arrivals as well, with the configuration of --config. `stand-in`: workers compute
    /// nothing and take the profile's time; `models`: they run the zoo's models, one thread per core
    #[arg(long, value_name = "WORKERS", value_enum, requires = "config",
          conflicts_with_all = ["sweep", "report", "plot", "against", "record", "cold"])]
    pub(super) live: Option<LiveWorkers>,
    /// Record the windows and plans of the run for `replay`; takes one policy and one seed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sweep", "seeds"])]
    pub(super) record: Option<PathBuf>,
}

// === impl SimulateArgs ===

impl SimulateArgs {
    /// Checks options that depend on each other, and the files that will be written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.record.is_some() && self.policies.len() > 1 {
            return Err(Failure::input("--record: takes one --policy"));
        }
        self.check_baseline()?;
        self.check_live()?;
        let json = self.json.as_deref().filter(|file| *file != Path::new("-"));
        let files = [
            ("--json", json),
            ("--plot", self.plot.as_deref()),
            ("--record", self.record.as_deref()),
        ];
        for (option, file) in files {
            if let Some(file) = file {
                check_file(option, file, Folders::Exist)?;
            }
        }
        match &self.report {
            Some(folder) => check_folder("--report", folder),
            None => Ok(()),
        }
    }

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

    /// Checks that the server can do as the simulation.
    fn check_live(&self) -> Result<(), Failure> {
        if self.live == Some(LiveWorkers::StandIn) && self.service != Service::profiled() {
            let reason = "--live stand-in: workers take the profile's time; leave out --service";
            return Err(Failure::input(reason));
        }
        let mut policies = self.policies.iter();
        let oracle = policies.find(|it| self.live.is_some() && it.policy.starts_with("oracle-"));
        match oracle {
            None => Ok(()),
            Some(oracle) => Err(Failure::input(format!(
                "--live: no server knows its arrivals; leave out --policy {}",
                oracle.name
            ))),
        }
    }

    /// The live runs, if they are asked for.
    pub(super) fn live(&self) -> Option<LiveOptions> {
        let (workers, config) = self.live.zip(self.config.clone())?;
        Some(LiveOptions::new(workers, config))
    }

    /// The inputs, for the library that runs them.
    pub(super) fn request(&self) -> Result<SimulationRequest, Failure> {
        Ok(SimulationRequest {
            policies: self.policies.clone(),
            workload: words::workload(&self.workload)?,
            workload_name: self.workload.clone(),
            profile: self.profile.clone(),
            config: self.config.clone(),
            bundle: Bundle::find(),
            zoo: self.zoo.clone(),
            folder: self.folder.clone(),
            workers: self.workers,
            seconds: self.seconds,
            seeds: (0..self.seeds).map(|i| self.seed.wrapping_add(i)).collect(),
            sweep: self.sweep.clone(),
            service: self.service.clone(),
            link: Micros(self.link_us),
            wire: Micros(self.wire_us),
            percentile: self.percentile,
            late: self.late,
            latencies: self.latencies,
            window_budget: self.window_budget_ms.map(Duration::from_millis),
            cold: self.cold,
            votes: self.votes.clone(),
            skip_first: self.skip_first,
        })
    }
}
