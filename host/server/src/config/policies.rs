//! `[policies]`: where policies come from.

use std::path::PathBuf;

use serde::Deserialize;

/// The folders of policies and of compiled code, and the length of the history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoliciesConfig {
    /// Folder that is watched for `NAME.wasm`.
    ///
    /// Path; default `"policies"`; example `"target/policies"`.
    pub dir: PathBuf,
    /// Folder for compiled code. Only this server may write to it, because the server runs that
    /// code.
    ///
    /// Path; default none: each process compiles anew; example `"/var/cache/switchyard"`.
    pub cache: Option<PathBuf>,
    /// Versions kept per pool for rollback.
    ///
    /// Integer, 1 to 1024; default `8`; example `4`.
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
