//! One HTTP/2 connection to a server, and the calls on it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use prost::Message;
use switchyard_protocol::grpc::{FramePrefix, PREFIX_BYTES, TIMEOUT};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::address::RemoteAddress;
use crate::body::Parts;
use crate::stream::{InnerStream, RemoteStream};
use crate::tls::RemoteTls;

/// Longest wait for a connection. A worker that does not answer must not hold up the return of others.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Largest answer; gRPC's own default of 4 MiB is too small for tensors.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Bytes of an answer that the server may send before they are read.
const WINDOW: u32 = 8 << 20;

/// Largest frame of an answer: each costs a read at least.
const FRAME_BYTES_MAX: u32 = 1 << 20;

/// The codes of gRPC that decide about a batch.
mod code {
    pub(super) const CANCELLED: u16 = 1;
    pub(super) const DEADLINE_EXCEEDED: u16 = 4;
    pub(super) const NOT_FOUND: u16 = 5;
    pub(super) const PERMISSION_DENIED: u16 = 7;
    pub(super) const UNIMPLEMENTED: u16 = 12;
    pub(super) const UNAVAILABLE: u16 = 14;
    pub(super) const UNAUTHENTICATED: u16 = 16;
}

/// When a silent server is asked for a sign of life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    /// Pause in the server's frames.
    pub(crate) after: Duration,
    /// Also while no call is under way.
    pub(crate) while_idle: bool,
}

/// For workers. Answers about their health come more often, so that no server counts the pings as abuse.
pub(crate) const WORKER_PINGS: Pings = Pings {
    after: Duration::from_secs(2),
    while_idle: true,
};

/// Longest wait for the sign of life.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, driven in the background. Clones share it.
#[derive(Clone)]
pub(crate) struct Channel {
    address: RemoteAddress,
    is_tls: bool,
    sender: SendRequest<Parts>,
    /// Why its stream ended.
    failure: Arc<OnceLock<String>>,
    /// Its sender is dropped at the end of the connection.
    driven: watch::Receiver<()>,
    /// Its server runs batches of some stages.
    pub(crate) runs_stages: bool,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The server does not answer, or not any more.
    Lost(String),
    /// The time of the call has passed.
    TimedOut(String),
    /// The deadline of its requests has passed.
    Late(String),
    /// The server answered with an error.
    Refused {
        reason: String,
        /// The next try may succeed.
        repeatable: bool,
    },
}

/// A call without an answer.
pub(crate) enum NotAnswered {
    /// The connection had ended before; the message comes back.
    Unsent(Parts, String),
    Failed(CallError),
}

// === impl CallError ===

impl CallError {
    pub(crate) fn no_answer(address: &RemoteAddress, limit: Duration) -> Self {
        let limit = limit.as_millis();
        Self::TimedOut(format!("{address}: no answer within {limit} ms"))
    }

    pub(crate) fn reason(self) -> String {
        match self {
            Self::Lost(reason)
            | Self::TimedOut(reason)
            | Self::Late(reason)
            | Self::Refused { reason, .. } => reason,
        }
    }
}

// === impl NotAnswered ===

impl NotAnswered {
    pub(crate) fn into_error(self) -> CallError {
        match self {
            Self::Unsent(_, reason) => CallError::Lost(reason),
            Self::Failed(error) => error,
        }
    }
}

// === impl Channel ===

impl Channel {
    pub(crate) async fn connect(
        address: &RemoteAddress,
        tls: Option<&RemoteTls>,
        pings: Pings,
    ) -> Result<Self, CallError> {
        let lost = |reason: String| CallError::Lost(format!("{address}: {reason}"));
        let connecting = async {
            let stream = match (InnerStream::connect(address).await, tls) {
                (Ok(InnerStream::Tcp(stream)), Some(tls)) => {
                    InnerStream::Tls(Box::new(tls.connect(&address.host, stream).await?))
                }
                (Ok(InnerStream::Unix(_)), Some(_)) => {
                    return Err("a Unix socket has no TLS; leave it out".to_owned());
                }
                (stream, _) => stream.map_err(|error| error.to_string())?,
            };
            let stream = RemoteStream::new(stream);
            let failure = Arc::clone(&stream.failure);
            let handshake = Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_frame_size(FRAME_BYTES_MAX)
                .max_send_buf_size(WINDOW as usize)
                .keep_alive_interval(pings.after)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(pings.while_idle)
                .handshake(TokioIo::new(stream));
            let (sender, connection) = handshake.await.map_err(|error| chain(&error))?;
            let (driving, driven) = watch::channel(());
            tokio::spawn(async move {
                // The next call sees how it ended.
                let _ = connection.await;
                drop(driving);
            });
            Ok((sender, failure, driven))
        };
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        let (sender, failure, driven) = connected
            .unwrap_or_else(|_| Err(format!("no connection within {CONNECT_TIMEOUT:?}")))
            .map_err(lost)?;
        Ok(Self {
            address: address.clone(),
            is_tls: tls.is_some(),
            sender,
            failure,
            driven,
            runs_stages: false,
        })
    }

