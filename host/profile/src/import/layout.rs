//! The layouts that are recognised.

use std::path::Path;

/// A layout that was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportLayout {
    /// The RAMSIS artifact's folder.
    RamsisArtifact,
    /// Its summary.
    RamsisSummary,
    /// Comma-separated values.
    Csv,
}

// === impl ImportLayout ===

impl ImportLayout {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::RamsisArtifact => "RAMSIS artifact",
            Self::RamsisSummary => "RAMSIS summary",
            Self::Csv => "CSV",
        }
    }
}

/// Whether a file has this extension, in any case.
pub(super) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}
