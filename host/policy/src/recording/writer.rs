//! Writing: frames gather in a block, blocks are compressed and appended.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::block::{BlockHead, check_preamble};
use super::error::{Corruption, RecordingError};
use super::format::{
    BLOCK_BYTES, BLOCK_HEAD, BLOCK_MARK, FRAME_BYTES_MAX, PREAMBLE_MAX, checksum, preamble,
};
use super::frame::Frame;

/// Appends to a recording. Frames that are not [flushed](Self::flush) are lost when it is dropped.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Bytes in the file.
    written: u64,
    /// Largest size of the file, in bytes.
    bytes_max: u64,
    /// Frames of the next block.
    gathered: Vec<u8>,
    /// The last block as it was stored, kept for its buffer.
    stored: Vec<u8>,
}

// === impl Writer ===

impl Writer {
    /// Begins a file. Replaces an existing one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordingError> {
        let file = File::create(path).map_err(|e| RecordingError::new(path, 0, e))?;
        let mut writer = Self::on(file, path, 0, u64::MAX);
        writer.put(preamble().as_bytes())?;
        Ok(writer)
    }

    /// Continues a file that may grow to `bytes_max` bytes, or begins it. Removes a last block that
    /// a crash has cut off, and returns its bytes.
    ///
    /// # Errors
    /// The file cannot be written, another recorder writes to it, or it is no recording of this
    /// format.
    pub fn append(path: &Path, bytes_max: u64) -> Result<(Self, u64), RecordingError> {
        let fail = |offset, reason: Corruption| RecordingError::new(path, offset, reason);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(|e| fail(0, e.into()))?;
        // Locked until the file is closed.
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => fail(0, Corruption::Busy),
            TryLockError::Error(error) => fail(0, error.into()),
        })?;
        let length = file.metadata().map_err(|e| fail(0, e.into()))?.len();
        if length == 0 {
            let mut writer = Self::on(file, path, 0, bytes_max);
            writer.put(preamble().as_bytes())?;
            return Ok((writer, 0));
        }
        let whole = last_whole_block(&mut file, length).map_err(|(at, reason)| fail(at, reason))?;
        let end = file
            .set_len(whole)
            .and_then(|()| file.seek(SeekFrom::End(0)));
        end.map_err(|e| fail(whole, e.into()))?;
        Ok((Self::on(file, path, whole, bytes_max), length - whole))
    }

    fn on(file: File, path: &Path, written: u64, bytes_max: u64) -> Self {
        Self {
            file,
            path: path.to_owned(),
            written,
            bytes_max,
            gathered: Vec::with_capacity(BLOCK_BYTES),
            stored: Vec::new(),
        }
    }

    /// Adds a frame to the next block.
    ///
    /// # Errors
    /// The file cannot be written, or has reached its largest size: the frames of the block are
    /// lost.
    pub fn write(&mut self, frame: &Frame) -> Result<(), RecordingError> {
        let before = self.gathered.len();
        let gathered = std::mem::take(&mut self.gathered);
        self.gathered = postcard::to_extend(frame, gathered)
            .map_err(|error| self.fail(io::Error::other(error)))?;
        let bytes = self.gathered.len() - before;
        if bytes > FRAME_BYTES_MAX {
            self.gathered.truncate(before);
            return Err(self.fail(Corruption::TooLarge { bytes }));
        }
        match self.gathered.len() >= BLOCK_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Whether frames wait for their block.
    pub fn is_dirty(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Writes the block, also when it is small.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        stored.resize(BLOCK_HEAD, 0);
        let mut encoder = DeflateEncoder::new(stored, Compression::fast());
        let packed = encoder
            .write_all(&self.gathered)
            .and_then(|()| encoder.finish());
        let mut stored = packed.map_err(|error| self.fail(error))?;
        let head = [
            (stored.len() - BLOCK_HEAD) as u32,
            self.gathered.len() as u32,
            checksum(&self.gathered),
        ];
        stored[..BLOCK_MARK.len()].copy_from_slice(&BLOCK_MARK);
        for (field, value) in stored[BLOCK_MARK.len()..BLOCK_HEAD]
            .chunks_exact_mut(4)
            .zip(head)
        {
            field.copy_from_slice(&value.to_le_bytes());
        }
        self.gathered.clear();
        let put = self.put(&stored);
        self.stored = stored;
        put
    }

    /// Writes a block in one call, so that a crash of this process leaves all of it or nothing.
    fn put(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        let length = bytes.len() as u64;
        if self.written.saturating_add(length) > self.bytes_max {
            return Err(self.fail(Corruption::Full {
                most: self.bytes_max,
            }));
        }
        self.file
            .write_all(bytes)
            .map_err(|error| self.fail(error))?;
        self.written += length;
        Ok(())
    }

    fn fail(&self, reason: impl Into<Corruption>) -> RecordingError {
        RecordingError::new(&self.path, self.written, reason)
    }
}

/// The end of the last whole block, by the lengths in the heads of the blocks.
fn last_whole_block(file: &mut File, length: u64) -> Result<u64, (u64, Corruption)> {
    let mut first = Vec::new();
    let read = Read::by_ref(file).take(PREAMBLE_MAX as u64);
    let mut read = io::BufReader::new(read);
    read.read_to_end(&mut first).map_err(|e| (0, e.into()))?;
    let mut at = check_preamble(&first).map_err(|reason| (0, reason))? as u64;
    while length - at >= BLOCK_HEAD as u64 {
        let mut head = [0; BLOCK_HEAD];
        let read = file.seek(SeekFrom::Start(at));
        let read = read.and_then(|_| file.read_exact(&mut head));
        read.map_err(|e| (at, e.into()))?;
        let head = BlockHead::parse(&head).map_err(|reason| (at, reason))?;
        let end = at + BLOCK_HEAD as u64 + head.stored as u64;
        if end > length {
            break;
        }
        at = end;
    }
    Ok(at)
}
