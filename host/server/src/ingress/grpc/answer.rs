//! The bodies of responses: messages, then trailers with the status.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use switchyard_protocol::InferError;
use switchyard_protocol::grpc::{Code, Status};
use tokio::sync::mpsc;

use super::super::connection_state::{ConnectionState, Counted};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// The codings of messages that the server reads.
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED: HeaderValue = HeaderValue::from_static("identity,gzip,deflate");

/// Messages of a stream that wait for the client to take them.
const WAITING_MAX: usize = 2;

/// The body of a response.
pub(in super::super) struct AnswerBody {
    messages: Messages,
    /// The last frame; `None` once it has been sent, or if the headers had the status.
    trailers: Option<HeaderMap>,
    /// The message that the client is taking.
    taken: Option<Counted>,
    /// The stream that the body is of.
    _open: Option<Counted>,
}

enum Messages {
    /// At most one.
    One(Option<Bytes>),
    Many(mpsc::Receiver<Part>),
}

/// A part of a stream's answer.
enum Part {
    Message(Bytes, Counted),
    End(Status),
}

/// The side of a stream that writes.
pub(super) struct Outbound {
    parts: mpsc::Sender<Part>,
    connection: Arc<ConnectionState>,
}

// === impl AnswerBody ===

impl AnswerBody {
    /// One message with its frame.
    pub(super) fn one(message: Vec<u8>, connection: &Arc<ConnectionState>) -> Response<Self> {
        let mut trailers = HeaderMap::new();
        Status::OK.write(&mut trailers);
        response(Self {
            messages: Messages::One(Some(message.into())),
            trailers: Some(trailers),
            taken: Some(connection.untaken()),
            _open: None,
        })
    }

    /// Messages that come one after another.
    pub(super) fn many(connection: &Arc<ConnectionState>) -> (Response<Self>, Outbound) {
        let (sender, parts) = mpsc::channel(WAITING_MAX);
        let body = Self {
            messages: Messages::Many(parts),
            trailers: Some(HeaderMap::new()),
            taken: None,
            _open: Some(connection.streaming()),
        };
        let outbound = Outbound {
            parts: sender,
            connection: Arc::clone(connection),
        };
        (response(body), outbound)
    }

    /// No message: the headers have the status.
    pub(super) fn failed(status: &Status) -> Response<Self> {
        let mut response = response(Self::empty());
        status.write(response.headers_mut());
        if status.code == Code::Unimplemented {
            response.headers_mut().insert(ACCEPT_ENCODING, ACCEPTED);
        }
        response
    }

    /// The answer to another protocol.
    pub(super) fn refused(status: StatusCode) -> Response<Self> {
        let mut response = Response::new(Self::empty());
        *response.status_mut() = status;
        response
    }

    fn empty() -> Self {
        Self {
            messages: Messages::One(None),
            trailers: None,
            taken: None,
            _open: None,
        }
    }
}

fn response(body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = &mut *self;
        let status = match &mut body.messages {
            Messages::One(message) => match message.take() {
                Some(message) => return Poll::Ready(Some(Ok(Frame::data(message)))),
                None => None,
            },
            Messages::Many(parts) if body.trailers.is_some() => {
                // hyper asks for a further frame once the client has room for it.
                body.taken = None;
                match parts.poll_recv(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Part::Message(message, untaken))) => {
                        body.taken = Some(untaken);
                        return Poll::Ready(Some(Ok(Frame::data(message))));
                    }
                    Poll::Ready(Some(Part::End(status))) => Some(status),
                    Poll::Ready(None) => {
                        let ended = InferError::Failed("the task of the call ended".to_owned());
                        Some(Status::from(&ended.into()))
                    }
                }
            }
            Messages::Many(_) => None,
        };
        let trailers = body.trailers.take().map(|mut trailers| {
            if let Some(status) = status {
                status.write(&mut trailers);
            }
            Ok(Frame::trailers(trailers))
        });
        Poll::Ready(trailers)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.messages, Messages::One(None)) && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

// === impl Outbound ===

impl Outbound {
    /// Hands a message with its frame over, once there is room. An error: the client has gone.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), ()> {
        let part = Part::Message(message.into(), self.connection.untaken());
        self.parts.send(part).await.map_err(drop)
    }

    /// Ends the stream.
    pub(super) async fn end(self, status: Status) {
        // An error: the client has gone.
        let _ = self.parts.send(Part::End(status)).await;
    }

    /// Completes when the client has gone. Cancel safe.
    pub(super) async fn closed(&self) {
        self.parts.closed().await;
    }
}
