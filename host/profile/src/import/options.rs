//! Facts that layouts lack.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Facts that the layouts lack, from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// The app that the variants belong to, unless the layout names one.
    pub app: String,
    /// The kind of worker it was measured on, unless the layout names one.
    pub kind: String,
    /// Deadline of the app's requests, in microseconds.
    pub slo_us: u64,
    /// Table of accuracies. By default it is looked for next to the latencies.
    pub accuracy: Option<PathBuf>,
    /// The variants to take; empty: all.
    pub variants: Vec<String>,
    /// The command, for [`Provenance::command`](crate::Provenance::command).
    pub command: String,
    /// Versions, for [`Provenance::versions`](crate::Provenance::versions).
    pub versions: BTreeMap<String, String>,
}
