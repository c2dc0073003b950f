//! The body of a call: its parts are sent one after another, without being joined.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Parts of a body.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
    /// The body has no end.
    stays_open: bool,
}

// === impl Parts ===

impl Parts {
    pub(crate) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.left += part.len() as u64;
            self.parts.push_back(part);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// The same without an end: the server answers until the call is dropped.
    pub(crate) fn staying_open(self) -> Self {
        Self {
            stays_open: true,
            ..self
        }
    }

    /// Puts the prefix of a message before it.
    pub(crate) fn framed(mut self, prefix: Bytes) -> Self {
        self.left += prefix.len() as u64;
        self.parts.push_front(prefix);
        self
    }

    /// Takes the prefix off a message that was not sent.
    pub(crate) fn unframed(mut self) -> Self {
        let prefix = self.parts.pop_front();
        self.left -= prefix.map_or(0, |prefix| prefix.len()) as u64;
        self
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left -= part.as_ref().map_or(0, Bytes::len) as u64;
        match part {
            // The connection polls again when the call ends.
            None if self.stays_open => Poll::Pending,
            part => Poll::Ready(part.map(|part| Ok(Frame::data(part)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty() && !self.stays_open
    }

    fn size_hint(&self) -> SizeHint {
        match self.stays_open {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.left),
        }
    }
}
