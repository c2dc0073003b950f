//! An answer that comes in many messages.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use switchyard_protocol::grpc::{FramePrefix, PREFIX_BYTES};

use tokio::time::timeout;

use crate::body::Parts;
use crate::channel::{CallError, Channel, NotAnswered, chain, check, status};

/// Largest message: lists are bounded by their slots.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The messages of an answer. Dropping it cancels the call.
pub(crate) struct Messages {
    body: Incoming,
    /// Bytes that were received and not read.
    received: BytesMut,
    channel: Channel,
}

/// Asks a question whose answer comes in many messages. Its head comes within a time.
pub(crate) async fn ask(
    channel: &Channel,
    path: &str,
    message: &impl Message,
    limit: Duration,
) -> Result<Messages, CallError> {
    let mut body = Parts::default();
    body.push(message.encode_to_vec().into());
    let response = timeout(limit, channel.exchange(path, body.staying_open(), None)).await;
    let late = |_| channel.lost(format!("no answer within {} ms", limit.as_millis()));
    let response = response.map_err(late)?.map_err(NotAnswered::into_error)?;
    let (head, body) = response.into_parts();
    check(head.status, &head.headers, |reason| channel.lost(reason))?;
    Ok(Messages {
        body,
        received: BytesMut::new(),
        channel: channel.clone(),
    })
}

// === impl Messages ===

impl Messages {
    /// The next message. Cancel safe.
    ///
    /// # Errors
    /// The answer has ended: the server's reason.
    pub(crate) async fn next<R: Message + Default>(&mut self) -> Result<R, CallError> {
        loop {
            if let Some(message) = self.whole()? {
                let message = R::decode(message);
                return message.map_err(|error| self.channel.lost(error.to_string()));
            }
            let frame = self.body.frame().await;
            let frame =
                frame.ok_or_else(|| self.channel.lost("the answer has ended".to_owned()))?;
            let frame = frame.map_err(|error| self.channel.lost(chain(&error)))?;
            match frame.into_data() {
                Ok(data) => self.received.extend_from_slice(&data),
                Err(frame) => {
                    if let Some(Err(error)) = frame.trailers_ref().and_then(status) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The first message that was received whole.
    fn whole(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(prefix) = self.received.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let lost = |reason: String| self.channel.lost(reason);
        let prefix = FramePrefix::parse(*prefix).map_err(|error| lost(error.to_string()))?;
        if prefix.compressed || prefix.length > MESSAGE_BYTES_MAX {
            let length = prefix.length;
            return Err(lost(format!(
                "a message of {length} bytes, at most {MESSAGE_BYTES_MAX}, or compressed"
            )));
        }
        let end = PREFIX_BYTES + prefix.length;
        if self.received.len() < end {
            return Ok(None);
        }
        let mut message = self.received.split_to(end);
        Ok(Some(message.split_off(PREFIX_BYTES).freeze()))
    }
}
