//! `switchyard replay`: recorded windows before another policy.

mod arrivals;
mod case;
mod challenger;
mod engine;
mod output;

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use switchyard_policy::recording::{CutOff, Frame, Reader};

use self::challenger::Challenger;
use self::engine::Engine;
use super::simulate::contenders::Named;
use super::{Failure, read_config};

/// Put recorded windows before a policy and show how its plans differ from the recorded ones
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard replay main.rec --policy fcfs
  switchyard replay main.rec --policy my-policy.wasm --settings 'tau = 6' --limit 3
  switchyard replay main.rec --policy sneakpeek --json > differences.json
  switchyard replay main.rec --policy my-policy --window 17 \
      --test tests/window_17.rs --type my_policy::MyPolicy
  switchyard replay main.rec --arrivals arrivals.json
  switchyard simulate --policy sneakpeek --workload trace:arrivals.json \\
      --profile profiles/here.json

A recording comes from `record` in a [[pool]] of the configuration, or from `switchyard simulate
--record`. A policy is NAME, for NAME.wasm in the folder of policies, a path that ends in .wasm, or
`edf`, the native fallback; settings may follow as a TOML table, 'sneakpeek{tau = 6}'. It is given
every window in order, on fuel, with the recorded catalog, seed and limits. The policy that was
recorded, by its content, also gets the recorded settings unless there are others: then every plan
should be the recorded one.

Each window is a question of its own: what the policy would do is compared, not done, and the next
window is the recorded one again. A request's utility is the accuracy expected from its evidence
times what its lateness leaves of it when the plan is carried out as the profile says; requests
that a plan leaves waiting have none yet.

--window makes a unit test of one window: FILE.rs, which runs with `cargo test`, and FILE.json beside
it. A policy with a memory is asked without it there.

Exit codes: 0 done, 2 the recording or the policy cannot be used.")]
pub(super) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The policy, POLICY[{SETTINGS}]
    #[arg(long, value_name = "P", required_unless_present = "arrivals")]
    policy: Option<Named>,
    /// The policy's settings, as TOML, field by field before those in NAME.toml beside it
    #[arg(long, value_name = "TOML", requires = "policy")]
    settings: Option<String>,
    /// Configuration that says where policies are; without one, the shipped demo configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of policies, in the place of policies.dir
    #[arg(long = "policies", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Windows that differ to show; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long, requires = "policy")]
    json: bool,
    /// A window that becomes a unit test; needs --test and --type
    #[arg(long, value_name = "N", requires_all = ["policy", "test", "of"])]
    window: Option<u64>,
    /// The run of the recording that it is in
    #[arg(long, value_name = "N", default_value_t = 1, requires = "window")]
    run: u64,
    /// Write the test, with the window beside it as JSON
    #[arg(long, value_name = "FILE.rs", requires = "window")]
    test: Option<PathBuf>,
    /// The type that implements the policy, such as my_policy::MyPolicy
    #[arg(long = "type", id = "of", value_name = "PATH", requires = "window")]
    of: Option<String>,
    /// Write the requests that the windows show, as a trace for `simulate`
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
}

/// Replays and prints.
pub(super) fn run(args: &ReplayArgs) -> Result<(), Failure> {
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

/// Reads a recording to its end, with a bar; says what is missing there.
fn for_each_frame(
    trace: &Path,
    mut take: impl FnMut(Frame) -> Result<(), Failure>,
) -> Result<Option<CutOff>, Failure> {
    let mut reader = Reader::open(trace).map_err(Failure::input)?;
    let length = std::fs::metadata(trace).map_or(0, |file| file.len());
    let bar = ProgressBar::new(length).with_style(style());
    let mut offset = 0;
    while let Some(frame) = reader.next() {
        let frame = frame.map_err(Failure::input)?;
        if reader.offset() > offset {
            offset = reader.offset();
            bar.set_position(offset);
        }
        take(frame)?;
    }
    bar.finish_and_clear();
    let cut_off = reader.cut_off();
    if let Some(cut_off) = cut_off {
        let file = trace.display();
        eprintln!(
            "{file}: the last block, at byte {}, is not whole: its {} bytes are left out",
            cut_off.offset, cut_off.bytes
        );
    }
    Ok(cut_off)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("replaying {wide_bar} {bytes}/{total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