    /// Whether no further call is possible. Calls on the way may end.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.driven.has_changed().is_err()
    }

    /// Waits until no further call is possible.
    pub(crate) async fn closed(&self) {
        let mut driven = self.driven.clone();
        while driven.changed().await.is_ok() {}
    }

    /// Asks a question within a time.
    pub(crate) async fn call<R: Message + Default>(
        &self,
        path: &str,
        message: &impl Message,
        limit: Duration,
    ) -> Result<R, CallError> {
        let mut body = Parts::default();
        body.push(message.encode_to_vec().into());
        let answer = timeout(limit, self.send(path, body, limit)).await;
        match answer {
            Ok(answer) => answer.map_err(NotAnswered::into_error),
            Err(_) => Err(CallError::no_answer(&self.address, limit)),
        }
    }

    /// Calls with the parts of a message. The server learns the time that the caller waits. Dropping the
    /// future cancels the call.
    pub(crate) async fn send<R: Message + Default>(
        &self,
        path: &str,
        body: Parts,
        limit: Duration,
    ) -> Result<R, NotAnswered> {
        let response = self.exchange(path, body, Some(limit)).await?;
        let answered = answer(response, |reason| self.lost(reason)).await;
        answered.map_err(NotAnswered::Failed)
    }

    /// The loss of the server, for the reason of its stream if that has ended.
    pub(crate) fn lost(&self, reason: String) -> CallError {
        CallError::Lost(format!("{}: {}", self.address, self.because(reason)))
    }

    fn because(&self, reason: String) -> String {
        self.failure.get().cloned().unwrap_or(reason)
    }

    /// Sends a question whose answer follows.
    pub(crate) async fn exchange(
        &self,
        path: &str,
        body: Parts,
        limit: Option<Duration>,
    ) -> Result<Response<Incoming>, NotAnswered> {
        let address = &self.address;
        let length = u32::try_from(body.len()).map_err(|_| {
            NotAnswered::Failed(CallError::Refused {
                reason: format!("{} bytes, a gRPC message has at most 4 GiB", body.len()),
                repeatable: false,
            })
        })?;
        let mut prefix = [0; PREFIX_BYTES];
        prefix[1..].copy_from_slice(&length.to_be_bytes());
        let scheme = if self.is_tls { "https" } else { "http" };
        let authority = address.authority();
        let mut request = Request::post(format!("{scheme}://{authority}{path}"))
            .version(Version::HTTP_2)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .header(TE, HeaderValue::from_static("trailers"));
        request = match limit {
            Some(limit) => request.header(&TIMEOUT, timeout_header(limit)),
            // A member of a cluster of etcd ends the answer when it loses its leader.
            None => request.header("hasleader", HeaderValue::from_static("true")),
        };
        let request = request
            .body(body.framed(Bytes::copy_from_slice(&prefix)))
            .map_err(|error| NotAnswered::Failed(self.lost(error.to_string())))?;
        let response = self.sender.clone().try_send_request(request).await;
        response.map_err(|mut error| {
            let message = error.take_message();
            let reason = format!("{address}: {}", self.because(chain(error.error())));
            match message {
                Some(request) => NotAnswered::Unsent(request.into_body().unframed(), reason),
                None => NotAnswered::Failed(CallError::Lost(reason)),
            }
        })
    }
}

