//! Reading a request body under its limits.
//!
//! `collect` of http-body-util is not used: it keeps every chunk until the last one, and each chunk
//! keeps the read buffer of hyper that it came in, so that a large body is twice in memory and hyper
//! allocates a buffer per read. Here a body of one chunk stays in its buffer, and the chunks of a
//! larger one are copied as they arrive, once, which gives the read buffer back.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame};
use switchyard_protocol::ProtocolError;
use tokio::time::{sleep, timeout};

use super::connection_state::ConnectionState;
use super::limits::Limits;
use super::memory::{MemoryShare, RequestMemory};

/// Most bytes reserved for an announced body before they arrive.
pub(super) const RESERVED_MAX: usize = 1 << 20;

/// Most bytes of a refused body that are read and thrown away: a client that writes its whole
/// request before it reads then gets its answer instead of a broken connection.
const DISCARDED_MAX: usize = 256 << 20;

/// A body's rate is not looked at before: a connection may start slowly.
pub(super) const RATE_GRACE: Duration = Duration::from_secs(5);

/// How often it is looked at from then on.
const RATE_INTERVAL: Duration = Duration::from_secs(1);

type BoxError = Box<dyn Error + Send + Sync>;

/// The largest body of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit<'a> {
    pub(super) bytes: usize,
    /// The requests that it is for, as [`ProtocolError::BodyTooLarge`] has it.
    pub(super) scope: &'a str,
}

/// A body and its connection.
pub(super) struct BodyReader<'a, B> {
    pub(super) body: &'a mut B,
    pub(super) connection: &'a ConnectionState,
    pub(super) limits: Arc<Limits>,
    pub(super) memory: &'a RequestMemory,
}

/// The bytes that have arrived.
struct ReceivedBody {
    first: Bytes,
    /// All chunks, once there are two of them.
    joined: BytesMut,
    /// Bytes to reserve for `joined`.
    reserve: usize,
}

// === impl BodyLimit ===

impl BodyLimit<'_> {
    /// The data of a frame after `read` bytes; `None` at the end.
    fn chunk<E: Into<BoxError>>(
        &self,
        frame: Option<Result<Frame<Bytes>, E>>,
        read: usize,
    ) -> Result<Option<Bytes>, ProtocolError> {
        match frame {
            None => Ok(None),
            Some(Ok(frame)) => {
                let chunk = frame.into_data().unwrap_or_default();
                if chunk.len() > self.bytes - read {
                    return Err(self.passed("body", format!("more than {} bytes", self.bytes)));
                }
                Ok(Some(chunk))
            }
            Some(Err(error)) => {
                let reason = format!("broke off after {read} bytes: {}", error.into());
                Err(ProtocolError::malformed("body", reason))
            }
        }
    }

    /// Refuses a message of gRPC above the limit.
    pub(super) fn check_message(&self, length: usize) -> Result<(), ProtocolError> {
        match length > self.bytes {
            true => Err(self.passed("body", format!("{length} bytes in one message"))),
            false => Ok(()),
        }
    }

    fn passed(&self, field: &'static str, found: String) -> ProtocolError {
        ProtocolError::BodyTooLarge {
            field,
            found,
            limit_bytes: self.bytes,
            scope: self.scope.to_owned(),
        }
    }

    /// Adds the scope to an error that does not know it.
    pub(super) fn explain(&self, mut error: ProtocolError) -> ProtocolError {
        if let ProtocolError::BodyTooLarge { scope, .. } = &mut error {
            self.scope.clone_into(scope);
        }
        error
    }
}

// === impl BodyReader ===

