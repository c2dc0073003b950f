//! `switchyard replay`: recorded windows, decided by another policy.

mod arrivals;
mod case;
mod challenger;
mod engine;
mod frames;
mod output;
mod requests;
mod text;

use std::path::PathBuf;

use clap::Args;

use self::challenger::Challenger;
use self::engine::Engine;
use self::frames::for_each_frame;
use super::failure::Failure;
use super::output::{Folders, check_file};
use switchyard_simulate::named::Named;
use switchyard_simulate::shipped::read_config;

/// Run a policy on recorded windows and show the differences between its plans and the recorded ones
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard replay main.rec --policy fcfs
  switchyard replay main.rec --policy my-policy.wasm --settings 'tau = 6' --limit 3
  switchyard replay main.rec --policy sneakpeek --json > differences.json
  switchyard replay main.rec --policy my-policy --window 17 \\
      --test tests/window_17.rs --type my_policy::MyPolicy
  switchyard replay main.rec --arrivals arrivals.json
  switchyard simulate --policy sneakpeek --workload trace:arrivals.json \\
      --profile profiles/here.json

A recording comes from `record` in a [[pool]] of the configuration, or from `switchyard simulate
--record`. A policy is NAME (NAME.wasm in the folder of policies), a path that ends in .wasm, or
`edf`, the native fallback; settings may follow as a TOML table, 'sneakpeek{tau = 6}'. It gets
every window in order, on fuel, with the recorded catalog, seed and limits. The recorded policy,
identified by its content, also gets the recorded settings unless others are given: then every
plan should be the recorded one.

The policy's plan is compared and not carried out: the next window is again the recorded one. The
utility of a request is its expected accuracy, reduced by the penalty for its expected lateness,
both from profile and evidence; a request that a plan leaves waiting has none yet. The summary
counts each request once, in the first window in which the two plans treat it differently.

--window makes a unit test of one window: FILE.rs, which runs with `cargo test`, and FILE.json
next to it. The test gives the policy no memory of earlier windows.

Exit codes: 0 done, 2 the recording or the policy cannot be used.")]
pub(super) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The policy, POLICY[{SETTINGS}]
    #[arg(long, value_name = "P", required_unless_present = "arrivals")]
    policy: Option<Named>,
    /// The policy's settings, as TOML; override those in NAME.toml, field by field
    #[arg(long, value_name = "TOML", requires = "policy")]
    settings: Option<String>,
    /// Configuration with the folder of policies [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of policies; overrides policies.dir
    #[arg(long = "policies", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Most differing windows to show; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long, requires = "policy")]
    json: bool,
    /// Make a unit test of this window; needs --test and --type
    #[arg(long, value_name = "N", requires_all = ["policy", "test", "of"])]
    window: Option<u64>,
    /// The window's run in the recording
    #[arg(long, value_name = "N", default_value_t = 1, requires = "window")]
    run: u64,
    /// File of the test; the window is written next to it as JSON
    #[arg(long, value_name = "FILE.rs", requires = "window")]
    test: Option<PathBuf>,
    /// The type that implements the policy, such as my_policy::MyPolicy
    #[arg(long = "type", id = "of", value_name = "PATH", requires = "window")]
    of: Option<String>,
    /// Write the requests of the windows, as a trace for `simulate`
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
}

/// Replays and prints.
pub(super) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    for (option, file) in [("--arrivals", &args.arrivals), ("--test", &args.test)] {
        if let Some(file) = file {
            check_file(option, file, Folders::Exist)?;
        }
    }
    if let Some(test) = &args.test {
        check_file("--test", &case::data_file(test), Folders::Exist)?;
    }
    if let Some(file) = &args.arrivals {
        arrivals::write(&args.trace, file)?;
    }
    let Some(named) = &args.policy else {
        return Ok(());
    };
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => read_config(args.config.as_deref())?.policies.dir,
    };
    let challenger = Challenger::find(named, &folder, args.settings.as_deref())?;
    let mut engine = Engine::new(challenger, args.limit);
    if let Some(window) = args.window {
        engine.keep(args.run, window);
    }
    let cut_off = for_each_frame(&args.trace, |frame| engine.take(frame))?;
    let outcome = engine.conclude(cut_off)?;
    if let (Some(window), Some(file), Some(of)) = (args.window, &args.test, &args.of) {
        let kept = outcome.kept.as_ref().ok_or_else(|| {
            let trace = args.trace.display();
            Failure::input(format!(
                "{trace}: run {} has no window {window} that a policy was asked about",
                args.run
            ))
        })?;
        kept.write(file, of, &args.trace)?;
    }
    output::print(&args.trace, &outcome, args.json)
}
