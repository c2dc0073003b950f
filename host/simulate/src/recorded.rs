//! A recording as rows.

use std::path::Path;

use switchyard_policy::recording::{Frame, Reader};
use switchyard_sim::workload::Recorded;

use crate::arrivals::RecordedArrivals;
use crate::error::InputError;
use crate::observed::WindowRows;
use crate::tables::{ColumnTable, Values};

/// Windows and requests of a recording.
pub struct RecordedRows {
    /// A row per window, after the number of its run, from 1 on.
    pub windows: ColumnTable,
    /// The requests that windows show, ascending.
    pub requests: Vec<Recorded>,
    /// Windows that the recorder left out.
    pub missing: u64,
}

// === impl RecordedRows ===

impl RecordedRows {
    /// Reads a recording up to a block that is not complete.
    ///
    /// # Errors
    /// The file cannot be read or is damaged; names the byte.
    pub fn read(file: &Path) -> Result<Self, InputError> {
        let (mut arrivals, mut windows) = (RecordedArrivals::default(), WindowRows::default());
        let (mut runs, mut run, mut missing) = (Vec::new(), 0, 0);
        for frame in Reader::open(file).map_err(InputError::new)? {
            let frame = frame.map_err(InputError::new)?;
            arrivals.take(&frame);
            match frame {
                Frame::Start(_) => run += 1,
                Frame::Decision(decision) => {
                    windows.add(&decision);
                    runs.push(run);
                }
                Frame::Gap(count) => missing += count,
                Frame::Policy(_) | Frame::Catalog(_) => {}
            }
        }
        let before = ColumnTable::default().with("run", Values::Whole(runs));
        Ok(Self {
            windows: windows.finish(before),
            requests: arrivals.finish(),
            missing,
        })
    }
}
