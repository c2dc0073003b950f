//! The head of a block, and the first line of a recording.

use super::error::Corruption;
use super::format::{BLOCK_MARK, BLOCK_MAX, FORMAT_VERSION, MAGIC};

/// The head of a block.
pub(super) struct BlockHead {
    /// Bytes that follow.
    pub(super) stored: usize,
    /// Bytes once they are inflated.
    pub(super) length: usize,
    pub(super) checksum: u32,
}

// === impl BlockHead ===

impl BlockHead {
    pub(super) fn parse(head: &[u8]) -> Result<Self, Corruption> {
        let Some(fields) = head.strip_prefix(&BLOCK_MARK) else {
            return Err(Corruption::Block("its mark is missing"));
        };
        let mut fields = fields.chunks_exact(4).map(|field| {
            let bytes = <[u8; 4]>::try_from(field).unwrap_or_default();
            u32::from_le_bytes(bytes)
        });
        let mut field = || fields.next().unwrap_or_default();
        let (stored, length, checksum) = (field() as usize, field() as usize, field());
        if stored > BLOCK_MAX || length > BLOCK_MAX || length == 0 {
            return Err(Corruption::Block("its length is impossible"));
        }
        Ok(Self {
            stored,
            length,
            checksum,
        })
    }
}

/// Checks the first line, with its end, and returns its length.
pub(super) fn check_preamble(first: &[u8]) -> Result<usize, Corruption> {
    let line = first.split(|&byte| byte == b'\n').next().unwrap_or(first);
    let ended = line.len() < first.len();
    let version = str::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_prefix(MAGIC))
        .filter(|_| ended)
        .ok_or(Corruption::NotARecording)?;
    if version != FORMAT_VERSION.to_string() {
        return Err(Corruption::Version {
            theirs: version.to_owned(),
        });
    }
    Ok(line.len() + 1)
}
