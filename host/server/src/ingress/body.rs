//! Reading a request body under its limits.
//!
//! [`Limited`] holds the size limit. Its `collect` is not used: it keeps every chunk until the
//! last one, and each chunk keeps the read buffer of hyper that it came in, so that a large body
//! is twice in memory and hyper allocates a buffer per read. Here a body of one chunk stays in
//! its buffer, and the chunks of a larger one are copied as they arrive, once, which gives the
//! read buffer back.

use std::error::Error;
use std::future::Future;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use switchyard_protocol::ProtocolError;
use tokio::time::timeout;

use super::limits::Limits;

/// Most bytes reserved for an announced body before they arrive.
const RESERVED_MAX: usize = 1 << 20;

/// Most bytes of a refused body that are read and thrown away: a client that writes its whole
/// request before it reads then gets its answer instead of a broken connection.
const DISCARDED_MAX: usize = 256 << 20;

type BoxError = Box<dyn Error + Send + Sync>;

/// The bytes that have arrived.
struct ReceivedBody {
    first: Bytes,
    /// All chunks, once there are two of them.
    joined: BytesMut,
    /// Bytes to reserve for `joined`.
    reserve: usize,
}

/// Reads a whole body.
///
/// # Errors
/// 413 before the first byte if `Content-Length` is above the limit, or as soon as a streamed
/// body is; 408 after the time limit; 400 if the body breaks off.
pub(super) async fn read<B>(body: &mut B, limits: &Limits) -> Result<Bytes, ProtocolError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let limit_bytes = limits.max_body_bytes;
    let announced = body.size_hint().lower();
    if announced > limit_bytes as u64 {
        return Err(ProtocolError::BodyTooLarge {
            field: "Content-Length",
            found: format!("{announced} bytes"),
            limit_bytes,
        });
    }
    let mut received = ReceivedBody::new(announced as usize);
    let mut limited = Limited::new(body, limit_bytes);
    let reading = async {
        while let Some(frame) = limited.frame().await {
            if let Ok(chunk) = frame?.into_data() {
                received.push(chunk);
            }
        }
        Ok::<_, BoxError>(())
    };
    match timeout(limits.body_read_timeout, reading).await {
        Ok(Ok(())) => Ok(received.into_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ProtocolError::BodyTooLarge {
            field: "body",
            found: format!("more than {limit_bytes} bytes"),
            limit_bytes,
        }),
        Ok(Err(error)) => Err(ProtocolError::malformed(
            "body",
            format!("broke off after {} bytes: {error}", received.len()),
        )),
        Err(_) => Err(ProtocolError::BodyTimeout {
            received_bytes: received.len(),
            limit_ms: limits.body_read_timeout.as_millis(),
        }),
    }
}

/// Reads the rest of a refused body and throws it away, up to [`DISCARDED_MAX`] bytes and the
/// time limit of a body.
pub(super) fn discard<B>(body: B, limits: &Limits) -> impl Future<Output = ()> + use<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let limit = limits.body_read_timeout;
    async move {
        let mut limited = Limited::new(body, DISCARDED_MAX);
        let reading = async { while let Some(Ok(_)) = limited.frame().await {} };
        // At either limit the connection closes, as it does when the client goes away.
        let _ = timeout(limit, reading).await;
    }
}

// === impl ReceivedBody ===

impl ReceivedBody {
    fn new(announced: usize) -> Self {
        Self {
            first: Bytes::new(),
            joined: BytesMut::new(),
            reserve: announced.min(RESERVED_MAX),
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, chunk: Bytes) {
        if self.len() == 0 {
            self.first = chunk;
            return;
        }
        if self.joined.is_empty() {
            self.joined
                .reserve(self.reserve.max(self.first.len() + chunk.len()));
            let first = std::mem::take(&mut self.first);
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&chunk);
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// Chunks of unannounced total length, as chunked transfer sends them.
    struct ChunkedBody(VecDeque<&'static [u8]>);

    impl Body for ChunkedBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let chunk = self.0.pop_front();
            Poll::Ready(chunk.map(|chunk| Ok(Frame::data(Bytes::from_static(chunk)))))
        }
    }

    async fn read_chunks(chunks: &[&'static [u8]]) -> Result<Bytes, String> {
        let limits = Limits {
            max_body_bytes: 6,
            ..Limits::default()
        };
        let mut body = ChunkedBody(chunks.iter().copied().collect());
        let read = read(&mut body, &limits).await;
        read.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn chunks_are_joined_up_to_the_limit() {
        let joined = read_chunks(&[b"abc", b"de", b"f"]).await.unwrap();
        assert_eq!(joined, &b"abcdef"[..]);
        assert_eq!(
            read_chunks(&[b"abc", b"def", b"g"]).await.unwrap_err(),
            "body: the body has more than 6 bytes, the limit is 6 bytes"
        );
    }

    #[tokio::test]
    async fn a_single_chunk_is_not_copied() {
        let chunk: &'static [u8] = b"abcdef";
        let read = read_chunks(&[b"", chunk]).await.unwrap();
        assert_eq!(read.as_ptr(), chunk.as_ptr());
    }
}
