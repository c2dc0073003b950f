//! Options of `switchyard arena`.

use std::path::{Path, PathBuf};

use clap::{Args, value_parser};
use switchyard_simulate::named::Named;

/// Seeds, and the share of a run's length, of `--quick`.
const QUICK_SEEDS: u64 = 3;
const QUICK_SHARE: f64 = 0.25;

/// Compare policies on every workload of every test bed, as a scoreboard
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard arena --quick
  switchyard arena mine.wasm
  switchyard arena mine.wasm --policy fcfs --policy edf --workload day --workload 'gamma:1,0.1'
  switchyard arena 'cautious=yardmaster{margin = 0.2}' --test-bed overload --test-bed mine.toml

ENTRANT is a policy that competes with the shipped ones: a path that ends in .wasm, or a shipped
policy with a name and settings, as for `simulate`. Without any the shipped ones compete alone.

Workloads are shapes; their rates are scaled to the load of the test bed. Shipped: steady
(Poisson), bursty (gamma gaps), phases (two-phase Markov), flood (one app floods), herd
(simultaneous arrivals), day (a day's trace). Others: as for `simulate`, such as trace:FILE.

Test beds: reference (two like workers at 0.6 of their capacity), unlike (MAEL's board at 0.6),
overload (reference at 1.5). A file has load and seconds; optionally title, config, profile,
workers, deadline (times each app's SLO) and service (as `simulate --service`); its paths are
relative to it.

Score: 100 times the mean over the cells, a workload on a test bed each, of a policy's utility over
the best utility of the cell. A cell that a policy cannot run counts 0. All but `measured` in
results.json repeats bit for bit.

Exit codes: 0 done, 2 a policy, workload, test bed or folder cannot be used.")]
pub(crate) struct ArenaArgs {
    /// Policies that compete with the shipped ones, [NAME=]POLICY[{SETTINGS}]
    #[arg(value_name = "ENTRANT")]
    pub(super) entrants: Vec<Named>,
    /// Shipped policies, instead of all; repeat the option for more. `edf`: the native fallback
    #[arg(long = "policy", value_name = "P")]
    pub(super) policies: Vec<Named>,
    /// Folder of policies [default: the bundled ones]
    #[arg(long = "policies", value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// A workload, instead of the shipped six; repeat the option for more
    #[arg(long = "workload", value_name = "W")]
    pub(super) workloads: Vec<String>,
    /// A test bed: reference, unlike, overload or FILE.toml; repeat the option for more [default: the
    /// three]
    #[arg(long = "test-bed", value_name = "B")]
    pub(super) test_beds: Vec<String>,
    /// Runs of each policy in each cell, with seeds from 1 [default: 5; with --quick 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000))]
    pub(super) seeds: Option<u64>,
    /// A quarter of the length of each run
    #[arg(long)]
    pub(super) quick: bool,
    /// Folder for index.html, scoreboard.md and results.json
    #[arg(long, value_name = "DIR", default_value = "target/arena")]
    pub(super) out: PathBuf,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

// === impl ArenaArgs ===

impl ArenaArgs {
    /// One run each.
    pub(super) fn seed_list(&self) -> Vec<u64> {
        let few = if self.quick { QUICK_SEEDS } else { 5 };
        (1..=self.seeds.unwrap_or(few)).collect()
    }

    /// The part of a test bed's seconds that is simulated.
    pub(super) fn share(&self) -> f64 {
        match self.quick {
            true => QUICK_SHARE,
            false => 1.0,
        }
    }

    /// The command line.
    pub(super) fn command(&self) -> String {
        let words = std::env::args().skip(1).collect::<Vec<_>>();
        format!("switchyard {}", words.join(" "))
    }

    /// The name of a path's policy is that of the file, unless it was named.
    pub(super) fn entrant(named: &Named) -> Named {
        let stem = Path::new(&named.policy).file_stem();
        match stem.and_then(|stem| stem.to_str()) {
            Some(stem) if named.name == named.policy && named.policy.ends_with(".wasm") => Named {
                name: stem.to_owned(),
                ..named.clone()
            },
            _ => named.clone(),
        }
    }
}
