//! The `switchyard` binary: parses arguments, calls the library.

use std::process::ExitCode;

use clap::Parser;
use switchyard::commands::Cli;
use switchyard_executor::tally::Tally;

/// The system's allocator; `switchyard profile` has it count what a batch takes.
#[global_allocator]
static ALLOCATOR: Tally = Tally;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // SAFETY: `main` has started no thread.
    unsafe { cli.run() }
}
