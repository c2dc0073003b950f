//! The messages of a request's body, under the limits of every body.
//!
//! A message of one chunk stays in its buffer; the chunks of a larger one are copied as they arrive,
//! once, which gives the read buffers of HTTP/2 back.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use switchyard_protocol::grpc::{FramePrefix, PREFIX_BYTES, first_model_name};
use switchyard_protocol::{ContentCoding, ProtocolError};
use tokio::time::sleep_until;

use super::super::backend::Backend;
use super::super::body::{BodyLimit, RATE_GRACE, RESERVED_MAX, next_look};
use super::super::connection_state::{ConnectionState, Counted};
use super::super::memory::MemoryShare;
use super::super::service::Service;

/// The part of a body that has not been read.
pub(super) struct Inbound {
    body: Incoming,
    /// Of the messages that say so.
    coding: ContentCoding,
    /// Received bytes; empty while there are bytes in `joined`.
    first: Bytes,
    /// Received bytes of a message of several chunks.
    joined: BytesMut,
    /// Of the message that arrives.
    share: MemoryShare,
    arriving: Option<Arriving>,
}

/// A message that has begun to arrive.
struct Arriving {
    since: Instant,
    look_at: Instant,
    _counted: Counted,
}

/// A message without its frame.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) coding: ContentCoding,
    /// Its memory.
    pub(super) share: MemoryShare,
}

// === impl Inbound ===

impl Inbound {
    pub(super) fn new(body: Incoming, coding: ContentCoding) -> Self {
        Self {
            body,
            coding,
            first: Bytes::new(),
            joined: BytesMut::new(),
            share: MemoryShare::of_many(),
            arriving: None,
        }
    }

    /// The next message; `None` at the end of the body. Cancel safe.
    ///
    /// # Errors
    /// 413 as soon as the length is known, 503 without memory for the message, 408 after the time limit
    /// or below the least rate, 400 if it breaks off.
    pub(super) async fn next<B: Backend>(
        &mut self,
        service: &Service<B>,
        connection: &Arc<ConnectionState>,
    ) -> Result<Option<Message>, ProtocolError> {
        let limits = service.limits();
        loop {
            let held = self.held();
            service.memory.grow(&mut self.share, held).await?;
            if let Some(message) = self.take(limits.max_body_bytes)? {
                return Ok(Some(message));
            }
            if self.held() > 0 {
                self.check_length_for_app(service)?;
                self.expect(service, || connection.arriving_outside());
            }
            let frame = match &mut self.arriving {
                None => self.body.frame().await,
                Some(arriving) => {
                    tokio::select! {
                        biased;
                        frame = self.body.frame() => frame,
                        () = sleep_until(arriving.look_at.into()) => {
                            let received = self.first.len() + self.joined.len();
                            let next = next_look(arriving.since, received, &limits)?;
                            arriving.look_at = arriving.since + next;
                            continue;
                        }
                    }
                }
            };
            match frame {
                Some(Ok(frame)) => self.push(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => return Err(self.broken_off(&error.to_string())),
                None if self.held() == 0 => return Ok(None),
                None => return Err(self.broken_off("the client ended the call")),
            }
        }
    }

    /// The next message is due from now on, also before its first byte.
    pub(super) fn expect<B: Backend>(
        &mut self,
        service: &Service<B>,
        counted: impl FnOnce() -> Counted,
    ) {
        self.arriving.get_or_insert_with(|| {
            let since = Instant::now();
            Arriving {
                since,
                look_at: since + RATE_GRACE.min(service.limits().body_read_timeout),
                _counted: counted(),
            }
        });
    }

    /// Refuses an inference that is too large for its app before the rest of it arrives. The name of the app
    /// is the first field; the decoder looks at the length of others.
    fn check_length_for_app<B: Backend>(&self, service: &Service<B>) -> Result<(), ProtocolError> {
        let Some(FramePrefix {
            compressed: false,
            length,
        }) = self.prefix()?
        else {
            return Ok(());
        };
        let exposed = service.begin().exposed;
        let named = first_model_name(&self.received()[PREFIX_BYTES..]);
        match named.and_then(|name| exposed.backend.app_index(name)) {
            Some(app) => exposed.bodies[app.0].grpc_limit().check_message(length),
            None => Ok(()),
        }
    }

    /// The bytes of the message at the front.
    fn received(&self) -> &[u8] {
        match self.joined.is_empty() {
            true => &self.first,
            false => &self.joined,
        }
    }

    /// Bytes in memory.
    fn held(&self) -> usize {
        self.first.len() + self.joined.len().max(self.joined.capacity())
    }

    fn broken_off(&self, error: &str) -> ProtocolError {
        let received = self.first.len() + self.joined.len();
        ProtocolError::malformed("body", format!("broke off after {received} bytes: {error}"))
    }

    /// The prefix of the message at the front.
    fn prefix(&self) -> Result<Option<FramePrefix>, ProtocolError> {
        let prefix = self.received().first_chunk::<PREFIX_BYTES>();
        prefix.map(|bytes| FramePrefix::parse(*bytes)).transpose()
    }

    /// Takes the message at the front, if it is complete.
    fn take(&mut self, limit_bytes: usize) -> Result<Option<Message>, ProtocolError> {
        let Some(FramePrefix { compressed, length }) = self.prefix()? else {
            return Ok(None);
        };
        let of_all = BodyLimit {
            bytes: limit_bytes,
            scope: "",
        };
        of_all.check_message(length)?;
        let framed = PREFIX_BYTES + length;
        let mut bytes = if self.joined.is_empty() && self.first.len() >= framed {
            self.first.split_to(framed)
        } else if self.joined.len() >= framed {
            // The rest belongs to the next message, and must not keep the memory of this one.
            self.first = Bytes::copy_from_slice(&self.joined[framed..]);
            self.joined.truncate(framed);
            std::mem::take(&mut self.joined).freeze()
        } else {
            return Ok(None);
        };
        bytes.advance(PREFIX_BYTES);
        self.arriving = None;
        Ok(Some(Message {
            bytes,
            coding: match compressed {
                true => self.coding,
                false => ContentCoding::Identity,
            },
            share: std::mem::replace(&mut self.share, MemoryShare::of_many()),
        }))
    }

    fn push(&mut self, chunk: Bytes) {
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = chunk;
            return;
        }
        if self.joined.is_empty() {
            let announced = self.prefix().ok().flatten();
            let announced = announced.map_or(0, |prefix| PREFIX_BYTES + prefix.length);
            let received = self.first.len() + chunk.len();
            self.joined
                .reserve(announced.min(RESERVED_MAX).max(received));
            let first = std::mem::take(&mut self.first);
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&chunk);
    }
}
