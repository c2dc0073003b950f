//! The `switchyard` binary: parses arguments, calls the library.

use std::process::ExitCode;

use clap::Parser;
use switchyard::commands::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // SAFETY: `main` has started no thread.
    unsafe { cli.run() }
}
