//! The format of an entry: a mark, a checksum, and the compiled code.

use std::io;

use crate::files::FileError;
use crate::history::ContentHash;

/// Begins each file. Its last digit changes with the format.
const MARK: &[u8; 8] = b"swy-cc-1";
const CHECKSUM_BYTES: usize = 32;
const HEADER_BYTES: usize = MARK.len() + CHECKSUM_BYTES;

/// Separates these checksums from other uses of the hash.
const CONTEXT: &str = "switchyard 2026 compiled code of a policy";

/// Why an entry is not used or not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    /// The system's reason.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The entry is no file that can be read.
    #[error("{0}")]
    File(FileError),
    /// Other users may have written it.
    #[error("{subject} {reason}; only this user may write to it: chown or chmod it")]
    Untrusted {
        /// The folder or the file.
        subject: &'static str,
        /// The permission or owner at fault.
        reason: &'static str,
    },
    /// The checksum does not hold.
    #[error("it is damaged: the checksum does not hold")]
    Damaged,
    /// wasmtime's reason.
    #[error("{0}")]
    Refused(String),
}

impl From<FileError> for EntryError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(error) => Self::Io(error),
            error => Self::File(error),
        }
    }
}

/// The bytes before the compiled code.
pub(super) fn header(compiled: &[u8], engine: u64, code: ContentHash) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MARK.len()].copy_from_slice(MARK);
    header[MARK.len()..].copy_from_slice(checksum(compiled, engine, code).as_bytes());
    header
}

/// The compiled code of an entry whose checksum holds.
pub(super) fn open(bytes: &[u8], engine: u64, code: ContentHash) -> Result<&[u8], EntryError> {
    let (header, compiled) = bytes
        .split_at_checked(HEADER_BYTES)
        .ok_or(EntryError::Damaged)?;
    if header != self::header(compiled, engine, code) {
        return Err(EntryError::Damaged);
    }
    Ok(compiled)
}

fn checksum(compiled: &[u8], engine: u64, code: ContentHash) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&engine.to_le_bytes());
    hasher.update(code.as_bytes());
    hasher.update(compiled);
    hasher.finalize()
}
