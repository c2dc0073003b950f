//! Reading a request body under its limits.

use std::future::Future;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

use super::error::ProtocolError;
use super::limits::Limits;

/// Bytes reserved on a client's word; more is grown into as it arrives.
const RESERVED_MAX: usize = 1 << 20;

/// Bytes of a refused body read and thrown away, so that a client which writes
/// all before it reads gets its answer instead of a broken connection.
const DISCARDED_MAX: u64 = 256 << 20;

/// Reads all of a body.
///
/// # Errors
/// 413 before the first byte when `Content-Length` passes the limit, or as soon
/// as a streamed body does; 408 when time is up; 400 when it breaks off.
pub(super) async fn read<B>(body: &mut B, limits: &Limits) -> Result<Bytes, ProtocolError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let announced = body.size_hint().lower();
    if announced > limits.max_body_bytes as u64 {
        return Err(ProtocolError::BodyTooLarge {
            field: "Content-Length",
            found: format!("{announced} bytes"),
            limit_bytes: limits.max_body_bytes,
        });
    }
    let mut collected = Collected::new(announced as usize, limits.max_body_bytes);
    match timeout(limits.body_read_timeout, collect(body, &mut collected)).await {
        Ok(result) => result?,
        Err(_) => {
            return Err(ProtocolError::BodyTimeout {
                received_bytes: collected.len(),
                limit_ms: limits.body_read_timeout.as_millis(),
            });
        }
    }
    Ok(collected.into_bytes())
}

async fn collect<B>(body: &mut B, collected: &mut Collected) -> Result<(), ProtocolError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("broke off after {} bytes: {error}", collected.len());
            ProtocolError::malformed("body", reason)
        })?;
        if let Ok(chunk) = frame.into_data() {
            collected.push(chunk)?;
        }
    }
    Ok(())
}

/// What has arrived. A body that comes in one piece is never copied.
struct Collected {
    first: Bytes,
    joined: BytesMut,
    reserve: usize,
    limit: usize,
}

impl Collected {
    fn new(announced: usize, limit: usize) -> Self {
        Self {
            first: Bytes::new(),
            joined: BytesMut::new(),
            reserve: announced.min(RESERVED_MAX),
            limit,
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, chunk: Bytes) -> Result<(), ProtocolError> {
        if self.len() + chunk.len() > self.limit {
            return Err(ProtocolError::BodyTooLarge {
                field: "body",
                found: format!("more than {} bytes", self.limit),
                limit_bytes: self.limit,
            });
        }
        if self.len() == 0 {
            self.first = chunk;
            return Ok(());
        }
        if self.joined.is_empty() {
            self.joined
                .reserve(self.reserve.max(self.first.len() + chunk.len()));
            let first = std::mem::take(&mut self.first);
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&chunk);
        Ok(())
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}

/// Reads what is left of a refused body and throws it away, for as long and as
/// far as is reasonable.
pub(super) fn discard<B>(mut body: B, limits: &Limits) -> impl Future<Output = ()> + use<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    let limit = limits.body_read_timeout;
    async move {
        let mut left = DISCARDED_MAX;
        let reading = async {
            while let Some(Ok(frame)) = body.frame().await {
                let size = frame.data_ref().map_or(0, Bytes::len) as u64;
                match left.checked_sub(size) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        // Out of time or out of patience, the connection closes: same outcome.
        let _ = timeout(limit, reading).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// Chunks of unannounced total length, as chunked transfer sends them.
    struct Chunks(Vec<&'static [u8]>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.0.is_empty() {
                return Poll::Ready(None);
            }
            let chunk = self.0.remove(0);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(chunk)))))
        }
    }

    #[tokio::test]
    async fn chunks_are_joined_up_to_the_limit() {
        let limits = Limits {
            max_body_bytes: 6,
            ..Limits::default()
        };
        let mut body = Chunks(vec![b"abc", b"def"]);
        assert_eq!(read(&mut body, &limits).await.unwrap(), &b"abcdef"[..]);
        let mut body = Chunks(vec![b"abc", b"def", b"g"]);
        assert_eq!(
            read(&mut body, &limits).await.unwrap_err().to_string(),
            "body: the body has more than 6 bytes, the limit is 6 bytes"
        );
    }
}
