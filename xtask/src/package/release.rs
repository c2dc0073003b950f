//! The version and the machine of the packages.

use std::path::PathBuf;

use crate::workspace::Workspace;

/// The version and the machine of the packages.
pub(super) struct Release {
    pub(super) version: String,
    /// As Debian calls it, such as `amd64`.
    pub(super) architecture: &'static str,
    /// `target/package`.
    pub(super) folder: PathBuf,
}

// === impl Release ===

impl Release {
    pub(super) fn of(workspace: &Workspace) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: match std::env::consts::ARCH {
                "x86_64" => "amd64",
                "aarch64" => "arm64",
                other => other,
            },
            folder: workspace.target("package"),
        }
    }
}
