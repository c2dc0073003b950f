//! `[policies]`: where policies come from.

use std::path::PathBuf;

use serde::Deserialize;

/// The folder of policies and what is kept of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoliciesConfig {
    /// Folder that is watched for `NAME.wasm`.
    pub dir: PathBuf,
    /// Folder for compiled code; absent: compiled anew by each process.
    pub cache: Option<PathBuf>,
    /// Versions kept per pool for rollback.
    pub history: usize,
}

// === impl PoliciesConfig ===

impl Default for PoliciesConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("policies"),
            cache: None,
            history: 8,
        }
    }
}
