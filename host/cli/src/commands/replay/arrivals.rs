//! `--arrivals`: the requests of a recording as a trace.

use std::path::Path;

use switchyard_sim::workload::Trace;
use switchyard_simulate::arrivals::RecordedArrivals;

use super::frames::for_each_frame;
use crate::commands::draft::write_file;
use crate::commands::failure::Failure;

/// Writes the requests of a recording.
pub(super) fn write(trace: &Path, file: &Path) -> Result<(), Failure> {
    let mut arrivals = RecordedArrivals::default();
    for_each_frame(trace, |frame| {
        arrivals.take(&frame);
        Ok(())
    })?;
    let requests = arrivals.finish();
    if requests.is_empty() {
        let trace = trace.display();
        return Err(Failure::input(format!(
            "{trace}: no window shows a request"
        )));
    }
    let trace = Trace {
        requests: Some(requests),
        ..Trace::default()
    };
    let unwritten =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", file.display()));
    let text = serde_json::to_vec(&trace).map_err(|error| unwritten(&error))?;
    write_file(file, text).map_err(|error| unwritten(&error))
}
