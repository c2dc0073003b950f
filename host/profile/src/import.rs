//! Profiles from public layouts.
//!
//! Three layouts are recognised:
//! - the public artifact of RAMSIS: a folder with `MODEL/MODEL_bsize-B_profile.json`, each a list
//!   of seconds, and a table of accuracies;
//! - a summary of it in one JSON file, with `latency_ms_by_batch`;
//! - a table of comma-separated values, one line per variant and batch.
//!
//! Imported profiles are for simulations. No server uses one: its machine equals no real machine.

use std::path::Path;

mod accuracy;
mod artifact;
mod assemble;
mod csv_profile;
mod csv_table;
mod error;
mod layout;
mod options;
mod rows;
mod summary;

pub use error::ImportError;
pub use layout::ImportLayout;
pub use options::ImportOptions;

use self::assemble::assemble;
use self::layout::has_extension;
use crate::schema::ProfileFile;

/// Reads a public layout.
///
/// # Errors
/// The layout is unknown, or a file, line or field of it is at fault; the message names it.
pub fn import(
    path: &Path,
    options: &ImportOptions,
) -> Result<(ProfileFile, ImportLayout), ImportError> {
    let (layout, table) = if path.is_dir() {
        let accuracy = options.accuracy.as_deref();
        (
            ImportLayout::RamsisArtifact,
            artifact::read(path, accuracy)?,
        )
    } else if has_extension(path, "csv") {
        (ImportLayout::Csv, csv_profile::read(path)?)
    } else if has_extension(path, "json") {
        (ImportLayout::RamsisSummary, summary::read(path)?)
    } else {
        let reason = "neither a folder nor a .json or .csv file";
        return Err(ImportError::layout(path, reason));
    };
    let table = table.only(path, &options.variants)?.finished();
    Ok((assemble(path, &table, layout, options), layout))
}
