//! Recorded windows: what a policy was configured with, what it saw and what it planned, in
//! one file that is only ever appended to.
//!
//! ```text
//! switchyard-recording 1\n
//! block: "SWBK", stored bytes, bytes, CRC-32 (each a little-endian u32), deflated frames
//! block ...
//! ```
//!
//! Frames are [`Frame`]s in postcard's encoding, whole inside their block. A scheduler's life
//! is a [`Frame::Start`] and what follows; a file holds one after the other. After a crash the
//! last block may be cut off: everything before it is read, and the [`Reader`] says what is
//! missing. Anything else that is not as it was written is a [`RecordingError`].

mod error;
mod frame;
mod reader;
mod shape;
mod writer;

pub use error::{Corruption, RecordingError};
pub use frame::{Frame, Header, PolicyRecord};
pub use reader::{CutOff, Reader};
pub use writer::Writer;

/// Version of the format. Reading another one is refused.
pub const FORMAT_VERSION: u32 = 1;

/// What a recording begins with, before its version.
const MAGIC: &str = "switchyard-recording ";

/// Longest first line.
const PREAMBLE_MAX: usize = 64;

/// What a block begins with: after a crash a file may end in zeros.
const BLOCK_MARK: [u8; 4] = *b"SWBK";

/// Mark, stored length, length, checksum.
const BLOCK_HEAD: usize = 16;

/// A block is written once its frames have so many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// Longest frame, and so longest block less what was in it before. Windows of thousands of
/// requests have a tenth of that.
const FRAME_BYTES_MAX: usize = 64 << 20;

fn preamble() -> String {
    format!("{MAGIC}{FORMAT_VERSION}\n")
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
