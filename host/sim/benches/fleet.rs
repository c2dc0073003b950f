//! The cost of a window by the number of workers, and simulations of large pools whose workers die and
//! return.
//!
//! `cargo bench -p switchyard-sim --bench fleet`; `-- --quick` for a tenth of the work, `-- windows`,
//! `-- deaths`, `-- together` or `-- saturation` for one table, `-- --plot=FILE.svg` for a plot of the
//! saturation. Prints medians of interleaved runs.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "throughput/clock.rs"]
#[allow(dead_code)] // This bench reads processor time only.
mod clock;
#[path = "fleet/deaths.rs"]
mod deaths;
#[path = "fleet/network.rs"]
mod network;
#[path = "fleet/policies.rs"]
mod policies;
#[path = "fleet/pool.rs"]
mod pool;
#[path = "fleet/saturation.rs"]
mod saturation;
#[path = "throughput/test_bed.rs"]
mod test_bed;
#[path = "fleet/together.rs"]
mod together;
#[path = "fleet/windows.rs"]
mod windows;

use std::path::Path;

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_asked = |name| only.as_ref().is_none_or(|only| only == name);
    if is_asked("windows") {
        windows::print(quick);
    }
    if is_asked("deaths") {
        deaths::print(quick);
    }
    if is_asked("together") {
        together::print(quick);
    }
    if is_asked("saturation") {
        let plot = std::env::args().find_map(|arg| Some(arg.strip_prefix("--plot=")?.to_owned()));
        saturation::print(quick, plot.as_deref().map(Path::new));
    }
}
