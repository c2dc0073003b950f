//! `switchyard overload`: goodput past capacity, under each policy.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, value_parser};

use super::draft::write_file;
use super::failure::Failure;
use super::numbers::positive;
use super::output::{Folders, check_file};
use super::print;
use crate::overload::{OverloadOptions, run as measure};

/// Measure answers in time per second past capacity, simulated and over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard overload
  switchyard overload --policy edf --policy fcfs --simulated
  switchyard overload --live --connections 8,768,3500 --late serve

The app `heart` on one worker, with deadlines of 20, 50, 150 and 500 ms in equal shares. Simulated:
each policy at multiples of the load of its peak. Live: a server of its own, with connections that
send again once they are answered, in rounds; the last row has the first number of connections after
the others.

Exit code 1 if a point has less than --least of the peak at lower loads. Live also: if the first
number of connections gets less than 70 % of before at the end, a health check takes more than
50 ms, or memory exceeds that of few connections, 32 MiB and 32 KiB per connection by 10 %.")]
pub(super) struct OverloadArgs {
    /// Folder of policies
    #[arg(long, value_name = "DIR", default_value = "target/policies")]
    policies: PathBuf,
    /// Folder of models
    #[arg(long, value_name = "DIR", default_value = "models/zoo")]
    zoo: PathBuf,
    /// Profile of this machine [default: measured now]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// A policy; repeat the option for more. `edf`: the native fallback
    #[arg(long = "policy", value_name = "NAME", default_values = ["edf", "fcfs", "sneakpeek", "stability", "ramsis", "mael"])]
    names: Vec<String>,
    /// Treatment of requests that cannot be answered in time: serve, drop, last or shed
    #[arg(long, value_name = "HOW", default_value = "shed")]
    late: String,
    /// Multiples of the load at the peak
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1.0, 1.2, 2.0, 5.0, 10.0], value_parser = positive)]
    loads: Vec<f64>,
    /// Connections
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [8, 768, 3500])]
    connections: Vec<usize>,
    /// Seconds for each point
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = positive)]
    seconds: f64,
    /// Live: measurements of each point; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Least share of the peak
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = positive)]
    least: f64,
    /// Only in virtual time
    #[arg(long, conflicts_with = "live")]
    simulated: bool,
    /// Only over HTTP
    #[arg(long)]
    live: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the curves as one figure in SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Time for a profile.
const BUDGET: Duration = Duration::from_secs(30);

/// Runs and prints; an error if a point is below the least share.
pub(super) fn run(args: &OverloadArgs) -> Result<(), Failure> {
    if let Some(file) = &args.plot {
        check_file("--plot", file, Folders::Made)?;
    }
    let (mut loads, mut connections) = (args.loads.clone(), args.connections.clone());
    loads.sort_by(f64::total_cmp);
    connections.sort_unstable();
    let options = OverloadOptions {
        policies_dir: args.policies.clone(),
        zoo: args.zoo.clone(),
        profile: args.profile.clone(),
        budget: BUDGET,
        policies: args.names.clone(),
        late: args.late.clone(),
        loads,
        connections,
        seconds: args.seconds,
        rounds: args.rounds,
        simulates: !args.live,
        serves: !args.simulated,
    };
    let report = measure(&options)?;
    match args.json {
        true => print::json(&report)?,
        false => print::line(&report)?,
    }
    if let Some(file) = &args.plot {
        let folder = file.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)
            .and_then(|()| write_file(file, report.figure()))
            .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
        print::note(format_args!("plot: {}", file.display()));
    }
    let low = report.shortfalls(args.least);
    match low.is_empty() {
        true => Ok(()),
        false => Err(Failure::check(low.join("; "))),
    }
}
