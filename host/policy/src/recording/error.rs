//! Why a recording cannot be read or written: which file, where in it, for which reason.

use std::path::{Path, PathBuf};

use super::{FORMAT_VERSION, FRAME_BYTES_MAX};

/// A recording that cannot be read, or not be written on.
#[derive(Debug, thiserror::Error)]
#[error("{}: at byte {offset}: {reason}", file.display())]
pub struct RecordingError {
    /// The file.
    pub file: PathBuf,
    /// Where in it: the beginning of the block at fault.
    pub offset: u64,
    /// What is wrong.
    #[source]
    pub reason: Corruption,
}

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The system says no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Somebody writes on it.
    #[error("another recorder writes on it")]
    Busy,
    /// Something else altogether.
    #[error("not a recording of windows")]
    NotARecording,
    /// Written by another version of this program.
    #[error("format {theirs}, this program reads format {FORMAT_VERSION}")]
    Version {
        /// As the file says.
        theirs: String,
    },
    /// A block is not as it was written.
    #[error("the block is damaged: {0}")]
    Block(&'static str),
    /// A block's frames make no sense.
    #[error("frame {index} of the block: {reason}")]
    Frame {
        /// Position in the block, from 0.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A frame is larger than any that is read.
    #[error("a frame of {bytes} bytes, the limit is {FRAME_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The file has its size.
    #[error("the recording has reached its {most} bytes")]
    Full {
        /// Bytes that it may have.
        most: u64,
    },
}

// === impl RecordingError ===

impl RecordingError {
    pub(super) fn new(file: &Path, offset: u64, reason: impl Into<Corruption>) -> Self {
        Self {
            file: file.to_owned(),
            offset,
            reason: reason.into(),
        }
    }

    /// A file that nobody can write on.
    pub fn unwritable(file: &Path, error: std::io::Error) -> Self {
        Self::new(file, 0, error)
    }

    /// Whether nothing is wrong but that the file has its size.
    pub fn is_full(&self) -> bool {
        matches!(self.reason, Corruption::Full { .. })
    }
}
