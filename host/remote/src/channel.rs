//! One HTTP/2 connection to a server, and the calls on it.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http::{Request, Version};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use prost::Message;
use switchyard_protocol::grpc::{FramePrefix, PREFIX_BYTES, Rpc, TIMEOUT};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::address::RemoteAddress;
use crate::body::Parts;

/// Longest wait for a connection. A worker that does not answer must not hold up the return of others.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Largest answer; gRPC's own default of 4 MiB is too small for tensors.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Bytes of an answer that the server may send before they are read.
const WINDOW: u32 = 8 << 20;

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

/// A connection. Its own thread drives it during calls only, which saves two changes of threads a call.
pub(crate) struct Channel {
    address: RemoteAddress,
    sender: SendRequest<Parts>,
    // Dropped last: closes the connection.
    runtime: Runtime,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The server does not answer, or not any more.
    Lost(String),
    /// The server answered with an error.
    Refused {
        reason: String,
        /// The next try may succeed.
        repeatable: bool,
    },
}

// === impl Channel ===

impl Channel {
    pub(crate) fn connect(address: &RemoteAddress) -> Result<Self, CallError> {
        let lost = |reason: String| CallError::Lost(format!("{address}: {reason}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| lost(error.to_string()))?;
        let connecting = async {
            let stream = TcpStream::connect((&*address.host, address.port)).await;
            let stream = stream.map_err(|error| error.to_string())?;
            stream
                .set_nodelay(true)
                .map_err(|error| error.to_string())?;
            let handshake = Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_send_buf_size(WINDOW as usize)
                .handshake(TokioIo::new(stream));
            let (sender, connection) = handshake.await.map_err(|error| chain(&error))?;
            // Its end is seen by the next call.
            tokio::spawn(connection);
            Ok(sender)
        };
        let connected = runtime.block_on(async { timeout(CONNECT_TIMEOUT, connecting).await });
        let sender = connected
            .unwrap_or_else(|_| Err(format!("no connection within {CONNECT_TIMEOUT:?}")))
            .map_err(lost)?;
        Ok(Self {
            address: address.clone(),
            sender,
            runtime,
        })
    }

    /// Calls with a message that is in memory whole.
    pub(crate) fn call<R: Message + Default>(
        &mut self,
        rpc: Rpc,
        message: &impl Message,
        limit: Duration,
    ) -> Result<R, CallError> {
        let mut body = Parts::default();
        body.push(message.encode_to_vec().into());
        self.send(rpc, body, limit)
    }

    /// Calls with the parts of a message. The call is cancelled at its limit.
    pub(crate) fn send<R: Message + Default>(
        &mut self,
        rpc: Rpc,
        mut body: Parts,
        limit: Duration,
    ) -> Result<R, CallError> {
        let Self {
            address,
            sender,
            runtime,
        } = self;
        let lost = |reason: String| CallError::Lost(format!("{address}: {reason}"));
        let length = u32::try_from(body.len()).map_err(|_| CallError::Refused {
            reason: format!("{} bytes, a gRPC message has at most 4 GiB", body.len()),
            repeatable: false,
        })?;
        let mut prefix = [0; PREFIX_BYTES];
        prefix[1..].copy_from_slice(&length.to_be_bytes());
        body.begin_with(Bytes::copy_from_slice(&prefix));
        let request = Request::post(format!("http://{address}{}", rpc.path()))
            .version(Version::HTTP_2)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .header(TE, HeaderValue::from_static("trailers"))
            .header(&TIMEOUT, format!("{}m", limit.as_millis().min(99_999_999)))
            .body(body)
            .map_err(|error| lost(error.to_string()))?;
        let exchange = async {
            sender.ready().await.map_err(|error| lost(chain(&error)))?;
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| lost(chain(&error)))?;
            let (head, body) = response.into_parts();
            if head.status != http::StatusCode::OK {
                return Err(lost(format!("HTTP status {}", head.status.as_u16())));
            }
            if let Some(status) = status(&head.headers) {
                status?;
            }
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| lost(chain(&*error)))?;
            let ended = body.trailers().and_then(status);
            ended.unwrap_or_else(|| Err(lost("the answer has no status".to_owned())))?;
            message(body.to_bytes())
        };
        let ended = runtime.block_on(async { timeout(limit, exchange).await });
        ended.unwrap_or_else(|_| Err(lost(format!("no answer within {} ms", limit.as_millis()))))
    }
}

/// The status of a call, in headers or trailers.
fn status(headers: &HeaderMap) -> Option<Result<(), CallError>> {
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
        code::CANCELLED | code::DEADLINE_EXCEEDED | code::UNAVAILABLE => CallError::Lost(reason),
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
fn chain(error: &dyn std::error::Error) -> String {
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
        for (code, is_repeatable) in [("3", true), ("5", false), ("8", true), ("12", false)] {
            let Some(Err(CallError::Refused { repeatable, .. })) = of(code) else {
                panic!("{code}");
            };
            assert_eq!(repeatable, is_repeatable, "{code}");
        }
    }
}
