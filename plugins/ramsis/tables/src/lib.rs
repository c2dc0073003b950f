//! The tables of RAMSIS, written by `switchyard prepare ramsis` and read by the policy `ramsis`.
//!
//! A [`Set`] is a folder with `index.json` and one binary file per load. All tables of a set share
//! variants, workers, SLO and slack grid; they differ in the load. [`Table::action`] is the
//! policy's whole decision.
//!
//! No I/O: texts and bytes in, texts and bytes out. Compiles for WebAssembly.

#![forbid(unsafe_code)]

mod error;
mod grid;
mod set;
mod table;

pub use error::{Reason, TablesError};
pub use grid::SlackGrid;
pub use set::{Arrivals, Balancing, Batching, FORMAT, INDEX_FILE, Objective, Set, TableEntry};
pub use table::{Action, Table};