async fn answer<R: Message + Default>(
    response: Response<Incoming>,
    lost: impl Fn(String) -> CallError,
) -> Result<R, CallError> {
    let (head, body) = response.into_parts();
    check(head.status, &head.headers, &lost)?;
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| lost(chain(&*error)))?;
    let ended = body.trailers().and_then(status);
    ended.unwrap_or_else(|| Err(lost("the answer has no status".to_owned())))?;
    message(body.to_bytes())
}

/// Whether an answer follows its head.
pub(crate) fn check(
    found: http::StatusCode,
    headers: &HeaderMap,
    lost: impl Fn(String) -> CallError,
) -> Result<(), CallError> {
    if found != http::StatusCode::OK {
        return Err(lost(format!("HTTP status {}", found.as_u16())));
    }
    status(headers).unwrap_or(Ok(()))
}

/// A duration in at most eight digits and a unit.
fn timeout_header(limit: Duration) -> String {
    const DIGITS_MAX: u128 = 99_999_999;
    match (limit.as_micros(), limit.as_millis()) {
        (us @ ..=DIGITS_MAX, _) => format!("{us}u"),
        (_, ms) => format!("{}m", ms.min(DIGITS_MAX)),
    }
}

/// The status of a call, in headers or trailers.
pub(crate) fn status(headers: &HeaderMap) -> Option<Result<(), CallError>> {
    let code = headers.get("grpc-status")?.to_str().ok()?;
    let code = code.parse().unwrap_or(2_u16);
    if code == 0 {
        return Some(Ok(()));
    }
    let text = headers
        .get("grpc-message")
        .and_then(|text| text.to_str().ok());
    let text = percent_decode_str(text.unwrap_or_default()).decode_utf8_lossy();
    let reason = format!("gRPC status {code}: {text}");
    Some(Err(match code {
        code::CANCELLED | code::UNAVAILABLE => CallError::Lost(reason),
        code::DEADLINE_EXCEEDED => CallError::TimedOut(reason),
        code::NOT_FOUND | code::PERMISSION_DENIED | code::UNIMPLEMENTED | code::UNAUTHENTICATED => {
            CallError::Refused {
                reason,
                repeatable: false,
            }
        }
        // Also an invalid argument: it may be that of one row.
        _ => CallError::Refused {
            reason,
            repeatable: true,
        },
    }))
}

/// The one message of a body.
fn message<R: Message + Default>(mut body: Bytes) -> Result<R, CallError> {
    let refused = |reason: String| CallError::Refused {
        reason: format!("the answer: {reason}"),
        repeatable: true,
    };
    let prefix = body.first_chunk::<PREFIX_BYTES>();
    let prefix = prefix.ok_or_else(|| refused("is empty".to_owned()))?;
    let prefix = FramePrefix::parse(*prefix).map_err(|error| refused(error.to_string()))?;
    let bytes = body.split_off(PREFIX_BYTES);
    if prefix.compressed || prefix.length != bytes.len() {
        let found = bytes.len();
        let reason = format!("{found} bytes instead of {}, or compressed", prefix.length);
        return Err(refused(reason));
    }
    R::decode(bytes).map_err(|error| refused(error.to_string()))
}

/// An error with its causes; hyper's first line says little.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_server_is_lost_and_a_refused_batch_is_not() {
        let of = |code: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", HeaderValue::from_static(code));
            headers.insert("grpc-message", HeaderValue::from_static("100%25 busy"));
            status(&headers)
        };
        assert_eq!(of("0"), Some(Ok(())));
        assert_eq!(status(&HeaderMap::new()), None);
        let lost = CallError::Lost("gRPC status 14: 100% busy".to_owned());
        assert_eq!(of("14"), Some(Err(lost)));
        assert!(matches!(of("4"), Some(Err(CallError::TimedOut(_)))));
        for (code, is_repeatable) in [("3", true), ("5", false), ("8", true), ("12", false)] {
            let Some(Err(CallError::Refused { repeatable, .. })) = of(code) else {
                panic!("{code}");
            };
            assert_eq!(repeatable, is_repeatable, "{code}");
        }
    }
    #[test]
    fn a_timeout_has_at_most_eight_digits() {
        for (limit, header) in [
            (Duration::from_micros(250), "250u"),
            (Duration::from_micros(99_999_999), "99999999u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(1 << 40), "99999999m"),
        ] {
            assert_eq!(timeout_header(limit), header);
        }
    }
}