impl<B> BodyReader<'_, B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Reads a whole body; `share` grows to its size.
    ///
    /// # Errors
    /// 413 before the first byte if `Content-Length` is above the limit, or as soon as a streamed
    /// body is; 503 without memory for it; 408 after the time limit or below the least rate; 400 if
    /// the body breaks off.
    pub(super) async fn read(
        self,
        limit: BodyLimit<'_>,
        share: &mut MemoryShare,
    ) -> Result<Bytes, ProtocolError> {
        let announced = self.body.size_hint().lower();
        if announced > limit.bytes as u64 {
            return Err(limit.passed("Content-Length", format!("{announced} bytes")));
        }
        let mut received = ReceivedBody::new(announced as usize);
        if share.lacks(received.reserve) {
            self.memory.grow(share, received.reserve).await?;
        }
        // A small body comes with its head: it needs no timer, and is no phase of its connection.
        let body = &mut *self.body;
        let first = poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await;
        if let Poll::Ready(frame) = first {
            let Some(chunk) = limit.chunk(frame, 0)? else {
                return Ok(Bytes::new());
            };
            let size = received.size_with(&chunk);
            if share.lacks(size) {
                let _reading = self.connection.reading();
                self.memory.grow(share, size).await?;
            }
            received.push(chunk);
            if self.body.is_end_stream() {
                return Ok(received.into_bytes());
            }
        }
        let _reading = self.connection.reading();
        // Boxed: it takes no room in the futures of small bodies.
        Box::pin(self.read_on(limit, share, &mut received)).await?;
        Ok(received.into_bytes())
    }

    /// Reads the chunks that are still to come.
    async fn read_on(
        self,
        limit: BodyLimit<'_>,
        share: &mut MemoryShare,
        received: &mut ReceivedBody,
    ) -> Result<(), ProtocolError> {
        let began = Instant::now();
        // The timer is not registered before a wait.
        let mut look = pin!(sleep(RATE_GRACE.min(self.limits.body_read_timeout)));
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.body.frame() => frame,
                () = look.as_mut() => {
                    let next = next_look(began, received.len(), &self.limits)?;
                    look.as_mut().reset((began + next).into());
                    continue;
                }
            };
            let Some(chunk) = limit.chunk(frame, received.len())? else {
                return Ok(());
            };
            self.memory.grow(share, received.size_with(&chunk)).await?;
            received.push(chunk);
        }
    }
}

/// When to look at a body again, from its begin.
pub(super) fn next_look(
    began: Instant,
    received: usize,
    limits: &Limits,
) -> Result<Duration, ProtocolError> {
    let elapsed = began.elapsed();
    let limit = limits.body_read_timeout;
    if elapsed >= limit {
        return Err(ProtocolError::BodyTimeout {
            received_bytes: received,
            limit_ms: limit.as_millis(),
        });
    }
    if (received as f64) < limits.min_rate as f64 * elapsed.as_secs_f64() {
        return Err(ProtocolError::BodyTooSlow {
            received_bytes: received,
            elapsed_ms: elapsed.as_millis(),
            least_rate: limits.min_rate,
        });
    }
    Ok((elapsed + RATE_INTERVAL).min(limit))
}

/// Reads the rest of a refused body and throws it away, up to [`DISCARDED_MAX`] bytes and the
/// time limit of a body.
pub(super) fn discard<B>(
    body: B,
    limits: &Limits,
    connection: Arc<ConnectionState>,
) -> impl Future<Output = ()> + use<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let limit = limits.body_read_timeout;
    let arriving = connection.arriving_outside();
    async move {
        let mut limited = Limited::new(body, DISCARDED_MAX);
        let reading = async { while let Some(Ok(_)) = limited.frame().await {} };
        // At either limit the connection closes, as it does when the client goes away.
        let _ = timeout(limit, reading).await;
        connection.next_byte_begins_a_head();
        drop(arriving);
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

    /// Memory of the body once it has this chunk: `joined` doubles when it is full.
    fn size_with(&self, chunk: &Bytes) -> usize {
        let length = self.len() + chunk.len();
        if self.joined.is_empty() || length <= self.joined.capacity() {
            length.max(self.joined.capacity())
        } else {
            length.max(2 * self.joined.capacity())
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
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Context;

    use crate::ingress::connection_state::Phase;
    use crate::sockets::Peer;

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
        let reader = BodyReader {
            body: &mut ChunkedBody(chunks.iter().copied().collect()),
            connection: &ConnectionState::new(Peer::User(None), false),
            limits: Arc::new(limits.clone()),
            memory: &RequestMemory::new(1 << 20),
        };
        let limit = BodyLimit {
            bytes: limits.max_body_bytes,
            scope: "",
        };
        let read = reader.read(limit, &mut MemoryShare::default()).await;
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

    /// A client of HTTP/2 cancels one call and goes on with others.
    #[tokio::test]
    async fn a_body_that_waits_for_memory_ends_with_its_call() {
        let memory = RequestMemory::new(1 << 20);
        let mut others = MemoryShare::of_many();
        memory.grow(&mut others, 1 << 20).await.unwrap();
        let connection = ConnectionState::new(Peer::User(None), true);
        let reader = BodyReader {
            body: &mut ChunkedBody([&b"abc"[..]].into()),
            connection: &connection,
            limits: Arc::new(Limits::default()),
            memory: &memory,
        };
        let limit = BodyLimit {
            bytes: 6,
            scope: "",
        };
        let mut share = MemoryShare::of(&connection);
        tokio::select! {
            biased;
            read = reader.read(limit, &mut share) => panic!("there is no memory: {read:?}"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(connection.progress().phase, Phase::Idle);
    }

    #[tokio::test]
    async fn a_single_chunk_is_not_copied() {
        let chunk: &'static [u8] = b"abcdef";
        let read = read_chunks(&[b"", chunk]).await.unwrap();
        assert_eq!(read.as_ptr(), chunk.as_ptr());
    }
}
