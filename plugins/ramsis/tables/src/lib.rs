//! The tables of RAMSIS, made by `switchyard prepare ramsis` and read by the policy `ramsis`.
//!
//! A [`Set`] is a folder: `index.json`, which people can read, and one small binary file per load.
//! All tables of a set share variants, workers, service-level objective and slack grid; they
//! differ in the load they were made for. [`Table::action`] is the policy's whole decision.
//!
//! No input or output happens here: texts and bytes come in, texts and bytes go out. It compiles
//! for wasm.

mod error;
mod grid;
mod set;
mod table;

pub use error::{Reason, TablesError};
pub use grid::SlackGrid;
pub use set::{Arrivals, Balancing, Batching, FORMAT, INDEX_FILE, Objective, Set, TableEntry};
pub use table::{Action, Table};
