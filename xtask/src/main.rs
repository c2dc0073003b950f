//! The task runner: build, test, measure and start this repository, by hand or in CI.
//!
//! - [`plugins`]: policies to WebAssembly components; the compiler and the encoder are those of
//!   `switchyard_kit`, which the `switchyard` command has too.
//! - [`suite`]: all checks, with [`tidy`].
//! - [`launch`]: the demo and the server, built and started.
//! - [`mod@bench`]: the benches, their page, and counted instructions.
//! - [`paper`]: the papers' figures, published and measured values.
//! - [`mod@protobuf`]: the types of the proto files.
//! - [`models`]: exported models, from `switchyard add` to the first answer.
//! - [`etcd`]: workers and schedulers on a real etcd.
//! - [`tritons`]: a scheduler over real Triton servers.
//! - [`dashboard`]: the page of the admin port in a browser.
//! - [`package`]: a tarball, a Debian package and an image, and their test on a bare system.
//! - [`python`]: the Python module, tested and as a wheel.
//! - [`fuzz`]: the fuzz targets of the suite, for longer.
//! - [`cuda`]: the program for NVIDIA GPUs, and its tests.
//!
//! Below them: [`workspace`], the packages as cargo lists them. Progress goes to stderr, results to stdout.

#![forbid(unsafe_code)]

mod bench;
mod cuda;
mod dashboard;
mod etcd;
mod files;
mod fuzz;
mod launch;
mod models;
mod monitoring;
mod package;
mod page;
mod pages;
mod paper;
mod plugins;
mod protobuf;
mod python;
mod suite;
mod tidy;
mod tritons;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::cuda::CudaArgs;
use crate::dashboard::DashboardArgs;
use crate::fuzz::FuzzArgs;
use crate::launch::LaunchArgs;
use crate::models::ModelsArgs;
use crate::monitoring::MonitoringArgs;
use crate::package::PackageArgs;
use crate::paper::PaperArgs;
use crate::python::WheelArgs;
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
    /// Run all checks: format, lints, components, tests, docs, licences, a demo run
    Test,
    /// Write the generated parts of pages anew: settings, contract, crates
    Pages,
    /// Make the Rust types of host/protocol/proto anew
    Protobuf,
    /// Check the rules of the house: files, modules, words, spelling, generated pages
    Tidy,
    /// Run figures of the papers; print published and measured values
    Paper(PaperArgs),
    /// Run the benches; put their tables into docs/performance.md
    Bench(BenchArgs),
    /// Export models in Python; add, serve and compare each with onnxruntime (installs 3 GB)
    Models(ModelsArgs),
    /// Run a Prometheus on a real server: rules, dashboard, and alerts fired by injected faults
    Monitoring(MonitoringArgs),
    /// Test workers and schedulers on a real etcd (fetches Debian's package)
    Etcd,
    /// Test a scheduler over real Triton servers and workers that are killed (fetches Triton, 100 MB)
    Tritons,
    /// Drive the dashboard of a real server in a headless Chromium; take its screenshots
    Dashboard(DashboardArgs),
    /// Make a tarball and a Debian package; install and serve on a bare Debian with --check
    Package(PackageArgs),
    /// Test the Python module against the program
    Python,
    /// Make a wheel with module, program, policies and models; install it and run its first commands
    Wheel(WheelArgs),
    /// Read mutations of real files with every reader of outside data; print the executions
    Fuzz(FuzzArgs),
    /// Build for NVIDIA GPUs; install CUDA's compiler if the machine has none
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
        Command::Protobuf => protobuf::write(&workspace),
        Command::Tidy => tidy::check(&workspace),
        Command::Paper(args) => paper::run(&workspace, &args),
        Command::Bench(args) => bench::run(&workspace, &args),
        Command::Models(args) => models::run(&workspace, &args),
        Command::Monitoring(args) => monitoring::run(&workspace, &args),
        Command::Etcd => etcd::run(&workspace),
        Command::Tritons => tritons::run(&workspace),
        Command::Dashboard(args) => dashboard::run(&workspace, &args),
        Command::Package(args) => package::run(&workspace, &args),
        Command::Python => suite::python(&workspace),
        Command::Wheel(args) => python::run(&workspace, &args),
        Command::Fuzz(args) => fuzz::run(&workspace, &args),
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
