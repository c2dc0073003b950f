//! The command `switchyard`.
//!
//! - [`commands`]: one file per command; each calls the libraries
//! - [`demo`]: a server, real requests, and policies that are swapped under load
//! - [`live`]: the arrivals of a simulation, served
//! - [`overload`]: goodput past capacity
//! - [`probe`]: whether a server answers
//! - [`quality`]: quality of a model on labelled rows
//!
//! This is the only crate that links the policies' generators (`plugins/*/prepare`) and the trainers.

#![forbid(unsafe_code)]

mod commands;
mod demo;
mod live;
mod overload;
mod probe;
mod quality;

use std::process::ExitCode;

use clap::Parser;
use switchyard_executor::allocator::{self, CountingAllocator};

use crate::commands::Cli;

/// The system's allocator, which counts: `switchyard profile` reports the memory of a batch.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    allocator::keep_freed();
    Cli::parse().run()
}
