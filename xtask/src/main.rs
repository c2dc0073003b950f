//! The build house: everything a person or a CI runner does with this repository.
//!
//! - [`plugins`]: policies to WebAssembly components; the compiler and the encoder are those of
//!   `switchyard_kit`, which the `switchyard` command has too.
//! - [`suite`]: everything that must pass, [`tidy`] among it.
//! - [`launch`]: the demo and the server, built and started.
//! - [`mod@bench`]: the benches, their page, and instructions that are counted.
//! - [`paper`]: the papers' figures, published beside measured.
//! - [`cuda`]: the same program for NVIDIA's cards, and what a machine with one runs.
//!
//! Below them: [`workspace`] (what cargo knows). Progress goes to stderr, results to stdout.

#![forbid(unsafe_code)]

mod bench;
mod cuda;
mod files;
mod launch;
mod pages;
mod paper;
mod plugins;
mod suite;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::cuda::CudaArgs;
use crate::launch::LaunchArgs;
use crate::paper::PaperArgs;
use crate::workspace::Workspace;

/// Builds, tests and starts Switchyard.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build everything, drive the server for a few seconds while swapping its policy, print a table
    Demo(LaunchArgs),
    /// Build everything and leave the server running on the shipped demo configuration
    Serve(LaunchArgs),
    /// Everything that must pass: format, lints, components, tests, docs, licences, a demo run
    Test,
    /// Write the generated parts of pages anew: settings, contract, crates
    Pages,
    /// Check the rules of the house: files, modules, words, spelling, generated pages
    Tidy,
    /// Run figures of the papers; print what was published beside what is measured here
    Paper(PaperArgs),
    /// Run the benches; put their tables into docs/performance.md
    Bench(BenchArgs),
    /// Build for NVIDIA's cards; bring CUDA's compiler where the machine has none
    Cuda(CudaArgs),
    /// Build every policy component into target/policies
    Plugins {
        /// Also build the components that only tests use, into target/policies-test
        #[arg(long)]
        with_guests: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    match command {
        Command::Demo(args) => launch::demo(&workspace, &args),
        Command::Serve(args) => launch::serve(&workspace, &args),
        Command::Test => suite::run(&workspace),
        Command::Pages => pages::write(&workspace),
        Command::Tidy => tidy::check(&workspace),
        Command::Paper(args) => paper::run(&workspace, &args),
        Command::Bench(args) => bench::run(&workspace, &args),
        Command::Cuda(args) => cuda::run(&workspace, &args),
        Command::Plugins { with_guests } => {
            let guests = if with_guests {
                plugins::Guests::Include
            } else {
                plugins::Guests::Leave
            };
            let built = plugins::build(&workspace, guests)?;
            print!("{}", plugins::table(&built));
            Ok(())
        }
    }
}
