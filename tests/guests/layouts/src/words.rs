//! A window as one list of words: a header, then columns, read in place.

use crate::logic::WindowView;

/// Words of the header: now, the number of requests, the number of workers.
const HEADER: usize = 3;

/// A window, read in place.
pub(crate) struct WordsWindow<'a> {
    words: &'a [u64],
    requests: usize,
    workers: usize,
}

impl<'a> WordsWindow<'a> {
    /// Reads the header.
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Self {
            words,
            requests: words[1] as usize,
            workers: words[2] as usize,
        }
    }

    /// A value of a column of 32 bits.
    fn half(&self, column: usize, at: usize) -> u32 {
        (self.words[column + at / 2] >> (32 * (at % 2))) as u32
    }
}

impl WindowView for WordsWindow<'_> {
    fn now(&self) -> u64 {
        self.words[0]
    }

    fn requests(&self) -> usize {
        self.requests
    }

    fn id(&self, request: usize) -> u64 {
        self.words[HEADER + request]
    }

    fn deadline(&self, request: usize) -> u64 {
        self.words[HEADER + 2 * self.requests + request]
    }

    fn priority(&self, request: usize) -> u32 {
        let halves = self.requests.div_ceil(2);
        self.half(HEADER + 3 * self.requests + halves, request)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn busy_until(&self, worker: usize) -> u64 {
        let halves = self.requests.div_ceil(2);
        self.words[HEADER + 3 * self.requests + 3 * halves + worker]
    }
}
