//! The body of a call: its parts are sent in one frame, as far as the server takes it, without being joined.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};

/// A body of parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    unsent: Segments,
    /// The body has no end.
    stays_open: bool,
}

/// Bytes in several places. None is empty.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    parts: VecDeque<Bytes>,
    left: usize,
}

// === impl Parts ===

impl Parts {
    pub(crate) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.unsent.left += part.len();
            self.unsent.parts.push_back(part);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.unsent.left as u64
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
        self.unsent.left += prefix.len();
        self.unsent.parts.push_front(prefix);
        self
    }

    /// Takes the prefix off a message that was not sent.
    pub(crate) fn unframed(mut self) -> Self {
        let prefix = self.unsent.parts.pop_front();
        self.unsent.left -= prefix.map_or(0, |prefix| prefix.len());
        self
    }
}

impl Body for Parts {
    type Data = Segments;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Segments>, Infallible>>> {
        let unsent = std::mem::take(&mut self.unsent);
        match (unsent.has_remaining(), self.stays_open) {
            (true, _) => Poll::Ready(Some(Ok(Frame::data(unsent)))),
            // The connection polls again when the call ends.
            (false, true) => Poll::Pending,
            (false, false) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.unsent.has_remaining() && !self.stays_open
    }

    fn size_hint(&self) -> SizeHint {
        match self.stays_open {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.len()),
        }
    }
}

// === impl Segments ===

impl Buf for Segments {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.parts);
        filled
            .map(|(slice, part)| *slice = IoSlice::new(part))
            .count()
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.left, "{count} bytes of {}", self.left);
        self.left -= count;
        while let Some(part) = self.parts.front_mut() {
            if count < part.len() {
                return part.advance(count);
            }
            count -= part.len();
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn the_parts_are_one_piece_in_their_own_places() {
        let mut body = Parts::default();
        let large = Bytes::from(vec![7; 1_000]);
        for part in [Bytes::from_static(b"ab"), Bytes::new(), large.clone()] {
            body.push(part);
        }
        let mut body = body.framed(Bytes::from_static(b"-----"));
        assert_eq!((body.len(), body.is_end_stream()), (1_007, false));
        let mut piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream() && body.frame().await.is_none());
        let mut slices = [IoSlice::new(&[]); 4];
        assert_eq!(piece.chunks_vectored(&mut slices), 3);
        assert_eq!(slices[2].as_ptr(), large.as_ptr());
        piece.advance(6);
        assert_eq!((piece.chunk(), piece.remaining()), (&b"b"[..], 1_001));
        piece.advance(1);
        assert_eq!(piece.chunk().as_ptr(), large.as_ptr());
        piece.advance(1_000);
        assert!(!piece.has_remaining() && piece.chunk().is_empty());
    }

    #[test]
    fn a_message_that_was_not_sent_comes_back_without_its_prefix() {
        let mut body = Parts::default();
        body.push(Bytes::from_static(b"ab"));
        let body = body.framed(Bytes::from_static(b"-----")).unframed();
        assert_eq!((body.len(), body.unsent.chunk()), (2, &b"ab"[..]));
    }
}
