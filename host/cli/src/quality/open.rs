//! The reader for a file, by its ending.

use std::ffi::OsStr;
use std::path::Path;

use switchyard_models::card::{AppCard, QualityMetric};

use super::fault::DataFault;
use super::table::{Table, Wanted};
use super::{csv, images, jsonl, npz};

/// Default name of the labels.
pub(crate) const LABEL: &str = "label";

/// Reads the labelled rows of `file` for an app.
///
/// # Errors
/// The file's kind is unknown or it is damaged, has no rows, or a row does not fit the app's inputs;
/// or the app's task has no metric.
pub(crate) fn open(file: &Path, label: &str, app: &AppCard) -> Result<Table, DataFault> {
    let wanted = Wanted { file, app, label };
    if QualityMetric::of(app.task).is_none() {
        let reason = format!(
            "app `{}` has task \"{}\", whose answers have no general metric: measure it where its \
             outputs have a meaning, and state the result with --quality",
            app.name,
            app.task.name()
        );
        return Err(wanted.fault(reason));
    }
    let ending = file.extension().and_then(OsStr::to_str);
    let table = match ending.map(str::to_lowercase).as_deref() {
        _ if file.is_dir() => images::read(wanted)?,
        Some("csv") => csv::read(wanted)?,
        Some("jsonl") => jsonl::read(wanted)?,
        Some("npz") => npz::read(wanted)?,
        _ => {
            let reason = "must be a .csv, .jsonl or .npz file, or a folder of images with a folder \
                          per class";
            return Err(wanted.fault(reason));
        }
    };
    match table.rows() {
        0 => Err(wanted.fault("has no rows")),
        _ => Ok(table),
    }
}
