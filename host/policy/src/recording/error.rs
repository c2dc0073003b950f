//! Why a recording cannot be read or written: the file, the position and the reason.

use std::path::{Path, PathBuf};

use super::format::{FORMAT_VERSION, FRAME_BYTES_MAX};

/// A recording that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: at byte {offset}: {reason}", file.display())]
pub struct RecordingError {
    /// The file.
    pub file: PathBuf,
    /// The beginning of the block at fault, in bytes from the beginning of the file.
    pub offset: u64,
    /// The fault.
    #[source]
    pub reason: Corruption,
}

/// The fault of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The system refuses to read or write the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Another recorder has the file locked.
    #[error("another recorder writes to it")]
    Busy,
    /// The file is no recording.
    #[error("not a recording of windows")]
    NotARecording,
    /// Written by another version of this program.
    #[error("format {theirs}, this program reads format {FORMAT_VERSION}")]
    Version {
        /// The version in the file.
        theirs: String,
    },
    /// The bytes of a block have changed since they were written.
    #[error("the block is damaged: {0}")]
    Block(&'static str),
    /// A frame cannot be decoded, or contradicts the frames before it.
    #[error("frame {index} of the block: {reason}")]
    Frame {
        /// Position in the block, from 0.
        index: usize,
        /// The contradiction, or the decoder's reason.
        reason: String,
    },
    /// A frame is longer than the reader accepts.
    #[error("a frame of {bytes} bytes, the limit is {FRAME_BYTES_MAX}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The file has reached its largest size.
    #[error("the recording has reached its limit of {most} bytes")]
    Full {
        /// The largest size in bytes.
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

    /// A file that cannot be created or opened for writing.
    pub fn unwritable(file: &Path, error: std::io::Error) -> Self {
        Self::new(file, 0, error)
    }

    /// Whether the only fault is that the file has reached its largest size.
    pub fn is_full(&self) -> bool {
        matches!(self.reason, Corruption::Full { .. })
    }
}
