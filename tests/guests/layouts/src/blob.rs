//! A window as one list of bytes: little-endian rows without gaps, read in place.

use crate::logic::WindowView;

const HEADER: usize = 16;
const REQUEST: usize = 36;
const WORKER: usize = 20;

/// A window, read in place.
pub(crate) struct BlobWindow<'a> {
    bytes: &'a [u8],
    requests: usize,
    workers: usize,
}

impl<'a> BlobWindow<'a> {
    /// Reads the header.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let blob = Self {
            bytes,
            requests: 0,
            workers: 0,
        };
        Self {
            requests: blob.u32(8) as usize,
            workers: blob.u32(12) as usize,
            ..blob
        }
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    fn u32(&self, at: usize) -> u32 {
        let bytes = &self.bytes[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

impl WindowView for BlobWindow<'_> {
    fn now(&self) -> u64 {
        self.u64(0)
    }

    fn requests(&self) -> usize {
        self.requests
    }

    fn id(&self, request: usize) -> u64 {
        self.u64(HEADER + REQUEST * request)
    }

    fn deadline(&self, request: usize) -> u64 {
        self.u64(HEADER + REQUEST * request + 20)
    }

    fn priority(&self, request: usize) -> u32 {
        self.u32(HEADER + REQUEST * request + 28)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn busy_until(&self, worker: usize) -> u64 {
        self.u64(HEADER + REQUEST * self.requests + WORKER * worker)
    }
}
