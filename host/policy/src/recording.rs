//! Recorded windows: the policy's configuration, its windows and its plans, in one file that is
//! only ever appended to.
//!
//! ```text
//! switchyard-recording 4\n
//! block: "SWBK", stored bytes, bytes, CRC-32 (each a little-endian u32), deflated frames
//! block ...
//! ```
//!
//! Frames are [`Frame`]s in postcard's encoding. None spans two blocks. A scheduler's life begins
//! with a [`Frame::Start`]; a file holds one life after the other. After a crash the last block may
//! be cut off: the [`Reader`] returns all frames before it and reports the cut. Any other change of
//! the bytes is a [`RecordingError`].

mod block;
mod error;
mod format;
mod frame;
mod reader;
mod shape;
mod writer;

pub use error::{Corruption, RecordingError};
pub use format::FORMAT_VERSION;
pub use frame::{Frame, Header, PolicyRecord};
pub use reader::{CutOff, Reader};
pub use writer::Writer;
