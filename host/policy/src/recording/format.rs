//! Constants of the file format.

/// Version of the format. The reader refuses other versions.
pub const FORMAT_VERSION: u32 = 4;

/// Beginning of a recording, before its version.
pub(super) const MAGIC: &str = "switchyard-recording ";

/// Longest first line, in bytes.
pub(super) const PREAMBLE_MAX: usize = 64;

/// Beginning of a block: after a crash a file may end in zeros.
pub(super) const BLOCK_MARK: [u8; 4] = *b"SWBK";

/// Bytes of a block's head: mark, stored length, length, checksum.
pub(super) const BLOCK_HEAD: usize = 16;

/// A block is written once its frames have this many bytes.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// Longest frame, in bytes. Windows of thousands of requests have a tenth of that.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 20;

/// Longest block before compression, in bytes: a frame of the longest kind may end it.
pub(super) const BLOCK_MAX: usize = BLOCK_BYTES + FRAME_BYTES_MAX;

pub(super) fn preamble() -> String {
    format!("{MAGIC}{FORMAT_VERSION}\n")
}

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
