//! Reading: block by block. Every frame is checked before the caller gets it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use switchyard_core::catalog::Catalog;

use super::block::{BlockHead, check_preamble};
use super::error::{Corruption, RecordingError};
use super::format::{BLOCK_HEAD, PREAMBLE_MAX, checksum};
use super::frame::Frame;
use super::shape::check;

/// The frames of a recording, oldest first. After an error there are no more.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    /// Bytes read.
    at: u64,
    /// Frames of the last block that the caller has not taken yet.
    frames: VecDeque<Frame>,
    /// The catalog that windows are checked against.
    catalog: Option<Arc<Catalog>>,
    cut_off: Option<CutOff>,
    ended: bool,
}

/// The last block of a recording is not whole: the recorder was stopped while it wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// The beginning of the block.
    pub offset: u64,
    /// Bytes of the block in the file.
    pub bytes: u64,
}

// === impl Reader ===

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// The file cannot be read, or is no recording of this format.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let fail = |reason: Corruption| RecordingError::new(path, 0, reason);
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        let mut file = BufReader::new(file);
        let mut first = Vec::new();
        while first.len() < PREAMBLE_MAX && first.last() != Some(&b'\n') {
            let mut byte = [0];
            if file.read(&mut byte).map_err(|error| fail(error.into()))? == 0 {
                break;
            }
            first.push(byte[0]);
        }
        let at = check_preamble(&first).map_err(fail)? as u64;
        Ok(Self {
            file,
            path: path.to_owned(),
            at,
            frames: VecDeque::new(),
            catalog: None,
            cut_off: None,
            ended: false,
        })
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// The block that is cut off at the end, if any. Known once all frames are read.
    pub fn cut_off(&self) -> Option<CutOff> {
        self.cut_off
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, RecordingError> {
        while self.frames.is_empty() && !self.ended {
            let offset = self.at;
            let block = self.next_block();
            let read = block.and_then(|block| match block {
                Some(block) => self.take(&block),
                None => Ok(()),
            });
            if let Err(reason) = read {
                self.ended = true;
                self.frames.clear();
                return Err(RecordingError::new(&self.path, offset, reason));
            }
        }
        Ok(self.frames.pop_front())
    }

    /// The next block, inflated; none at the end of the file, also when the last block is cut off.
    fn next_block(&mut self) -> Result<Option<Vec<u8>>, Corruption> {
        let offset = self.at;
        let mut head = Vec::with_capacity(BLOCK_HEAD);
        self.read_up_to(BLOCK_HEAD, &mut head)?;
        if head.len() < BLOCK_HEAD {
            self.end_at(offset, head.len());
            return Ok(None);
        }
        let head = BlockHead::parse(&head)?;
        let mut stored = Vec::new();
        self.read_up_to(head.stored, &mut stored)?;
        if stored.len() < head.stored {
            self.end_at(offset, BLOCK_HEAD + stored.len());
            return Ok(None);
        }
        let mut block = Vec::new();
        // One byte more than expected: the block may be longer.
        let mut inflating = DeflateDecoder::new(stored.as_slice()).take(head.length as u64 + 1);
        let inflated = inflating.read_to_end(&mut block);
        let used = inflating.into_inner().total_in() == head.stored as u64;
        if inflated.is_err() || block.len() != head.length || !used {
            return Err(Corruption::Block("it does not inflate to its length"));
        }
        if checksum(&block) != head.checksum {
            return Err(Corruption::Block("its checksum does not match"));
        }
        Ok(Some(block))
    }

    fn read_up_to(&mut self, most: usize, into: &mut Vec<u8>) -> Result<(), Corruption> {
        let read = Read::by_ref(&mut self.file)
            .take(most as u64)
            .read_to_end(into)?;
        self.at += read as u64;
        Ok(())
    }

    fn end_at(&mut self, offset: u64, bytes: usize) {
        self.ended = true;
        self.cut_off = (bytes > 0).then_some(CutOff {
            offset,
            bytes: bytes as u64,
        });
    }

    /// Decodes a block's frames and checks each against the catalog in force.
    fn take(&mut self, block: &[u8]) -> Result<(), Corruption> {
        let mut rest = block;
        for index in 0.. {
            if rest.is_empty() {
                break;
            }
            let wrong = |reason: String| Corruption::Frame { index, reason };
            let (frame, after) =
                postcard::take_from_bytes(rest).map_err(|error| wrong(error.to_string()))?;
            self.admit(&frame).map_err(wrong)?;
            self.frames.push_back(frame);
            rest = after;
        }
        Ok(())
    }

    fn admit(&mut self, frame: &Frame) -> Result<(), String> {
        let catalog = match (frame, &self.catalog) {
            (Frame::Start(header), _) => &header.catalog,
            (_, None) => return Err("nothing has started yet".to_owned()),
            (Frame::Catalog(catalog), _) => catalog,
            (Frame::Decision(decision), Some(catalog)) => {
                return check(catalog, decision)
                    .map_err(|reason| format!("window {}: {reason}", decision.window.id));
            }
            (Frame::Policy(_) | Frame::Gap(_), _) => return Ok(()),
        };
        catalog.validate().map_err(|error| error.to_string())?;
        self.catalog = Some(Arc::new(catalog.clone()));
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<Frame, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_frame().transpose()
    }
}
