//! `[policies]`: where policies come from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchyard_policy::history::ContentHash;

/// The folders of policies and of compiled code, the time to compile, and the length of the history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoliciesConfig {
    /// Folder that is watched for `NAME.wasm`.
    ///
    /// Path; default `"policies"`; example `"target/policies"`.
    pub dir: PathBuf,
    /// Folder for compiled code. Only this server's user or root may own it and write to it,
    /// because the server runs that code. A folder that cannot be used is logged and not used.
    ///
    /// Path; default none: each process compiles anew; example `"/var/cache/switchyard"`.
    pub cache: Option<PathBuf>,
    /// List of the components that may serve: lines of `sha256sum`. It is read for each load, shadows and
    /// rollbacks too; another component is refused. Settings and artifacts are not covered.
    ///
    /// Path; default none: any component; example `"/etc/switchyard/policies.sha256"`.
    pub allow: Option<PathBuf>,
    /// Longest time to compile a policy. A policy that takes longer is refused.
    ///
    /// Integer, s, 1 to 3600; default `120`; example `30`.
    pub compile_timeout_s: u64,
    /// Versions kept per pool for rollback, in `dir/.versions/POOL`: code, settings and artifacts.
    ///
    /// Integer, 1 to 1024; default `8`; example `4`.
    pub history: usize,
    /// Whether a start without a policy that serves is refused. Otherwise, and with `etcd.policies`, the
    /// fallback serves, and a pool whose policy has no file is not ready.
    ///
    /// Boolean; default `true`; example `false`.
    pub required: bool,
}

// === impl PoliciesConfig ===

impl PoliciesConfig {
    /// Folder of the versions of a pool's policy.
    pub fn versions(&self, pool: &str) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let versions = self.dir.join(".versions");
        match !pool.is_empty() && !pool.starts_with('.') && pool.chars().all(is_plain) {
            true => versions.join(pool),
            false => versions.join(ContentHash::of(&[pool.as_bytes()]).to_string()),
        }
    }
}

impl Default for PoliciesConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("policies"),
            cache: None,
            allow: None,
            compile_timeout_s: 120,
            history: 8,
            required: true,
        }
    }
}
