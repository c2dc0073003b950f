//! The benches, and the page their tables are kept on.
//!
//! `docs/performance.md` is handwritten, with a marked part for each table; a bench writes its output,
//! the machine and the date between its marks. [`guard`] counts
//! instructions, which are the same on a busy machine, and is part of the suite.

mod guard;

use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

pub(crate) use self::guard::{Verdict, check};
use crate::page::Page;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;
use switchyard_kit::{cargo, shell};

/// Options of `bench`.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Benches to run; all of them when none is named
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,
    /// Shorter runs
    #[arg(long)]
    quick: bool,
    /// Another server in the race, such as triton=http://127.0.0.1:8100/v2/models/mlp/infer
    #[arg(long, value_name = "NAME=URL")]
    peer: Vec<String>,
    /// Print, and leave docs/performance.md and docs/figures as they are
    #[arg(long)]
    dry_run: bool,
    /// Only count instructions and compare them with tests/instructions.toml, as the suite does
    #[arg(long, conflicts_with_all = ["names", "quick", "peer", "dry_run"])]
    guard: bool,
    /// With --guard: write the counts found into tests/instructions.toml
    #[arg(long, requires = "guard")]
    update: bool,
    /// Cargo profile; `dev` compiles sooner but is slower than the shipped program
    #[arg(long, default_value = "bench")]
    profile: String,
}

/// In the order of the page.
const BENCHES: [&str; 17] = [
    "race",
    "rivals",
    "grpc",
    "traces",
    "footprint",
    "window",
    "layout",
    "router",
    "swap",
    "engines",
    "minilm",
    "zoo",
    "texts",
    "throughput",
    "simulated",
    "link",
    "fleet",
];

fn names() -> impl clap::builder::TypedValueParser<Value = String> {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(BENCHES).map(|name| name)
}

/// Runs benches and puts their tables on the page.
///
/// # Errors
/// A bench does not build or fails, or the page cannot be written.
pub(crate) fn run(workspace: &Workspace, args: &BenchArgs) -> Result<()> {
    if args.guard {
        return guard::run(workspace, args.update);
    }
    plugins::build(workspace, Guests::Include)?;
    let mut page = Page::open(&workspace.root.join("docs/performance.md"))?;
    let wanted =
        |bench: &&str| args.names.is_empty() || args.names.iter().any(|name| name == bench);
    let wanted: Vec<_> = BENCHES.into_iter().filter(wanted).collect();
    // All at once, so that a process that a bench leaves running does not compete with the compiler.
    let mut build = cargo_bench(workspace, args);
    build.args(wanted.iter().flat_map(|bench| ["--bench", bench]));
    shell::run(build.arg("--no-run"))?;
    for bench in wanted {
        let mut command = command(workspace, args, bench);
        let typed = shell::line(&command);
        eprintln!("== {typed}");
        let output = command
            .stderr(std::process::Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{typed}`"))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{printed}");
        if !output.status.success() {
            bail!("{}: `{typed}`", output.status);
        }
        if !args.dry_run && page.has(bench) {
            // Files in the page are named as from the root.
            let root = format!("{}/", workspace.root.display());
            page.put(bench, &typed.replace(&root, ""), &printed)?;
            page.save()?;
        }
    }
    Ok(())
}

/// Over the whole workspace: a single package selects other features of its dependencies, which would
/// be built again.
fn cargo_bench(workspace: &Workspace, args: &BenchArgs) -> Command {
    let mut command = cargo::host(&workspace.root);
    command.args(["bench", "--workspace"]);
    if args.profile != "bench" {
        command.args(["--profile", &args.profile]);
    }
    command
}

fn command(workspace: &Workspace, args: &BenchArgs, bench: &str) -> Command {
    let mut command = cargo_bench(workspace, args);
    command.args(["--bench", bench]);
    let peers = args.peer.iter().filter(|_| bench == "race");
    let mut more: Vec<String> = peers
        .flat_map(|peer| ["--peer".to_owned(), peer.clone()])
        .collect();
    if args.quick {
        more.push("--quick".to_owned());
    }
    if bench == "fleet" && !args.dry_run {
        let plot = workspace.root.join("docs/figures/saturation.svg");
        more.push(format!("--plot={}", plot.display()));
    }
    if !more.is_empty() {
        command.arg("--").args(more);
    }
    command
}
